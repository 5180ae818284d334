//! Film rigs on any real mesh: the same deformer stack as the embedded characters, put on a body with
//! skin weights ([`body`]) or on a head with ARKit-style shapes ([`face`]). What the stack needs is
//! found from names, weights and shapes; nothing is sculpted for one mesh.

mod body;
mod correctives;
mod face;

pub use body::body;
pub use face::{EyeHints, FaceHints, face};

use understudy_core::{Adjacency, Curve, Vec3};

/// sRGB from a hexadecimal colour, `0xRRGGBB`.
fn colour(hex: u32) -> Vec3 {
    let part = |shift: u32| ((hex >> shift) & 255) as f32 / 255.0;
    Vec3::new(part(16), part(8), part(0))
}

/// The name of a shape with sides spelled `_L` and `_R`, whatever the rig calls them: `browDownLeft`
/// becomes `browDown_L`. `jawLeft` and `mouthLeft` are directions, not sides, and stay.
fn canonical(name: &str) -> String {
    if matches!(name, "jawLeft" | "jawRight" | "mouthLeft" | "mouthRight") {
        return name.into();
    }
    match (name.strip_suffix("Left"), name.strip_suffix("Right")) {
        (Some(base), _) => format!("{base}_L"),
        (_, Some(base)) => format!("{base}_R"),
        _ => name.into(),
    }
}

/// Evens values out along edges, except where they are fixed.
fn smooth(adjacency: &Adjacency, values: &mut [f32], fixed: &[bool], rounds: usize) {
    let mut next = values.to_vec();
    for _ in 0..rounds {
        for vertex in (0..values.len()).filter(|v| !fixed[*v]) {
            let ring = adjacency.neighbours(vertex);
            if !ring.is_empty() {
                let mean = ring.iter().map(|n| values[*n as usize]).sum::<f32>() / ring.len() as f32;
                next[vertex] = 0.5 * (values[vertex] + mean);
            }
        }
        values.copy_from_slice(&next);
    }
}

/// Writes curves for a clip: keys in natural values, scaled to the rig's controls.
#[derive(Default)]
struct ClipWriter {
    curves: Vec<Curve>,
}

impl ClipWriter {
    /// Adds a smooth curve through `(seconds, value)` keys, values times `gain`.
    fn key(&mut self, control: &str, gain: f32, keys: &[(f32, f32)]) {
        let keys: Vec<(f32, f32)> = keys.iter().map(|&(time, value)| (time, value * gain)).collect();
        self.curves.push(Curve::smooth(control, &keys));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_spelled_one_way() {
        assert_eq!(canonical("browDownLeft"), "browDown_L");
        assert_eq!(canonical("eyeBlink_R"), "eyeBlink_R");
        assert_eq!(canonical("mouthLeft"), "mouthLeft");
        assert_eq!(canonical("jawOpen"), "jawOpen");
    }
}
