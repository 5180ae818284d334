//! A loaded twin takes little more memory than its file: weights exist once, as kernels read them. Twins of your own are
//! measured too: `UNDERSTUDY_TWINS=rook.twin:mira.twin cargo test -p understudy-runtime --test memory -- --nocapture`.

#[path = "common/counting.rs"]
mod counting;
#[path = "common/twins.rs"]
mod twins;

use counting::bytes_in_use;
use understudy_runtime::Twin;

#[test]
fn a_loaded_twin_takes_little_more_than_its_file() {
    let made =
        [("body", twins::body()), ("diff", twins::diff()), ("face", twins::face()), ("skin", twins::skin())];
    let made = made.map(|(name, twin)| (name.to_owned(), twin.to_bytes().expect("a valid twin")));
    let named = std::env::var("UNDERSTUDY_TWINS").unwrap_or_default();
    let named = named.split(':').filter(|path| !path.is_empty());
    let read = |path: &str| (path.to_owned(), std::fs::read(path).expect("a readable file"));
    for (name, file) in made.into_iter().chain(named.map(read)) {
        let before = bytes_in_use();
        let twin = Twin::parse(&file).expect("what we wrote");
        let share = (bytes_in_use() - before) as f64 / file.len() as f64;
        eprintln!("{name}: {share:.2} times its file of {} bytes", file.len());
        assert!(share <= 1.3, "{name}: {share:.2} times the {} bytes of its file", file.len());
        drop(twin);
    }
}
