//! The handle that operations and other components hold.

use std::sync::{Arc, OnceLock};

use fwhost::{FwHost, HostEvent, PrintState, SubscriberId};
use protocol::error::ApiResult;
use protocol::status::Selection;
use protocol::{ApiError, Event, FwhostState};
use rpc::{Call, Connections, Rendered};

use crate::sink::ConnectionSink;

/// The printer.
pub struct Printer {
    /// The link to the firmware host.
    pub host: FwHost,
    on_start: OnceLock<StartListener>,
}

type StartListener = Box<dyn Fn(PrintStart<'_>) + Send + Sync>;

/// A start of a print through us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintStart<'a> {
    /// The firmware host is about to be asked.
    Asked {
        /// Path relative to the gcode root.
        filename: &'a str,
        /// Who wants it, when that is known.
        user: Option<&'a str>,
    },
    /// It refused.
    Refused {
        /// Path relative to the gcode root.
        filename: &'a str,
    },
}

/// A file to print, relative to the gcode root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintTarget(String);

impl PrintTarget {
    /// Reads a file name as clients send it: one leading slash is dropped.
    ///
    /// # Errors
    /// For an empty name, and for characters that would end the gcode line.
    pub fn parse(filename: &str) -> ApiResult<Self> {
        let name = filename.strip_prefix('/').unwrap_or(filename);
        if name.is_empty() || name.contains(['\n', '\r', '\0']) {
            return Err(ApiError::argument("Unable to convert argument [filename]: expected the path of a gcode file on one line"));
        }
        Ok(Self(name.to_owned()))
    }

    /// The gcode that starts it.
    #[must_use]
    pub fn gcode(&self) -> String {
        format!("SDCARD_PRINT_FILE FILENAME=\"{}\"", self.0.replace('"', "\\\""))
    }
}

impl Printer {
    /// Puts the printer's operations around a link and tells `connections` what happens at it.
    #[must_use]
    pub fn new(host: FwHost, connections: &Arc<Connections>) -> Arc<Self> {
        let told = connections.clone();
        host.on_event(move |event| {
            if let Some(event) = notification(event) {
                told.emit(&event);
            }
        });
        let link = host.clone();
        connections.on_close(move |connection| link.unsubscribe(SubscriberId(connection.id.0)));
        let link = host.clone();
        connections.on_revoke(move |connection| link.unsubscribe(SubscriberId(connection.id.0)));
        Arc::new(Self { host, on_start: OnceLock::new() })
    }

    /// The job's file while it is printing or paused on a ready printer: it must not be changed.
    #[must_use]
    pub fn loaded_file(&self) -> Option<String> {
        let stats = self.host.print_stats().filter(|_| self.host.status().state == FwhostState::Ready)?;
        let busy = matches!(stats.state, PrintState::Printing | PrintState::Paused);
        (busy && !stats.filename.is_empty()).then(|| stats.filename.to_string())
    }

    /// True when a print can be started now.
    #[must_use]
    pub fn can_start(&self) -> bool {
        let ready = self.host.status().state == FwhostState::Ready;
        ready && self.host.print_stats().is_some_and(|stats| !matches!(stats.state, PrintState::Printing | PrintState::Paused))
    }

    /// Calls `listener` at every start of a print through us. The first listener stays the only one.
    pub fn on_start(&self, listener: impl Fn(PrintStart<'_>) + Send + Sync + 'static) {
        // A second one cannot be: the server is built once.
        let _ = self.on_start.set(Box::new(listener));
    }

    /// Starts a print for a user; the answer comes when the firmware host has opened the file.
    ///
    /// # Errors
    /// What the firmware host says.
    pub async fn start_print(&self, target: &PrintTarget, user: Option<&str>) -> ApiResult<()> {
        let tell = |start: PrintStart<'_>| {
            if let Some(listener) = self.on_start.get() {
                listener(start);
            }
        };
        tell(PrintStart::Asked { filename: &target.0, user });
        let started = self.host.gcode(&target.gcode(), false).await;
        if started.is_err() {
            tell(PrintStart::Refused { filename: &target.0 });
        }
        started
    }

    /// Subscribes the connection of a call.
    pub(crate) async fn subscribe(&self, call: &Call, selection: Selection) -> ApiResult<Rendered> {
        let connection = call.connection()?;
        // Updates must not overtake the answer that they build upon.
        call.hold_until_answered(connection.outbox.hold_status());
        let sink = Arc::new(ConnectionSink { outbox: connection.outbox.clone(), subscription: connection.outbox.next_subscription() });
        // Whoever loses the identity from now on makes this request an old one; whoever lost it just before must not begin.
        if !connection.is_authorised() {
            return Err(ApiError::unauthorized());
        }
        let answer = self.host.subscribe(SubscriberId(connection.id.0), sink, selection).await?;
        Ok(Rendered(answer.into()))
    }
}

fn notification(event: &HostEvent) -> Option<Event> {
    match event {
        HostEvent::Ready => Some(Event::FwhostReady),
        HostEvent::Shutdown => Some(Event::FwhostShutdown),
        HostEvent::Disconnected => Some(Event::FwhostDisconnected),
        HostEvent::GcodeResponse(line) => Some(Event::GcodeResponse(line.clone())),
        HostEvent::Connected | HostEvent::Started(_) | HostEvent::PrintStats(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_cannot_leave_their_quotes_or_their_line() {
        assert_eq!(PrintTarget::parse("/sub/a b.gcode").unwrap().gcode(), r#"SDCARD_PRINT_FILE FILENAME="sub/a b.gcode""#);
        assert_eq!(PrintTarget::parse(r#"a".gcode"#).unwrap().gcode(), r#"SDCARD_PRINT_FILE FILENAME="a\".gcode""#);
        for bad in ["", "/", "a\nM112", "a\rM112"] {
            assert!(PrintTarget::parse(bad).is_err(), "{bad:?}");
        }
    }
}
