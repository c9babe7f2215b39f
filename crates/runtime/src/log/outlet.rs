//! A bounded queue of log lines and the thread that carries them to where they are kept.
//!
//! Whoever logs only copies his line into a buffer. While the buffer is full, lines are dropped and counted; nobody
//! ever waits for the disk or for a terminal that does not read. The thread sleeps until there is a line.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Zoned;
use jiff::civil::DateTime;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;
use tracing_subscriber::fmt::MakeWriter;

/// Bytes of log lines that wait for the writer thread.
pub const MAX_QUEUED_BYTES: usize = 256 * 1024;

/// Bytes that a buffer keeps after a burst.
const KEPT_BUFFER_BYTES: usize = 16 * 1024;

/// Orders (roll over, flush) that wait for the writer thread.
const MAX_ORDERS: usize = 16;

/// The present on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// Local wall time: days and names.
    pub(super) local: DateTime,
    /// Never jumps: pauses.
    pub(super) steady: Instant,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self { local: Zoned::now().datetime(), steady: Instant::now() }
    }
}

/// Where lines end up. Lives on the writer thread and may block.
pub(super) trait Sink: Send + 'static {
    /// Takes whole lines. `lost` lines before them were dropped, which is to be noted first.
    fn write(&mut self, lines: &[u8], lost: u64, now: Moment) -> io::Result<()>;

    /// Begins a new file now.
    fn roll_over(&mut self, now: Moment) -> Result<(), String>;
}

enum Order {
    RollOver(oneshot::Sender<Result<(), String>>),
    Flush(mpsc::SyncSender<()>),
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Lines dropped since the last batch.
    lost: u64,
    orders: Vec<Order>,
    closed: bool,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    arrival: Condvar,
    lost_ever: AtomicU64,
}

/// The end that loggers hold. The thread ends when the last clone is gone and everything is written.
#[derive(Clone)]
pub(super) struct Outlet(Arc<Sender>);

struct Sender(Arc<Queue>);

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.waiting.lock().closed = true;
        self.0.arrival.notify_one();
    }
}

impl Outlet {
    /// Starts the writer thread.
    pub(super) fn start(thread_name: &str, sink: impl Sink) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let served = queue.clone();
        thread::Builder::new().name(thread_name.to_owned()).spawn(move || serve(&served, sink))?;
        Ok(Self(Arc::new(Sender(queue))))
    }

    /// Queues one line, which includes its newline; drops and counts it when the queue is full.
    pub(super) fn push(&self, line: &[u8]) {
        let queue = &self.0.0;
        let mut waiting = queue.waiting.lock();
        if waiting.lines.len() + line.len() > MAX_QUEUED_BYTES {
            waiting.lost += 1;
            queue.lost_ever.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let was_empty = waiting.lines.is_empty();
        waiting.lines.extend_from_slice(line);
        drop(waiting);
        if was_empty {
            queue.arrival.notify_one();
        }
    }

    /// Lines lost since the start, because the queue was full or the sink refused them.
    pub(super) fn lost(&self) -> u64 {
        self.0.0.lost_ever.load(Ordering::Relaxed)
    }

    /// Begins a new file after all lines that were queued before.
    pub(super) fn roll_over(&self) -> oneshot::Receiver<Result<(), String>> {
        let (answer, answered) = oneshot::channel();
        self.order(Order::RollOver(answer));
        answered
    }

    /// Waits until all lines that were queued before are written; false if that takes longer than `deadline`.
    pub(super) fn flush(&self, deadline: Duration) -> bool {
        let (done, written) = mpsc::sync_channel(1);
        self.order(Order::Flush(done));
        written.recv_timeout(deadline).is_ok()
    }

    /// An order beyond the limit is dropped, and whoever waits for its answer sees that.
    fn order(&self, order: Order) {
        let mut waiting = self.0.0.waiting.lock();
        if waiting.orders.len() < MAX_ORDERS {
            waiting.orders.push(order);
        }
        drop(waiting);
        self.0.0.arrival.notify_one();
    }
}

