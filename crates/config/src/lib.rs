//! Configuration files: syntax with spans, includes, secrets, typed options, unknown-option report, reference.
