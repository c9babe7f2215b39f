//! Options of `[data_store]`.

config::options! {
    /// Short-term memory of temperatures and of the console.
    pub struct DataStoreOptions: "data_store" {
        /// Samples kept for each temperature, fan and heater series, one per second.
        temperature_store_size: u32 { min 1, max 86400 } = 1200,
        /// Console lines kept.
        gcode_store_size: u32 { min 1, max 100000 } = 1000,
    }
}
