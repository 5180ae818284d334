//! Fuzzes `targets::live_link`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    understudy_fuzz::targets::live_link(bytes);
});
