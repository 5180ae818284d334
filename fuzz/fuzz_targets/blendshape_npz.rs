//! Fuzzes `targets::blendshape_npz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    understudy_fuzz::targets::blendshape_npz(bytes);
});
