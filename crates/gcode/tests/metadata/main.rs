//! Metadata of whole files: our own small ones, the shared real ones when present, and hostile ones.

mod compare;
mod real_files;
