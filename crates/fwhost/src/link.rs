//! The supervised task: connects for ever, serves each connection, and samples temperatures beside it.

use std::time::Duration;

use runtime::beat;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::quirks::Quirks;
use crate::session::{Ending, Session};
use crate::shared::Shared;
use crate::socket::{Change, Identity, Lookout, Pace};

/// Runs until dropped.
pub(crate) async fn run(shared: &Shared) {
    tokio::join!(keep_linked(shared), sample(shared));
}

async fn keep_linked(shared: &Shared) {
    let (path, timing) = (&shared.options.socket, &shared.options.timing);
    let mut quirks = Quirks::default();
    let mut pace = Pace::new(timing.poll, timing.backoff_max);
    let mut lookout = loop {
        match Lookout::start(path.clone(), timing.poll) {
            Ok(lookout) => break lookout,
            Err(error) => quirks.warn("thread", &format_args!("no thread to look after {}: {error}", path.display())),
        }
        sleep(timing.backoff_max).await;
    };
    loop {
        let file = lookout.latest();
        if !pace.is_due(file, Instant::now()) {
            tokio::select! {
                () = lookout.changed() => {}
                () = sleep_until(pace.next().unwrap_or_else(Instant::now)), if file.is_some() => {}
            }
            continue;
        }
        // The last look may be a little old.
        if let Some(identity) = Identity::of(path).await {
            match UnixStream::connect(path).await {
                Ok(stream) => {
                    lookout.connected();
                    let ending = serve(shared, &mut quirks, stream, identity, &mut lookout).await;
                    lookout.hurry();
                    report(&mut quirks, &ending);
                    if ending.settled && !ending.lost.is_fault() {
                        pace.succeeded();
                    } else {
                        pace.failed(Instant::now());
                    }
                }
                Err(error) => {
                    // A file without a listener is what a host leaves behind that was killed, and no news.
                    if error.kind() != std::io::ErrorKind::ConnectionRefused {
                        quirks.warn("connect", &format_args!("cannot connect to {}: {error}", path.display()));
                    }
                    pace.failed(Instant::now());
                }
            }
        }
        // Also keeps us away from the listener of a host that is just going down.
        sleep(timing.poll).await;
    }
}

async fn serve(shared: &Shared, quirks: &mut Quirks, stream: UnixStream, identity: Identity, lookout: &mut Lookout) -> Ending {
    let (changed, mut changes) = mpsc::channel(1);
    let (reader, writer) = stream.into_split();
    tokio::select! {
        ending = Session::new(shared, quirks).serve(reader, writer, &mut changes) => ending,
        never = watch(lookout, identity, changed) => match never {},
    }
}

/// Tells each change of the socket file.
async fn watch(lookout: &mut Lookout, mut identity: Identity, changed: mpsc::Sender<Change>) -> std::convert::Infallible {
    loop {
        lookout.changed().await;
        let now = lookout.latest();
        if let Some(change) = identity.compare(now) {
            identity = now.unwrap_or(identity);
            // Full means that one is still to be looked at, which is enough.
            let _ = changed.try_send(change);
        }
    }
}

fn report(quirks: &mut Quirks, ending: &Ending) {
    if ending.lost.is_fault() && ending.settled {
        // Each one: what follows in the log, `ready`, would come out of nothing otherwise.
        tracing::warn!("firmware host: connection given up: {}", ending.lost);
    } else if ending.lost.is_fault() {
        quirks.warn(ending.lost.kind(), &format_args!("connection given up: {}", ending.lost));
    } else if ending.settled {
        tracing::info!("firmware host disconnected: {}", ending.lost);
    } else {
        tracing::debug!("firmware host disconnected: {}", ending.lost);
    }
}

async fn sample(shared: &Shared) {
    let period = shared.options.timing.sample.max(Duration::from_millis(1));
    let mut tick = beat::ticks(period);
    loop {
        tick.tick().await;
        shared.sample_temperatures();
    }
}

#[cfg(test)]
mod tests;
