#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::slic3r_pe(data));
