//! Cloth between two hem chains keeps its length: it bulges out where the chains come together and is
//! drawn tight where they part. Runs after skinning.

use super::plan;
use super::sculpt::{FineBody, Mask};
use understudy_core::{Skeleton, Vec3};
use understudy_rigs::{Deformer, Frame, Scratch};

/// Points along a chain: roots of its three bones and the hem.
const KNOTS: usize = 4;

struct Chain {
    /// Bone and rest position of every knot.
    knots: [(usize, Vec3); KNOTS],
}

/// A vertex between two chains.
struct Place {
    vertex: u32,
    /// Index of the first chain; the second is the next one.
    chain: u16,
    /// Row along the chains, 0 to 3.
    row: f32,
    /// `sin(π f)`, `f` the way from the first to the second chain.
    bow: f32,
}

/// For a gap of rest width `d₀` and width `d` the cloth's middle moves out by
/// `h = a d₀ tanh(g)`, `g = √(x² + s²) + x − s`, `x = 1 − d/d₀`: zero at rest, about the sagitta of an
/// arc of length `d₀` over the chord `d` when the gap closes, and a little inward when it opens.
pub struct Gather {
    chains: Vec<Chain>,
    places: Vec<Place>,
}

impl Gather {
    /// Height at a gap that is closed.
    const AMOUNT: f32 = 0.75;

    /// Finds the cloth by the masks that the cage carries.
    pub fn new(skeleton: &Skeleton, body: &FineBody) -> Self {
        let mut chains = Vec::new();
        for side in ["l", "r"] {
            let sign = if side == "l" { 1.0 } else { -1.0 };
            for (stem, column) in plan::HEM {
                let bone = |joint: usize| {
                    skeleton.find(&format!("{stem}_{side}_{joint}")).expect("a bone of Rook's own skeleton")
                };
                let at = |bone: usize| Vec3::from(skeleton.rest_global()[bone].translation);
                let end = super::coat::skirt_point(4, column) * Vec3::new(sign, 1.0, 1.0);
                let [a, b, c] = [1, 2, 3].map(bone);
                chains.push(Chain { knots: [(a, at(a)), (b, at(b)), (c, at(c)), (c, end)] });
            }
        }
        let mut places = Vec::new();
        let count = plan::HEM.len();
        for vertex in 0..body.cage.positions.len() {
            // Columns 1, 3, 5 and 7 of 8 hold a chain; rows 1 to 4 of 4 are its knots.
            let skirt = body.mask(Mask::Skirt)[vertex];
            let between = (body.mask(Mask::Column)[vertex] * 8.0 - 1.0) / 2.0;
            let row = (body.mask(Mask::Row)[vertex] * 4.0 - 1.0).clamp(0.0, KNOTS as f32 - 1.0);
            if skirt < 0.05 || between <= 0.0 || between >= count as f32 - 1.0 || row <= 0.0 {
                continue;
            }
            let right = body.cage.positions[vertex].x < 0.0;
            let gap = (between as usize).min(count - 2);
            let bow = (std::f32::consts::PI * (between - gap as f32)).sin();
            let chain = (gap + if right { count } else { 0 }) as u16;
            places.push(Place { vertex: vertex as u32, chain, row, bow: bow * row.min(1.0) });
        }
        Self { chains, places }
    }
}

/// How far the middle of a gap moves out, in rest widths.
fn bulge(ratio: f32) -> f32 {
    const SOFT: f32 = 0.25;
    let closing = 1.0 - ratio;
    ((closing * closing + SOFT * SOFT).sqrt() + closing - SOFT).tanh()
}

impl Deformer for Gather {
    fn name(&self) -> &str {
        "gather"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], _scratch: &mut Scratch) {
        let mut knots = [[Vec3::ZERO; KNOTS]; 16];
        for (posed, chain) in knots.iter_mut().zip(&self.chains) {
            for (point, (bone, rest)) in posed.iter_mut().zip(chain.knots) {
                *point = frame.matrices[bone].transform_point3(rest);
            }
        }
        for place in &self.places {
            let (first, second) = (place.chain as usize, place.chain as usize + 1);
            let below = (place.row as usize).min(KNOTS - 2);
            let t = place.row - below as f32;
            let posed = |chain: usize| knots[chain][below].lerp(knots[chain][below + 1], t);
            let rest = |chain: usize| {
                let knots = &self.chains[chain].knots;
                knots[below].1.lerp(knots[below + 1].1, t)
            };
            let across = posed(second) - posed(first);
            let width = (rest(second) - rest(first)).length();
            let down = (knots[first][3] - knots[first][0]) + (knots[second][3] - knots[second][0]);
            // From the front to the back on the left side, so outward is this way; mirrored on the right.
            let side = if first < plan::HEM.len() { 1.0 } else { -1.0 };
            let out = across.cross(down) * side;
            // Fades where both directions agree and no side is outward.
            let out = out / (out.length_squared() + 40.0 * 40.0).sqrt();
            let height = Self::AMOUNT * width * bulge(across.length() / width) * place.bow;
            vertices[place.vertex as usize] += out * height;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bulge;

    #[test]
    fn a_gap_bulges_when_it_closes_and_rests_at_rest() {
        assert_eq!(bulge(1.0), 0.0);
        assert!(bulge(0.5) > 0.3 && bulge(0.0) < 1.0 && bulge(1.5) < 0.0 && bulge(2.0) > -0.3);
    }
}
