//! A simulated firmware host: the protocol of the real one over a plain motion and heater model.
