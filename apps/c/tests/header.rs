//! The header is made from the source. `UNDERSTUDY_BLESS=1 cargo test -p understudy-c --test header` writes it anew.

use std::path::Path;

#[test]
fn the_header_says_what_the_source_exports() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let bindings = cbindgen::Builder::new()
        .with_src(root.join("src/lib.rs"))
        .with_config(config)
        .generate()
        .expect("a header");
    let mut made = Vec::new();
    bindings.write(&mut made);
    let path = root.join("include/understudy.h");
    if std::env::var_os("UNDERSTUDY_BLESS").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let kept = std::fs::read(&path).unwrap_or_default();
    assert!(
        kept == made,
        "include/understudy.h is not what src exports: UNDERSTUDY_BLESS=1 cargo test -p understudy-c --test header"
    );
}
