//! Thumbnails.
