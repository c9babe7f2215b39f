//! What others do for the machine.

use rpc::transfer::Boxed;

/// Where people see what the machine needs of them.
pub trait AlertBoard: Send + Sync {
    /// Shows this alert in place of the one before; none takes it away.
    fn show(&self, alert: Option<Alert>) -> Boxed<'_, ()>;
}

/// Something that people should see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// In a few words.
    pub title: String,
    /// In whole sentences, one a line.
    pub description: String,
}
