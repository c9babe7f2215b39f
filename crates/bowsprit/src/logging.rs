//! Log set-up.
use std::path::PathBuf;

#[derive(Clone)]
pub struct Log;
impl Log {
    pub fn roll_over(&self) -> Result<(), String> {
        Ok(())
    }
    pub fn flush(&self) {}
}
pub fn start(_file: Option<PathBuf>, _structured: bool, _verbose: bool) -> (Log, Vec<String>) {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    (Log, Vec::new())
}
pub fn start_quiet(_file: PathBuf) -> (Log, Vec<String>) {
    (Log, Vec::new())
}
