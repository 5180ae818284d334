//! Fuzzes `targets::mesh_sequence`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    understudy_fuzz::targets::mesh_sequence(bytes);
});
