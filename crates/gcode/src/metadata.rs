//! Metadata of sliced files.
