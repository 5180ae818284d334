//! Scales and their ticks: round numbers that a reader expects, linear or logarithmic, for any finite
//! range. Plots and colour bars share them.

/// How values are spread along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal differences are equally far apart.
    #[default]
    Linear,
    /// Equal ratios are equally far apart; only values above zero can be shown.
    Log,
}

/// A value worth a mark, and how it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Where.
    pub value: f64,
    /// What is written there.
    pub label: String,
}

/// A finite range with a scale; `low < high` always holds, and both are above zero on a log scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
}

impl Axis {
    /// Whether a value can be shown on a scale.
    pub fn shows(value: f64, scale: Scale) -> bool {
        value.is_finite() && (scale == Scale::Linear || value > 0.0)
    }

    /// The range of the values that can be shown; `None` when there is none. A range without width is
    /// widened about its value.
    pub fn covering(values: impl IntoIterator<Item = f64>, scale: Scale) -> Option<Self> {
        let shown = values.into_iter().filter(|v| Self::shows(*v, scale));
        let (low, high) = shown.fold(None, |range: Option<(f64, f64)>, v| {
            Some(range.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
        })?;
        Some(Self::new(low, high, scale))
    }

    /// A range; bad or empty ones are widened to one that can be drawn.
    pub fn new(low: f64, high: f64, scale: Scale) -> Self {
        let (low, high) = if low <= high { (low, high) } else { (high, low) };
        if !(Self::shows(low, scale) && Self::shows(high, scale)) {
            return match scale {
                Scale::Linear => Self { low: 0.0, high: 1.0, scale },
                Scale::Log => Self { low: 0.1, high: 10.0, scale },
            };
        }
        // The largest numbers leave no room to widen; halving keeps every sum finite.
        let [low, high] = [low, high].map(|v| v.clamp(-f64::MAX / 4.0, f64::MAX / 4.0));
        match scale {
            Scale::Linear if high - low > low.abs().max(high.abs()) * 1e-12 => Self { low, high, scale },
            Scale::Linear => {
                let middle = low / 2.0 + high / 2.0;
                let half = if middle == 0.0 { 1.0 } else { middle.abs() * 0.1 };
                Self { low: middle - half, high: middle + half, scale }
            }
            Scale::Log => {
                // Below this the logarithm of a ratio loses its digits.
                let low = low.max(1e-290);
                let high = high.max(low);
                if high / low > 1.0 + 1e-9 {
                    Self { low, high, scale }
                } else {
                    Self { low: low / 2.0, high: high * 2.0, scale }
                }
            }
        }
    }

    /// The lower end.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The upper end.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// The same with zero inside, for bars and counts; nothing changes on a log scale.
    pub fn with_zero(self) -> Self {
        match self.scale {
            Scale::Linear => Self { low: self.low.min(0.0), high: self.high.max(0.0), ..self },
            Scale::Log => self,
        }
    }

    /// The same with both ends moved out to ticks; on a log scale to 1, 2 or 5 times a power of ten.
    pub fn rounded(self, count: usize) -> Self {
        let (low, high) = match self.scale {
            Scale::Linear => {
                let step = self.step(count);
                let mut low = (self.low / step).floor() * step;
                let high = (self.high / step).ceil() * step;
                // An axis of amounts starts at zero when it nearly does.
                if self.low >= 0.0 && low < 2.0 * step {
                    low = 0.0;
                }
                (low, high)
            }
            Scale::Log => {
                let round = |value: f64, fits: fn(f64, f64) -> bool, upward: bool| {
                    let power = value.log10().floor() as i32;
                    let mut steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * 10f64.powi(power));
                    if !upward {
                        steps.reverse();
                    }
                    steps.into_iter().find(|step| fits(*step, value)).unwrap_or(value)
                };
                (
                    round(self.low, |step, low| step <= low, false),
                    round(self.high, |step, high| step >= high, true),
                )
            }
        };
        if low.is_finite() && high.is_finite() && low < high && Self::shows(low, self.scale) {
            Self { low, high, ..self }
        } else {
            self
        }
    }

