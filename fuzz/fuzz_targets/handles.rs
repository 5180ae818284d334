//! Fuzzes `targets::handles`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    understudy_fuzz::targets::handles(bytes);
});
