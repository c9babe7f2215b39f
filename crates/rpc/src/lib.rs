//! Operation registry, call context, argument decoding, connections and event fan-out, contract writer.
