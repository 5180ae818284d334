//! Fuzzes `targets::usd`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    understudy_fuzz::targets::usd(bytes);
});
