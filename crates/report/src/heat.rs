//! Colours for numbers: ramps with even perceptual steps, and the scale that maps a quantity with its
//! unit onto one. The rasteriser paints with it, sheets draw its bar, the page its legend.

use std::sync::OnceLock;
use understudy_core::Vec3;

/// Entries of a ramp's table.
const STEPS: usize = 256;

/// sRGB of a value that is not a number: a grey that no ramp contains.
pub const MISSING: Vec3 = Vec3::new(0.5, 0.5, 0.5);

/// A sequence of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ramp {
    /// Deep violet over blue and green to yellow: for errors and other amounts.
    #[default]
    Lagoon,
    /// Near black over purple and orange to pale yellow.
    Ember,
    /// Blue over white to red: for signed values about zero.
    Balance,
}

/// Lightness, chroma and hue in degrees (OKLCh) that a ramp passes through.
type Stop = (f32, f32, f32);

const LAGOON: [Stop; 6] = [
    (0.27, 0.115, 300.0),
    (0.40, 0.110, 275.0),
    (0.53, 0.090, 225.0),
    (0.66, 0.105, 172.0),
    (0.80, 0.160, 132.0),
    (0.93, 0.165, 106.0),
];

const EMBER: [Stop; 6] = [
    (0.14, 0.030, 290.0),
    (0.30, 0.130, 305.0),
    (0.46, 0.165, 350.0),
    (0.62, 0.180, 28.0),
    (0.79, 0.150, 70.0),
    (0.96, 0.090, 104.0),
];

const BALANCE: [Stop; 5] = [
    (0.42, 0.125, 255.0),
    (0.68, 0.095, 245.0),
    (0.96, 0.004, 100.0),
    (0.68, 0.130, 32.0),
    (0.42, 0.140, 25.0),
];

impl Ramp {
    /// sRGB in 0..=1 at `share` in 0..=1; values outside are brought in, NaN is [`MISSING`].
    pub fn colour(self, share: f32) -> Vec3 {
        if share.is_nan() {
            return MISSING;
        }
        let table = self.table();
        let place = share.clamp(0.0, 1.0) * (STEPS - 1) as f32;
        let first = (place as usize).min(STEPS - 2);
        table[first].lerp(table[first + 1], place - first as f32)
    }

    /// The ramp as bytes.
    pub fn colour_bytes(self, share: f32) -> [u8; 3] {
        self.colour(share).to_array().map(|v| (v * 255.0 + 0.5) as u8)
    }

    /// Evenly spaced colours, made once.
    fn table(self) -> &'static [Vec3; STEPS] {
        static TABLES: [OnceLock<[Vec3; STEPS]>; 3] = [const { OnceLock::new() }; 3];
        let stops: &[Stop] = match self {
            Self::Lagoon => &LAGOON,
            Self::Ember => &EMBER,
            Self::Balance => &BALANCE,
        };
        TABLES[self as usize].get_or_init(|| even_table(stops))
    }
}

/// Samples a smooth path through the stops so that equal steps have equal length in OKLab.
fn even_table(stops: &[Stop]) -> [Vec3; STEPS] {
    const FINE: usize = 4096;
    let points: Vec<Vec3> = stops
        .iter()
        .map(|&(lightness, chroma, hue)| {
            let (sine, cosine) = hue.to_radians().sin_cos();
            Vec3::new(lightness, chroma * cosine, chroma * sine)
        })
        .collect();
    let path: Vec<Vec3> = (0..=FINE).map(|i| spline(&points, i as f32 / FINE as f32)).collect();
    let mut lengths = vec![0.0f32];
    for pair in path.windows(2) {
        lengths.push(lengths[lengths.len() - 1] + pair[0].distance(pair[1]));
    }
    let total = lengths[FINE];
    let mut after = 1;
    std::array::from_fn(|step| {
        let wanted = total * step as f32 / (STEPS - 1) as f32;
        while after < FINE && lengths[after] < wanted {
            after += 1;
        }
        let span = (lengths[after] - lengths[after - 1]).max(f32::MIN_POSITIVE);
        let between = ((wanted - lengths[after - 1]) / span).clamp(0.0, 1.0);
        oklab_to_srgb(path[after - 1].lerp(path[after], between))
    })
}

/// A Catmull–Rom curve through points, `share` in 0..=1.
fn spline(points: &[Vec3], share: f32) -> Vec3 {
    let last = points.len() - 1;
    let place = share * last as f32;
    let first = (place as usize).min(last - 1);
    let t = place - first as f32;
    let at = |index: isize| {
        // Beyond the ends the line goes straight on.
        if index < 0 {
            points[0] * 2.0 - points[1]
        } else if index as usize > last {
            points[last] * 2.0 - points[last - 1]
        } else {
            points[index as usize]
        }
    };
    let i = first as isize;
    let (a, b, c, d) = (at(i - 1), at(i), at(i + 1), at(i + 2));
    b + ((c - a) * t
        + (a * 2.0 - b * 5.0 + c * 4.0 - d) * (t * t)
        + (b * 3.0 - a - c * 3.0 + d) * (t * t * t))
        * 0.5
}

