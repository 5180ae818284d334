//! How fast one thread of this machine reads memory: what bounds a twin whose weights are read once per pose.

use super::bench::time;
use std::hint::black_box;

/// Reads a block of so many bytes again and again on one thread; the best of many rounds, GB/s.
pub fn bandwidth_gb_s(bytes: usize) -> f64 {
    const LEAST: usize = 64 << 10;
    let block = vec![1u64; bytes.max(LEAST) / 8];
    // Rounds long enough for the clock.
    let passes = ((32 << 20) / (block.len() * 8)).max(1);
    let round = || {
        let milliseconds = time(passes, |_| {
            black_box(sum_words(black_box(&block)));
        });
        (block.len() * 8) as f64 / (milliseconds * 1e6)
    };
    (0..40).map(|_| round()).fold(0.0, f64::max)
}

/// What a machine can do is at least what was seen: a moment in which others were busy must not pass for its limit.
pub fn at_least(measured: f64, reached: &[f64]) -> f64 {
    reached.iter().copied().fold(measured, f64::max)
}

/// Adds words up, as many at a time as the machine loads.
fn sum_words(words: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(words: &[u64]) -> u64 {
            sum_in_lanes(words)
        }
        // SAFETY: the line above found the feature that the function is compiled for.
        return unsafe { wide(words) };
    }
    sum_in_lanes(words)
}

#[inline(always)]
fn sum_in_lanes(words: &[u64]) -> u64 {
    let mut sums = [0u64; 32];
    let lines = words.chunks_exact(32);
    let rest: u64 = lines.remainder().iter().sum();
    for line in lines {
        sums.iter_mut().zip(line).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
    }
    sums.iter().fold(rest, |all, sum| all.wrapping_add(*sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read() {
        for count in [0, 1, 31, 32, 33, 1000] {
            let words: Vec<u64> = (0..count).collect();
            assert_eq!(sum_words(&words), words.iter().sum::<u64>());
        }
    }

    #[test]
    fn nothing_exceeds_what_a_machine_can_do() {
        assert_eq!(at_least(10.0, &[10.3, 4.0]), 10.3);
        assert_eq!(at_least(10.0, &[9.0]), 10.0);
        // From a cache a block is read no slower than from memory, but for noise.
        assert!(bandwidth_gb_s(128 << 10) > 0.8 * bandwidth_gb_s(256 << 20));
    }
}
