//! The frame rate that keys were made at, found from their times.

/// Rates that animation is made at, the likeliest first: a sparse curve fits several.
const RATES: [f32; 10] = [30.0, 24.0, 25.0, 60.0, 48.0, 50.0, 120.0, 100.0, 240.0, 15.0];

/// The rate on whose frames all keys lie: a usual one, or the one that the closest keys imply.
/// `None` when there is none; 30 when the keys cannot tell.
pub(super) fn detect_rate<'a>(times: impl Iterator<Item = &'a [f32]> + Clone) -> Option<f32> {
    let fits = |rate: f32| {
        let on_frame = |time: &f32| {
            let place = f64::from(*time) * f64::from(rate);
            (place - place.round()).abs() < 0.01 + place.abs() * 1e-6
        };
        times.clone().flatten().all(on_frame)
    };
    if let Some(rate) = RATES.into_iter().find(|rate| fits(*rate)) {
        return Some(rate);
    }
    let steps = times.clone().flat_map(|times| times.windows(2).map(|pair| pair[1] - pair[0]));
    let closest = steps.filter(|step| *step > 1e-4).fold(f32::INFINITY, f32::min);
    let implied = (1.0 / closest).round();
    (implied >= 1.0 && fits(implied)).then_some(implied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_found_from_key_spacing() {
        let rate = |step: f64, count: usize| {
            let times: Vec<f32> = (0..count).map(|i| (i as f64 * step) as f32).collect();
            detect_rate([times.as_slice()].into_iter())
        };
        assert_eq!(rate(1.0 / 24.0, 50), Some(24.0));
        assert_eq!(rate(1.0 / 30.0, 500), Some(30.0));
        assert_eq!(rate(1.0 / 120.0, 50), Some(120.0));
        assert_eq!(rate(0.5, 3), Some(30.0));
        assert_eq!(rate(1.0 / 90.0, 50), Some(90.0));
        assert_eq!(rate(0.0317, 50), None);
        assert_eq!(detect_rate(std::iter::empty()), Some(30.0));
    }
}
