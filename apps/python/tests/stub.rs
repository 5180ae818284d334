//! The types that editors read are those of the module. What the module does is tested from Python, beside this file.

#[test]
fn the_stub_names_what_the_module_exports() {
    let (stub, source) = (include_str!("../python/understudy/_native.pyi"), include_str!("../src/lib.rs"));
    let named = |line: &str, word: &str| {
        let rest = line.strip_prefix(word)?;
        Some(rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?.to_owned())
    };
    let mut count = 0;
    for line in stub.lines() {
        let Some(name) = named(line, "class ").or_else(|| named(line, "def ")) else { continue };
        let there = [format!("::{name}>"), format!("::{name}, module"), format!("\"{name}\"")];
        assert!(there.iter().any(|text| source.contains(text)), "the module has no {name}");
        count += 1;
    }
    assert_eq!(
        count,
        source.matches("module.add_class").count() + source.matches("wrap_pyfunction!").count() + 2
    );
}
