//! Light on a surface: a warm key, a cool fill, a rim from behind, a sky above and a floor below, in
//! linear light. The lights hang on the camera's heading, so that every view is lit alike.

use super::Camera;
use std::sync::OnceLock;
use understudy_core::Vec3;

/// What the surface looks like at a point; colours are linear.
pub(super) struct Surface {
    /// Unit normal on the viewer's side.
    pub normal: Vec3,
    /// Unit direction to the eye.
    pub to_eye: Vec3,
    /// Linear colour.
    pub colour: Vec3,
    /// 0 is chalk, 1 is polished.
    pub shine: f32,
    /// How open the point is, 0..=1.
    pub openness: f32,
    /// How much of the key light arrives, 0..=1.
    pub key_visible: f32,
}

/// The studio: directions are unit vectors to the light in world space, colours are linear.
pub(super) struct Studio {
    /// Direction to the key light; the ground shadow follows it.
    pub key: Vec3,
    fill: Vec3,
    rim: Vec3,
}

const KEY_COLOUR: Vec3 = Vec3::new(1.34, 1.25, 1.13);
const FILL_COLOUR: Vec3 = Vec3::new(0.13, 0.16, 0.22);
const RIM_COLOUR: Vec3 = Vec3::new(0.85, 0.95, 1.10);
const SKY_COLOUR: Vec3 = Vec3::new(0.31, 0.34, 0.39);
const FLOOR_COLOUR: Vec3 = Vec3::new(0.17, 0.145, 0.13);

impl Studio {
    /// Lights for a camera: the key from the upper left, the fill low from the right, the rim from
    /// behind.
    pub fn new(camera: &Camera) -> Self {
        let frame = camera.level_frame();
        let place = |x, y, z| (frame * Vec3::new(x, y, z)).normalize();
        Self { key: place(-0.55, 0.75, 0.75), fill: place(0.85, 0.15, 0.55), rim: place(0.45, 0.55, -0.80) }
    }

    /// Linear light towards the eye.
    pub fn shade(&self, surface: &Surface) -> Vec3 {
        let Surface { normal, to_eye, colour, shine, openness, key_visible } = *surface;
        let up = normal.y * 0.5 + 0.5;
        let ambient = FLOOR_COLOUR.lerp(SKY_COLOUR, up) * openness;
        let direct_openness = 0.5 + 0.5 * openness;
        let key = wrap(normal.dot(self.key), 0.12) * key_visible * direct_openness;
        let fill = wrap(normal.dot(self.fill), 0.4) * direct_openness;
        let grazing = 1.0 - normal.dot(to_eye).clamp(0.0, 1.0);
        let edge = grazing * grazing * grazing;
        let rim = normal.dot(self.rim).max(0.0) * edge * openness * openness * (0.4 + 0.6 * key_visible);
        let diffuse = ambient + KEY_COLOUR * key + FILL_COLOUR * fill;
        let power = 12.0 + 180.0 * shine * shine;
        let highlight = |light: Vec3| {
            let half = (light + to_eye).normalize_or_zero();
            let fresnel = 0.04 + 0.96 * (1.0 - half.dot(to_eye).clamp(0.0, 1.0)).powi(5);
            // Schlick's fraction stands for the cosine's power; the factor keeps the reflected energy
            // when the highlight narrows.
            let cosine = normal.dot(half).max(0.0);
            let lobe = cosine / (power - power * cosine + cosine);
            fresnel * (power + 8.0) / 8.0 * lobe * lobe * normal.dot(light).max(0.0)
        };
        let strength = (0.35 + 2.0 * shine) * direct_openness;
        let specular = KEY_COLOUR * (highlight(self.key) * strength * key_visible)
            + FILL_COLOUR * (highlight(self.fill) * strength);
        colour * diffuse + specular + RIM_COLOUR * rim * (colour * 0.5 + Vec3::splat(0.15))
    }

    /// Gentle light that leaves the colours of a heat map readable against its colour bar.
    pub fn shade_flat(&self, surface: &Surface) -> Vec3 {
        let facing = wrap(surface.normal.dot(self.key), 0.6);
        let grazing = 1.0 - surface.normal.dot(surface.to_eye).clamp(0.0, 1.0);
        // A breath of edge light keeps the shape readable where the ramp is dark.
        let edge = 0.05 * grazing * grazing * grazing * surface.openness;
        surface.colour * (0.62 + 0.38 * facing) * (0.55 + 0.45 * surface.openness) + Vec3::splat(edge)
    }
}

/// Diffuse light that wraps around the terminator by `amount`, as through skin.
fn wrap(cosine: f32, amount: f32) -> f32 {
    ((cosine + amount) / (1.0 + amount)).max(0.0)
}

/// sRGB in 0..=1 to linear light.
pub(crate) fn to_linear(colour: Vec3) -> Vec3 {
    let channel = |v: f32| {
        let v = if v.is_finite() { v.clamp(0.0, 1.0) } else { 0.0 };
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    };
    Vec3::new(channel(colour.x), channel(colour.y), channel(colour.z))
}

/// Linear light to sRGB in 0..=1; values above one are cut.
pub(crate) fn to_srgb(colour: Vec3) -> Vec3 {
    let channel = |v: f32| {
        let v = v.clamp(0.0, 1.0);
        if v <= 0.003_130_8 { v * 12.92 } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 }
    };
    Vec3::new(channel(colour.x), channel(colour.y), channel(colour.z))
}

/// Linear light to an sRGB byte, by a table over the square root: exact to one step and several times
/// faster than a power a channel.
pub(super) fn to_srgb_byte(value: f32) -> u8 {
    const LAST: usize = 4095;
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let byte = |i: usize| to_srgb(Vec3::splat((i as f32 / LAST as f32).powi(2))).x * 255.0 + 0.5;
        (0..=LAST).map(|i| byte(i) as u8).collect()
    });
    table[(value.clamp(0.0, 1.0).sqrt() * LAST as f32 + 0.5) as usize]
}

/// Rolls bright light off softly: the identity up to 0.6, then towards one without reaching it.
pub(super) fn roll_off(colour: Vec3) -> Vec3 {
    const KNEE: f32 = 0.6;
    let channel = |v: f32| {
        if v <= KNEE {
            v
        } else {
            let over = (v - KNEE) / (1.0 - KNEE);
            KNEE + (1.0 - KNEE) * (over / (1.0 + over))
        }
    };
    Vec3::new(channel(colour.x), channel(colour.y), channel(colour.z))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn srgb_and_linear_are_inverse() {
        for value in [0.0, 0.02, 0.2, 0.5, 0.9, 1.0] {
            let there = to_linear(Vec3::splat(value));
            assert!((to_srgb(there).x - value).abs() < 1e-5, "{value}");
        }
        assert_eq!(to_linear(Vec3::splat(f32::NAN)), Vec3::ZERO);
    }

    #[test]
    fn the_key_lights_what_faces_it() {
        let camera = Camera::framing(Vec3::splat(-1.0), Vec3::ONE, 0.0, 0.0, 1.0);
        let studio = Studio::new(&camera);
        let mut surface = Surface {
            normal: studio.key,
            to_eye: Vec3::Z,
            colour: Vec3::splat(0.5),
            shine: 0.2,
            openness: 1.0,
            key_visible: 1.0,
        };
        let lit = studio.shade(&surface);
        surface.key_visible = 0.0;
        let shadowed = studio.shade(&surface);
        surface.normal = -studio.key;
        let away = studio.shade(&surface);
        assert!(lit.min_element() > 2.0 * shadowed.max_element());
        assert!(away.min_element() > 0.0 && away.max_element() < lit.min_element());
    }
}
