//! Printer operations: pass-through, status subscriptions, print control, temperature and gcode stores.
