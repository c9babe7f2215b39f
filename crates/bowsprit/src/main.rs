//! The bowsprit binary.
fn main() {}
