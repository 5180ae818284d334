//! A loaded twin takes little more memory than its file: weights exist once, as kernels read them.

#[path = "common/counting.rs"]
mod counting;
#[path = "common/twins.rs"]
mod twins;

use counting::bytes_in_use;
use understudy_runtime::Twin;

#[test]
fn a_loaded_twin_takes_little_more_than_its_file() {
    for (name, twin) in [("body", twins::body()), ("face", twins::face())] {
        let file = twin.to_bytes().expect("a valid twin");
        drop(twin);
        let before = bytes_in_use();
        let twin = Twin::parse(&file).expect("what we wrote");
        let share = (bytes_in_use() - before) as f64 / file.len() as f64;
        assert!(share <= 1.3, "{name}: {share:.2} times the {} bytes of its file", file.len());
        drop(twin);
    }
}
