//! A session against a scripted host, in memory and in virtual time.

mod replay;
mod requests;
mod start;
mod status;
mod trouble;
