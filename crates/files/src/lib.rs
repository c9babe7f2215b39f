//! Roots, path safety, upload, download, listing.