/// The body of the writer thread.
fn serve(queue: &Queue, mut sink: impl Sink) {
    let mut lines = Vec::new();
    let mut lost = 0;
    loop {
        let mut waiting = queue.waiting.lock();
        queue.arrival.wait_while(&mut waiting, |w| w.lines.is_empty() && w.orders.is_empty() && !w.closed);
        std::mem::swap(&mut waiting.lines, &mut lines);
        lost += std::mem::take(&mut waiting.lost);
        let orders = std::mem::take(&mut waiting.orders);
        let closed = waiting.closed;
        drop(waiting);

        if !lines.is_empty() {
            match sink.write(&lines, lost, Moment::now()) {
                Ok(()) => lost = 0,
                Err(_) => {
                    let refused = lines.iter().filter(|byte| **byte == b'\n').count() as u64;
                    lost += refused;
                    queue.lost_ever.fetch_add(refused, Ordering::Relaxed);
                }
            }
            lines.clear();
            lines.shrink_to(KEPT_BUFFER_BYTES);
        }
        for order in orders {
            match order {
                // whoever asked may have gone: nothing to tell then
                Order::RollOver(answer) => drop(answer.send(sink.roll_over(Moment::now()))),
                Order::Flush(done) => drop(done.send(())),
            }
        }
        if closed {
            return;
        }
    }
}

/// Takes one event at a time from the formatter and queues it as a line.
pub(super) struct LineWriter<'a>(&'a Outlet);

impl io::Write for LineWriter<'_> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.push(&super::line::tidy(event));
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Outlet {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sink that waits for permission before each batch and shows what it got.
    struct Slow {
        go: mpsc::Receiver<io::Result<()>>,
        got: mpsc::Sender<Batch>,
    }

    impl Sink for Slow {
        fn write(&mut self, lines: &[u8], lost: u64, _: Moment) -> io::Result<()> {
            self.got.send((lines.to_vec(), lost)).unwrap();
            self.go.recv().unwrap_or(Ok(()))
        }

        fn roll_over(&mut self, _: Moment) -> Result<(), String> {
            Err("slow".to_owned())
        }
    }

    type Batch = (Vec<u8>, u64);

    fn slow() -> (Outlet, mpsc::Sender<io::Result<()>>, mpsc::Receiver<Batch>) {
        let ((go, go_receiver), (got_sender, got)) = (mpsc::channel(), mpsc::channel());
        (Outlet::start("slow", Slow { go: go_receiver, got: got_sender }).unwrap(), go, got)
    }

    const SOON: Duration = Duration::from_secs(2);

    #[test]
    fn a_full_queue_drops_and_counts_and_never_blocks() {
        let (outlet, go, got) = slow();
        outlet.push(b"first\n");
        assert_eq!(got.recv_timeout(SOON).unwrap(), (b"first\n".to_vec(), 0));
        // The sink is stuck now. Fill the queue and push three lines more.
        let line = [b"x".repeat(1023), b"\n".to_vec()].concat();
        for _ in 0..MAX_QUEUED_BYTES / line.len() + 3 {
            outlet.push(&line);
        }
        assert_eq!(outlet.lost(), 3);
        go.send(Ok(())).unwrap();
        let (batch, lost) = got.recv_timeout(SOON).unwrap();
        assert_eq!((batch.len(), lost), (MAX_QUEUED_BYTES, 3));
        // reported once
        outlet.push(b"last\n");
        go.send(Ok(())).unwrap();
        assert_eq!(got.recv_timeout(SOON).unwrap(), (b"last\n".to_vec(), 0));
        drop(go);
        assert_eq!(outlet.lost(), 3);
    }

    #[test]
    fn refused_lines_count_as_lost_until_a_batch_is_taken() {
        let (outlet, go, got) = slow();
        go.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        outlet.push(b"one\n");
        assert_eq!(got.recv_timeout(SOON).unwrap().1, 0);
        assert!(outlet.flush(SOON));
        go.send(Ok(())).unwrap();
        outlet.push(b"two\n");
        assert_eq!(got.recv_timeout(SOON).unwrap().1, 1);
        assert_eq!(outlet.lost(), 1);
    }

    #[tokio::test]
    async fn orders_come_after_the_lines_before_them_and_are_answered() {
        let (outlet, go, got) = slow();
        outlet.push(b"line\n");
        let answer = outlet.roll_over();
        assert!(!outlet.flush(Duration::from_millis(1)), "the sink is stuck");
        go.send(Ok(())).unwrap();
        assert_eq!(answer.await.unwrap(), Err("slow".to_owned()));
        assert!(outlet.flush(SOON));
        assert_eq!(got.try_iter().count(), 1);
    }

    #[test]
    fn the_thread_ends_with_the_last_logger_and_loses_nothing() {
        let (outlet, go, got) = slow();
        let second = outlet.clone();
        drop(outlet);
        second.push(b"bye\n");
        drop(second);
        go.send(Ok(())).unwrap();
        assert_eq!(got.recv_timeout(SOON).unwrap(), (b"bye\n".to_vec(), 0));
        assert_eq!(got.recv_timeout(SOON), Err(mpsc::RecvTimeoutError::Disconnected), "the sink is gone");
    }
}