    /// Where a value lies, 0 at the lower end, 1 at the upper; outside values go beyond. NaN for what
    /// cannot be shown.
    pub fn place(&self, value: f64) -> f64 {
        match self.scale {
            _ if !Self::shows(value, self.scale) => f64::NAN,
            Scale::Linear => (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0),
            Scale::Log => (value.log10() - self.low.log10()) / (self.high.log10() - self.low.log10()),
        }
    }

    /// The step between ticks: 1, 2 or 5 times a power of ten, about `count` in the range.
    fn step(&self, count: usize) -> f64 {
        let raw = (self.high - self.low) / count.max(1) as f64;
        let power = 10f64.powf(raw.log10().floor()).max(f64::MIN_POSITIVE);
        let ratio = raw / power;
        let factor = if ratio < 1.5 {
            1.0
        } else if ratio < 3.5 {
            2.0
        } else if ratio < 7.5 {
            5.0
        } else {
            10.0
        };
        factor * power
    }

    /// About `count` ticks inside the range, ascending, never more than twice as many.
    pub fn ticks(&self, count: usize) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => self.linear_ticks(count),
            Scale::Log => self.log_ticks(count),
        }
    }

    fn linear_ticks(&self, count: usize) -> Vec<Tick> {
        let step = self.step(count);
        let slack = 1e-9 * (self.high - self.low);
        let first = ((self.low - slack) / step).ceil();
        (0..=2 * count.max(1))
            .map(|i| (first + i as f64) * step)
            .take_while(|value| *value <= self.high + slack)
            .map(|value| Tick { value, label: format_step(value, step) })
            .collect()
    }

    fn log_ticks(&self, count: usize) -> Vec<Tick> {
        let (low, high) = (self.low.log10(), self.high.log10());
        let decades = high - low;
        if decades < 1.0 {
            // Too narrow for powers of ten: round numbers, unevenly spaced.
            let linear = Self { scale: Scale::Linear, ..*self };
            return linear.linear_ticks(count).into_iter().filter(|tick| tick.value > 0.0).collect();
        }
        let stride = (decades / count.max(1) as f64).ceil().max(1.0) as i32;
        let factors: &[f64] = match decades {
            _ if decades * 3.0 <= count as f64 * 1.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let mut out = Vec::new();
        let mut power = (low - 1e-9).floor() as i32;
        while f64::from(power) <= high + 1e-9 {
            for factor in factors {
                let value = factor * 10f64.powi(power);
                let place = value.log10();
                if place >= low - 1e-9 && place <= high + 1e-9 && power.rem_euclid(stride) == 0 {
                    out.push(Tick { value, label: format_number(value, 1) });
                }
            }
            power += 1;
        }
        out
    }
}

/// A multiple of `step` with just the decimals that tell it from its neighbours.
fn format_step(value: f64, step: f64) -> String {
    let size = value.abs().max(step);
    if !(1e-4..1e7).contains(&step) && !(1e-3..1e7).contains(&size) || size >= 1e9 {
        // Digits between the largest place of the value and that of the step.
        let digits = (size.log10().floor() - step.log10().floor()).clamp(0.0, 15.0) as usize;
        return exponent_form(if value.abs() < step * 0.5 { 0.0 } else { value }, digits);
    }
    let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    group_thousands(
        text.strip_prefix('-').filter(|t| t.chars().all(|c| c == '0' || c == '.')).unwrap_or(&text),
    )
}

/// A number for people: `digits` significant digits, thousands in groups, an exponent for very large and
/// very small ones.
pub fn format_number(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "n/a".into() } else { format!("{value}").replace("inf", "∞") };
    }
    let digits = digits.clamp(1, 16);
    // Rounding first may carry into the next power: 9.99 to two digits is 10.
    let rounded: f64 = format!("{:.*e}", digits - 1, value).parse().unwrap_or(value);
    let rounded = if rounded.is_finite() { rounded } else { value };
    if rounded == 0.0 {
        return "0".into();
    }
    let power = rounded.abs().log10().floor();
    if !(-4.0..7.0).contains(&power) {
        return exponent_form(rounded, digits - 1);
    }
    let decimals = (digits as f64 - 1.0 - power).max(0.0) as usize;
    let text = format!("{rounded:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    group_thousands(text)
}

