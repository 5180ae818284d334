//! Fuzzes `protocol::protocol`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    understudy_fuzz::protocol::protocol(bytes);
});
