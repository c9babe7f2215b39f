//! Black-box tests of the whole program: the real binary, a simulated printer, clients on every transport.
//!
//! One module per area; every test is a scenario. Shared parts are in [`harness`].

// Helpers of tests are tests, too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
// One task at a time uses these guards; nothing else waits for them.
#![allow(clippy::await_holding_refcell_ref)]

mod access;
mod agents;
mod announcements;
mod arguments;
mod audit;
mod backups;
mod bridge;
mod buttons;
mod cameras;
mod client_library;
mod contract;
mod crash;
mod database;
mod directory;
mod discovery;
mod durability;
mod faults;
mod files;
mod golden;
mod harness;
mod history;
mod hostile;
mod http;
mod https;
mod identify;
mod import;
mod job_crash;
mod jobs;
mod keys;
mod led;
mod logins;
mod machine;
mod matrix;
mod mqtt;
mod power;
mod process;
mod queue;
mod replay;
mod resume;
mod rpc;
mod sensors;
mod services;
mod slicers;
mod storm;
mod sudo;
mod traversal;
mod trouble;
mod uploads;
mod vocabulary;
mod vocabulary_rows;
mod web;
mod webcams;
