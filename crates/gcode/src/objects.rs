//! Object markers.