/// OKLab (Ottosson 2020) to sRGB in 0..=1; colours outside are cut.
fn oklab_to_srgb(lab: Vec3) -> Vec3 {
    let l = (lab.x + 0.396_337_78 * lab.y + 0.215_803_76 * lab.z).powi(3);
    let m = (lab.x - 0.105_561_346 * lab.y - 0.063_854_17 * lab.z).powi(3);
    let s = (lab.x - 0.089_484_18 * lab.y - 1.291_485_5 * lab.z).powi(3);
    let linear = Vec3::new(
        4.076_741_7 * l - 3.307_711_6 * m + 0.230_969_94 * s,
        -1.268_438 * l + 2.609_757_4 * m - 0.341_319_38 * s,
        -0.004_196_086_3 * l - 0.703_418_6 * m + 1.707_614_7 * s,
    );
    crate::raster::to_srgb(linear)
}

/// A range of a quantity on a ramp.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatScale {
    /// The value at the dark end.
    pub low: f32,
    /// The value at the bright end.
    pub high: f32,
    /// What the numbers are, with their unit: "error, mm".
    pub label: String,
    /// Which colours.
    pub ramp: Ramp,
    /// Whether some values lie above `high`; the bar then ends in an arrow.
    pub clipped: bool,
}

impl HeatScale {
    /// A scale from `low` to `high`; a range without width or with bad numbers is widened to one that
    /// can be drawn.
    pub fn new(low: f32, high: f32, label: impl Into<String>) -> Self {
        let low = if low.is_finite() { low } else { 0.0 };
        let high = if high.is_finite() && high > low { high } else { low + low.abs().max(1.0) };
        Self { low, high, label: label.into(), ramp: Ramp::default(), clipped: false }
    }

    /// A scale from zero to the given percentile (0..=100) of the finite values, so that a few
    /// outliers do not darken the rest; the bar says when some were cut.
    pub fn covering(values: &[f32], percentile: f32, label: impl Into<String>) -> Self {
        let mut sorted: Vec<f32> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_unstable_by(f32::total_cmp);
        let share = if percentile.is_finite() { percentile.clamp(0.0, 100.0) / 100.0 } else { 1.0 };
        let high = sorted.get(((sorted.len().max(1) - 1) as f32 * share).round() as usize);
        let scale = Self::new(0.0, high.copied().unwrap_or(1.0), label);
        let clipped = sorted.last().is_some_and(|last| *last > scale.high);
        Self { clipped, ..scale }
    }

    /// The same scale on another ramp.
    pub fn ramp(mut self, ramp: Ramp) -> Self {
        self.ramp = ramp;
        self
    }

    /// Where a value lies, 0..=1 within the range; NaN stays NaN.
    pub fn share(&self, value: f32) -> f32 {
        (value - self.low) / (self.high - self.low)
    }

    /// sRGB in 0..=1 of a value; [`MISSING`] for NaN.
    pub fn colour(&self, value: f32) -> Vec3 {
        self.ramp.colour(self.share(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raster::to_linear;

    fn srgb_to_oklab(colour: Vec3) -> Vec3 {
        let c = to_linear(colour);
        let l = (0.412_221_46 * c.x + 0.536_332_55 * c.y + 0.051_445_995 * c.z).cbrt();
        let m = (0.211_903_5 * c.x + 0.680_699_5 * c.y + 0.107_396_96 * c.z).cbrt();
        let s = (0.088_302_46 * c.x + 0.281_718_85 * c.y + 0.629_978_7 * c.z).cbrt();
        Vec3::new(
            0.210_454_26 * l + 0.793_617_8 * m - 0.004_072_047 * s,
            1.977_998_5 * l - 2.428_592_2 * m + 0.450_593_7 * s,
            0.025_904_037 * l + 0.782_771_77 * m - 0.808_675_77 * s,
        )
    }

    #[test]
    fn steps_are_even_and_lightness_rises() {
        for ramp in [Ramp::Lagoon, Ramp::Ember] {
            let colours: Vec<Vec3> = (0..65).map(|i| srgb_to_oklab(ramp.colour(i as f32 / 64.0))).collect();
            let steps: Vec<f32> = colours.windows(2).map(|p| p[0].distance(p[1])).collect();
            let mean = steps.iter().sum::<f32>() / steps.len() as f32;
            for (index, step) in steps.iter().enumerate() {
                assert!((step / mean - 1.0).abs() < 0.2, "{ramp:?} step {index}: {step} of {mean}");
            }
            assert!(colours.windows(2).all(|p| p[1].x > p[0].x), "{ramp:?}");
        }
    }

    #[test]
    fn balance_is_lightest_in_the_middle() {
        let light = |share| srgb_to_oklab(Ramp::Balance.colour(share)).x;
        assert!(light(0.5) > 0.94 && light(0.0) < 0.5 && light(1.0) < 0.5);
    }

    #[test]
    fn bad_values_are_shown_as_missing_and_bad_ranges_widened() {
        let scale = HeatScale::new(2.0, 2.0, "cm");
        assert!(scale.high > scale.low);
        assert_eq!(scale.colour(f32::NAN), MISSING);
        assert_eq!(scale.colour(f32::INFINITY), Ramp::Lagoon.colour(1.0));
        assert_eq!(HeatScale::covering(&[f32::NAN], 99.0, "").high, 1.0);
        let all = HeatScale::covering(&[1.0, 3.0, f32::NAN, 2.0], 100.0, "");
        assert_eq!((all.high, all.clipped), (3.0, false));
        let most = HeatScale::covering(&[1.0, 3.0, f32::NAN, 2.0], 50.0, "");
        assert_eq!((most.high, most.clipped), (2.0, true));
    }
}