/// `1.5e9`, without zeros that say nothing.
fn exponent_form(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let sign = if value < 0.0 { "−" } else { "" };
    let text = format!("{:.digits$e}", value.abs());
    match text.split_once('e') {
        Some((mantissa, exponent)) if mantissa.contains('.') => {
            format!("{sign}{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => format!("{sign}{text}"),
    }
}

/// Commas between thousands, from 10,000 on, and a true minus sign.
pub(crate) fn group_thousands(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("−", rest));
    let (whole, fraction) = rest.split_once('.').map_or((rest, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if whole.len() > 4 && place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, scale: Scale) -> Vec<String> {
        Axis::new(low, high, scale).ticks(5).into_iter().map(|t| t.label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(0.0, 1.0, Scale::Linear), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(-3.2, 7.9, Scale::Linear), ["−2", "0", "2", "4", "6"]);
        assert_eq!(
            labels(0.0, 50_000.0, Scale::Linear),
            ["0", "10,000", "20,000", "30,000", "40,000", "50,000"]
        );
        assert_eq!(labels(0.02, 600.0, Scale::Log), ["0.1", "1", "10", "100"]);
        assert_eq!(labels(1.0, 6.0, Scale::Log), ["1", "2", "3", "4", "5", "6"]);
        assert_eq!(
            labels(0.0, 3e12, Scale::Linear),
            ["0", "5e11", "1e12", "1.5e12", "2e12", "2.5e12", "3e12"]
        );
    }

    #[test]
    fn every_range_gives_a_few_distinct_ticks_inside_it() {
        let ends = [-f64::MAX, -1e30, -7.0, -1e-9, 0.0, 1e-300, 3.3e-7, 0.1, 0.1 + 1e-17, 5.0, 1e9, f64::MAX];
        for scale in [Scale::Linear, Scale::Log] {
            for low in ends {
                for high in ends {
                    let axis = Axis::new(low, high, scale);
                    assert!(axis.low < axis.high, "{low} {high}");
                    for axis in [axis, axis.rounded(5), axis.with_zero()] {
                        let ticks = axis.ticks(5);
                        assert!(ticks.len() <= 11 && !ticks.is_empty(), "{axis:?}: {ticks:?}");
                        for pair in ticks.windows(2) {
                            assert!(
                                pair[0].value < pair[1].value && pair[0].label != pair[1].label,
                                "{axis:?}: {pair:?}"
                            );
                        }
                        for tick in ticks {
                            assert!(
                                (-1e-6..=1.0 + 1e-6).contains(&axis.place(tick.value)),
                                "{axis:?} {tick:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rounding_moves_ends_to_round_numbers_outside() {
        let ends = |low, high, scale| {
            let axis = Axis::new(low, high, scale).rounded(5);
            (axis.low, axis.high)
        };
        assert_eq!(ends(1.3, 9.2, Scale::Linear), (0.0, 10.0));
        assert_eq!(ends(-0.4, 93.0, Scale::Linear), (-20.0, 100.0));
        assert_eq!(ends(0.013, 1.01, Scale::Log), (0.01, 2.0));
        assert_eq!(ends(1.0, 1000.0, Scale::Log), (1.0, 1000.0));
    }

    #[test]
    fn what_cannot_be_shown_is_left_out() {
        assert_eq!(Axis::covering([f64::NAN, f64::INFINITY], Scale::Linear), None);
        assert_eq!(Axis::covering([-1.0, 0.0], Scale::Log), None);
        let axis = Axis::covering([f64::NAN, 4.0], Scale::Linear).expect("one value");
        assert!(axis.low < 4.0 && axis.high > 4.0);
        assert!(axis.place(f64::NAN).is_nan());
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(format_number(0.123_456, 3), "0.123");
        assert_eq!(format_number(1_234_567.0, 3), "1,230,000");
        assert_eq!(format_number(9.999, 2), "10");
        assert_eq!(format_number(-4e12, 3), "−4e12");
        assert_eq!(format_number(f64::NAN, 3), "n/a");
        assert_eq!(format_number(0.0, 3), "0");
        assert_eq!(format_number(2.5e-7, 3), "2.5e-7");
    }
}
