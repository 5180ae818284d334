//! The examples run and find what they look for.

#[path = "../examples/a_take.rs"]
mod a_take;
#[path = "../examples/one_scan.rs"]
mod one_scan;
#[path = "../examples/partial_markers.rs"]
mod partial_markers;

#[test]
fn examples_end_well() {
    one_scan::main().expect("one scan");
    a_take::main().expect("a take");
    partial_markers::main().expect("partial markers");
}
