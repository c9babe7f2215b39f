//! Mechanisms: supervisor of tasks, shutdown, logging with rotation, command line of the process.
