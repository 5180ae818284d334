//! A small random generator whose numbers never change: the same seed gives the same dataset in every
//! version, which no general-purpose crate promises for its distributions.

/// SplitMix64 (Steele et al. 2014): a counter and a mixing function, so that pose `i` of a dataset has
/// its own stream whatever thread draws it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A stream for a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// An independent stream for item `index` of a seed.
    pub fn stream(seed: u64, index: u64) -> Self {
        let mut mixer = Self::new(seed ^ index.wrapping_mul(0xd134_2543_de82_ef95));
        let state = mixer.next_u64() ^ index.rotate_left(32);
        Self { state }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `[low, high)`.
    pub fn uniform(&mut self, low: f32, high: f32) -> f32 {
        (f64::from(low) + (f64::from(high) - f64::from(low)) * self.unit()) as f32
    }

    /// Uniform in `0..count`.
    ///
    /// # Panics
    /// When `count` is zero.
    pub fn below(&mut self, count: usize) -> usize {
        assert!(count > 0, "nothing to choose from");
        (self.unit() * count as f64) as usize % count
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Normal about the middle of `[low, high]` with `σ = (high − low)/3`, drawn again while outside:
    /// the range is ±1.5 σ (body-twin paper, section 2.4; its text, not its formula 2.8).
    pub fn truncated_normal(&mut self, low: f32, high: f32) -> f32 {
        let (low, high) = (f64::from(low), f64::from(high));
        loop {
            let value = (low + high) / 2.0 + self.normal() * (high - low) / 3.0;
            if value >= low && value <= high {
                return value as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_never_change() {
        assert_eq!(Random::new(1).next_u64(), 0x910a_2dec_8902_5cc1);
    }

    #[test]
    fn truncated_normal_has_the_spread_of_its_law() {
        let mut random = Random::stream(3, 5);
        let draws: Vec<f64> = (0..200_000).map(|_| f64::from(random.truncated_normal(-30.0, 60.0))).collect();
        assert!(draws.iter().all(|v| (-30.0..=60.0).contains(v)));
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let spread = (draws.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / draws.len() as f64).sqrt();
        // A normal cut at ±1.5 σ keeps 0.7426 σ; σ = 30 here. Standard errors: 0.05 and 0.035.
        assert!((mean - 15.0).abs() < 0.25, "{mean}");
        assert!((spread - 0.7426 * 30.0).abs() < 0.2, "{spread}");
    }

    #[test]
    fn streams_differ() {
        let mut seen: Vec<u64> = (0..1000).map(|i| Random::stream(9, i).next_u64()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1000);
    }
}
