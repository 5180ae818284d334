//! Fuzzes `twin::twin`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    understudy_fuzz::twin::twin(bytes);
});
