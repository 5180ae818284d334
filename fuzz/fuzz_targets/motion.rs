//! Fuzzes `motion::motion`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    understudy_fuzz::motion::motion(bytes);
});
