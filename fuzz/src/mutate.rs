//! Fixed mutations of a file, for the corpus in ordinary test runs: the tests of the readers share them.

use understudy_core::Random;

/// Byte flips, interesting values, truncations, insertions, removals, repeated and spliced pieces: one to
/// four of them.
pub fn mutate(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    const WORDS: [&[u8]; 12] = [
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
        b"\xff\xff\xff\x7f",
        b"\0\0\x80\x7f",
        b"\0\0\xc0\x7f",
        b"-1",
        b"nan",
        b"1e39",
        b"99999999999999999999",
        b"{",
        b"]",
        b"\n",
    ];
    let mut out = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let length = out.len().max(1);
        let (a, b) = (random.below(length), random.below(length));
        let (start, end) = (a.min(b).min(out.len()), a.max(b).min(out.len()));
        match random.below(8) {
            0 => out.iter_mut().skip(a).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
            1 => out.iter_mut().skip(a).take(1).for_each(|byte| *byte = random.below(256) as u8),
            2 => out.truncate(a),
            3 => {
                let word = WORDS[random.below(WORDS.len())];
                for (byte, new) in out.iter_mut().skip(a).zip(word) {
                    *byte = *new;
                }
            }
            4 => {
                let word = WORDS[random.below(WORDS.len())];
                out.splice(start..start, word.iter().copied());
            }
            5 => drop(out.drain(start..end.min(start + 16))),
            6 => {
                let piece = out[start..end.min(start + 64)].to_vec();
                out.splice(end..end, piece);
            }
            _ => {
                let from = random.below(other.len().max(1)).min(other.len());
                out.truncate(a);
                out.extend_from_slice(&other[from..]);
            }
        }
    }
    out
}
