//! Link to the firmware host: framing, correlation, state machine, status cache, subscription hub, stores.
