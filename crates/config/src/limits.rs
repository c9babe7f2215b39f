//! Every bound of the configuration code, in one place.

/// Largest size of one configuration or secrets file in bytes; real ones stay below 100 kB.
pub const MAX_FILE_SIZE: usize = 1024 * 1024;

/// Largest size in bytes of a main file and all its includes together.
pub const MAX_TOTAL_SIZE: usize = 8 * 1024 * 1024;

/// Most files that one configuration may consist of, the main file included.
pub const MAX_FILES: usize = 128;

/// Deepest nesting of includes; the main file has depth 0.
pub const MAX_INCLUDE_DEPTH: usize = 16;

/// Most errors reported for one file; a binary file given by mistake would yield one per line.
pub const MAX_ERRORS_PER_FILE: usize = 100;

/// Most characters of an offending value that a message repeats.
pub const MAX_SHOWN_VALUE: usize = 60;
