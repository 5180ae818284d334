//! Light from far away, as nine spherical-harmonic coefficients per colour (6.2): how much reaches a surface by its normal.

use understudy_core::{DVec3, Random, Vec3};

/// Number of coefficients: the first three bands.
pub const TERMS: usize = 9;

/// `E(n) = Σ_b γ_b Y_b(n)`: light that a white, open surface of normal n gives back, red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Light {
    /// γ, `[9]` of red, green, blue.
    pub coefficients: [[f32; 3]; TERMS],
}

/// Y_b at a unit normal, and its derivatives with the normal taken as free in space.
fn basis(n: DVec3) -> ([f64; TERMS], [DVec3; TERMS]) {
    const C0: f64 = 0.282_094_791_773_878_14;
    const C1: f64 = 0.488_602_511_902_919_9;
    const C2: f64 = 1.092_548_430_592_079_2;
    const C20: f64 = 0.315_391_565_252_520_05;
    const C22: f64 = 0.546_274_215_296_039_6;
    let (x, y, z) = (n.x, n.y, n.z);
    let values = [
        C0,
        C1 * y,
        C1 * z,
        C1 * x,
        C2 * x * y,
        C2 * y * z,
        C20 * (3.0 * z * z - 1.0),
        C2 * x * z,
        C22 * (x * x - y * y),
    ];
    let slopes = [
        DVec3::ZERO,
        DVec3::new(0.0, C1, 0.0),
        DVec3::new(0.0, 0.0, C1),
        DVec3::new(C1, 0.0, 0.0),
        DVec3::new(C2 * y, C2 * x, 0.0),
        DVec3::new(0.0, C2 * z, C2 * y),
        DVec3::new(0.0, 0.0, 6.0 * C20 * z),
        DVec3::new(C2 * z, 0.0, C2 * x),
        DVec3::new(2.0 * C22 * x, -2.0 * C22 * y, 0.0),
    ];
    (values, slopes)
}

impl Light {
    /// The same from everywhere.
    pub fn even(colour: [f32; 3]) -> Self {
        let mut light = Self { coefficients: [[0.0; 3]; TERMS] };
        light.coefficients[0] = colour.map(|value| value / 0.282_094_8);
        light
    }

    /// Adds a lamp far away in direction `towards`; a white surface that faces it gains `colour`, up to what nine
    /// coefficients can hold of the clamped cosine (Ramamoorthi and Hanrahan 2001: factors 1, 2/3 and 1/4 per band).
    pub fn with_lamp(mut self, towards: Vec3, colour: [f32; 3]) -> Self {
        let (values, _) = basis(towards.as_dvec3().normalize_or(DVec3::Z));
        let bands = [1.0, 2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0, 0.25, 0.25, 0.25, 0.25, 0.25];
        for (term, row) in self.coefficients.iter_mut().enumerate() {
            for (out, colour) in row.iter_mut().zip(colour) {
                *out += (std::f64::consts::PI * bands[term] * values[term]) as f32 * colour;
            }
        }
        self
    }

    /// What the rendered style is lit by: a key from the upper left of the picture, a fill, and a sky.
    pub fn studio() -> Self {
        Self::even([0.30, 0.31, 0.33])
            .with_lamp(Vec3::new(-0.55, 0.55, 0.75), [0.62, 0.60, 0.56])
            .with_lamp(Vec3::new(0.8, 0.1, 0.45), [0.16, 0.18, 0.22])
    }

    /// Another room per seed: a key light from somewhere before the face, a coloured sky, a weak light from the side.
    pub fn room(random: &mut Random) -> Self {
        let warmth = random.uniform(-0.08, 0.10);
        let sky = random.uniform(0.28, 0.42);
        let key = Vec3::new(random.uniform(-0.9, 0.9), random.uniform(0.15, 0.9), random.uniform(0.6, 1.0));
        let strength = random.uniform(0.45, 0.65);
        let side = Vec3::new(-key.x.signum(), random.uniform(-0.2, 0.3), random.uniform(0.1, 0.6));
        let fill = random.uniform(0.08, 0.22);
        Self::even([sky * (1.0 - 0.5 * warmth), sky, sky * (1.0 + warmth)])
            .with_lamp(key, [strength * (1.0 + warmth), strength, strength * (1.0 - warmth)])
            .with_lamp(side, [fill, fill, fill * 1.1])
    }

    /// E(n) of a unit normal.
    pub fn irradiance(&self, normal: Vec3) -> [f32; 3] {
        let (values, _) = basis(normal.as_dvec3());
        [0, 1, 2]
            .map(|c| (0..TERMS).map(|b| self.coefficients[b][c] * values[b] as f32).sum::<f32>().max(0.0))
    }

    /// E(n) and `∂E/∂n`, a row per colour. Not cut at zero: a solver wants it smooth.
    pub fn irradiance_with_slopes(&self, normal: DVec3) -> ([f64; 3], [DVec3; 3]) {
        let (values, slopes) = basis(normal);
        let of = |c: usize, b: usize| f64::from(self.coefficients[b][c]);
        let light = [0, 1, 2].map(|c| (0..TERMS).map(|b| of(c, b) * values[b]).sum());
        let by_normal = [0, 1, 2].map(|c| (0..TERMS).map(|b| slopes[b] * of(c, b)).sum());
        (light, by_normal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_testkit::gradient::directional_miss;

    #[test]
    fn light_has_right_slopes_and_comes_from_its_lamp() {
        let light = Light::studio();
        let normal = DVec3::new(0.3, -0.5, 0.7);
        let (_, slopes) = light.irradiance_with_slopes(normal);
        for channel in 0..3 {
            let cost = |x: &[f64]| light.irradiance_with_slopes(DVec3::new(x[0], x[1], x[2])).0[channel];
            let miss = directional_miss(cost, &normal.to_array(), &slopes[channel].to_array(), 1e-4, 8, 1);
            assert!(miss < 1e-7, "{miss}");
        }
        let lamp = Light::even([0.0; 3]).with_lamp(Vec3::Y, [1.0; 3]);
        assert!((lamp.irradiance(Vec3::Y)[0] - 1.0).abs() < 0.07);
        assert!(lamp.irradiance(Vec3::NEG_Y)[1] < 0.07);
        let even = Light::even([0.2, 0.4, 0.6]).irradiance(Vec3::X);
        assert!((even[0] - 0.2).abs() < 1e-6 && (even[2] - 0.6).abs() < 1e-6);
    }
}
