//! How open every pixel's surface is to the sky and to the key light: screen-space ambient obscurance
//! (after McGuire, Mara and Luebke 2012) and soft self-shadows, sampled sparsely with a pattern that
//! turns from pixel to pixel and then smoothed where depth agrees.

use super::key_shadow::KeyShadow;
use rayon::prelude::*;
use understudy_core::Vec3;

/// Looks a pixel, for each of the two terms.
const LOOKS: usize = 9;

/// Turns of the spiral of looks; prime to [`LOOKS`].
const TURNS: f32 = 4.0;

/// Surfaces whose normal has a smaller cosine with the key light get none of it anyway.
const TURNED_AWAY: f32 = -0.15;

/// The pattern repeats every so many pixels; the smoothing window is one period wide.
const PERIOD: usize = 4;

/// A visible point per pixel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visible {
    /// World position, cm.
    pub position: Vec3,
    /// Unit normal on the viewer's side.
    pub normal: Vec3,
    /// The triangle that is seen.
    pub triangle: u32,
    /// Depth along the line of sight, cm; infinite where nothing is seen.
    pub depth: f32,
}

impl Visible {
    /// Where nothing is seen.
    pub const NOTHING: Self =
        Self { position: Vec3::ZERO, normal: Vec3::ZERO, triangle: u32::MAX, depth: f32::INFINITY };
}

/// Sizes that depend on the scene.
pub(super) struct Reach {
    /// How far a surface darkens another, cm.
    pub occlusion: f32,
    /// Width of the blur of self-shadows, cm.
    pub penumbra: f32,
    /// Pixels a cm at depth one cm.
    pub pixels: f32,
}

/// For every pixel: openness to the sky, and how much of the key light arrives; both 0..=1. Depths closer
/// than `like_depth` are smoothed together.
pub(super) fn openness(
    visible: &[Visible],
    width: usize,
    reach: &Reach,
    like_depth: f32,
    shadow: Option<&KeyShadow>,
) -> Vec<[f32; 2]> {
    let height = visible.len() / width;
    let spiral: [[f32; 3]; LOOKS] = std::array::from_fn(|look| {
        let share = (look as f32 + 0.5) / LOOKS as f32;
        let (sine, cosine) = (share * TURNS * std::f32::consts::TAU).sin_cos();
        [cosine, sine, share]
    });
    let turns: [[f32; 2]; PERIOD * PERIOD] = std::array::from_fn(|cell| {
        // An ordered (Bayer) sequence spreads the angles evenly over the window.
        const ORDER: [usize; 16] = [0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5];
        let (sine, cosine) = (ORDER[cell] as f32 / 16.0 * std::f32::consts::TAU).sin_cos();
        [cosine, sine]
    });
    let wide = spiral.map(|[_, _, share]| share.sqrt() * reach.penumbra);
    let raw: Vec<[f32; 2]> = visible
        .par_iter()
        .enumerate()
        .with_min_len(width)
        .map(|(at, here)| {
            let (row, column) = (at / width, at % width);
            if !here.depth.is_finite() {
                return [1.0; 2];
            }
            let [cosine, sine] = turns[row % PERIOD * PERIOD + column % PERIOD];
            let turned = spiral.map(|[x, y, share]| [x * cosine - y * sine, x * sine + y * cosine, share]);
            let radius = (reach.occlusion * reach.pixels / here.depth).min(width as f32 * 0.25);
            let mut sum = 0.0;
            for [x, y, share] in turned {
                let (tap_x, tap_y) = (column as f32 + x * share * radius, row as f32 + y * share * radius);
                if tap_x < 0.0 || tap_y < 0.0 || tap_x >= width as f32 || tap_y >= height as f32 {
                    continue;
                }
                let there = &visible[tap_y as usize * width + tap_x as usize];
                if there.depth.is_finite() {
                    sum += obscurance(there.position - here.position, here.normal, reach.occlusion);
                }
            }
            let open = (1.0 - 3.4 * sum / LOOKS as f32).clamp(0.0, 1.0);
            let lit = match shadow {
                Some(shadow) if here.normal.dot(shadow.key()) > TURNED_AWAY => {
                    let looks = turned.iter().zip(wide).map(|([x, y, _], wide)| [x * wide, y * wide, wide]);
                    shadow.visible(here.position + here.normal * (reach.penumbra * 0.9), looks)
                }
                _ => 1.0,
            };
            [open, lit]
        })
        .collect();
    smooth(&raw, visible, width, like_depth)
}

/// How much a surface at `offset` darkens one with `normal`: nothing behind or beyond the reach.
fn obscurance(offset: Vec3, normal: Vec3, reach: f32) -> f32 {
    let distance_squared = offset.length_squared();
    let fade = (1.0 - distance_squared / (reach * reach)).max(0.0);
    let rise = (offset.dot(normal) - 0.02 * reach).max(0.0);
    fade * fade * fade * rise * reach / (distance_squared + 0.002 * reach * reach)
}

/// The mean over one period of the pattern, among pixels of like depth.
fn smooth(raw: &[[f32; 2]], visible: &[Visible], width: usize, tolerance: f32) -> Vec<[f32; 2]> {
    let height = raw.len() / width;
    let mean = |at: usize| {
        let (row, column) = (at / width, at % width);
        let depth = visible[at].depth;
        if !depth.is_finite() {
            return raw[at];
        }
        let columns = column.saturating_sub(1)..(column + PERIOD - 1).min(width);
        let (mut sum, mut count) = ([0.0f32; 2], 0.0f32);
        for other_row in row.saturating_sub(1)..(row + PERIOD - 1).min(height) {
            for at in other_row * width + columns.start..other_row * width + columns.end {
                if (visible[at].depth - depth).abs() < tolerance {
                    sum[0] += raw[at][0];
                    sum[1] += raw[at][1];
                    count += 1.0;
                }
            }
        }
        // A pixel agrees with itself, unless the tolerance is nothing.
        if count > 0.0 { sum.map(|total| total / count) } else { raw[at] }
    };
    (0..raw.len()).into_par_iter().with_min_len(width).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A floor seen from above with a wall that rises at the right half.
    fn step(rise: f32) -> Vec<[f32; 2]> {
        let visible: Vec<Visible> = (0..32 * 32)
            .map(|at| {
                let (x, z) = ((at % 32) as f32, (at / 32) as f32);
                let y = if x >= 16.0 { rise } else { 0.0 };
                Visible { position: Vec3::new(x, y, z), normal: Vec3::Y, triangle: 0, depth: 100.0 - y }
            })
            .collect();
        openness(&visible, 32, &Reach { occlusion: 8.0, penumbra: 1.0, pixels: 100.0 }, 2.0, None)
    }

    #[test]
    fn a_plane_is_open_and_a_corner_is_not() {
        let flat = step(0.0);
        assert!(flat.iter().all(|[open, key]| *open > 0.999 && *key == 1.0));
        let raised = step(3.0);
        let at = |x: usize| raised[16 * 32 + x][0];
        assert!(at(14) < 0.9, "beside the wall: {}", at(14));
        assert!(at(4) > 0.99, "far from the wall: {}", at(4));
        assert!(at(20) > 0.99, "on top: {}", at(20));
    }
}
