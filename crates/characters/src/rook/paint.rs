//! Rook's colours: by segment, with borders where the carried masks say so. sRGB, 0 to 1.

use super::sculpt::{FineBody, Mask};
use understudy_core::Vec3;
use understudy_rigs::deformers::smooth_step;

const fn rgb(hex: u32) -> Vec3 {
    Vec3::new(
        ((hex >> 16) & 0xff) as f32 / 255.0,
        ((hex >> 8) & 0xff) as f32 / 255.0,
        (hex & 0xff) as f32 / 255.0,
    )
}

/// Cloth of the coat.
pub const COAT: Vec3 = rgb(0x1f4250);
/// Borders of coat and mantle.
pub const TRIM: Vec3 = rgb(0x9fb4ae);
/// Leather of belt and straps.
pub const LEATHER: Vec3 = rgb(0x6a4025);
/// Buckles and buttons.
pub const BRASS: Vec3 = rgb(0xc79a4b);
/// Spikes.
pub const STEEL: Vec3 = rgb(0xb8c2c8);
/// Lenses of the mask.
pub const LENS: Vec3 = rgb(0x10161c);

/// Feathers of the mantle.
pub const FEATHER: Vec3 = rgb(0x141d2b);
/// The stone of the brooch.
pub const GEM: Vec3 = rgb(0x8e1f2b);

/// The colour of a segment without borders.
pub fn segment_colour(segment: &str) -> Vec3 {
    match segment {
        "coat" => COAT,
        "mantle" => rgb(0x16303b),
        "hood" => rgb(0x1a3844),
        "hood_edge" => TRIM,
        "lining" => rgb(0x4f1f26),
        "belt" => LEATHER,
        "mask" => rgb(0xe4dcc8),
        "beak" => rgb(0x3a3732),
        "gauntlet" => rgb(0x5a3822),
        "glove" => rgb(0x3d2a1f),
        "trousers" => rgb(0x3a3f47),
        "boot_cuff" => rgb(0x5e3c25),
        "boot" => rgb(0x38251a),
        _ => Vec3::splat(0.6),
    }
}

/// Colours of the fine body; `of_vertex` is the segment of every vertex.
pub fn body_colours(body: &FineBody, of_vertex: &[u32]) -> Vec<Vec3> {
    let trim = body.mask(Mask::Trim);
    let colour = |vertex: usize| {
        let segment = body.cage.segments[of_vertex[vertex] as usize].as_str();
        let base = segment_colour(segment);
        let position = body.cage.positions[vertex];
        match segment {
            "coat" => base.lerp(TRIM, smooth_step(0.60, 0.70, trim[vertex])),
            "mask" => {
                // Dark markings sweep from the eyes to the temples and along the bridge.
                let (x, y) = (position.x.abs(), position.y);
                let eye = ((x - 5.2) / 4.4).powi(2) + ((y - 176.6 - 0.25 * (x - 4.5)) / 3.3).powi(2);
                let bridge = smooth_step(1.8, 0.5, x) * smooth_step(175.5, 178.0, y);
                base.lerp(rgb(0x2b3138), smooth_step(1.35, 0.75, eye).max(bridge))
            }
            // The sole is darker.
            "boot" => base * (0.55 + 0.45 * smooth_step(1.2, 2.4, position.y)),
            _ => base,
        }
    };
    (0..body.cage.positions.len()).map(colour).collect()
}
