//! Weights that every pixel of a map has of its own: only those of pixels that some vertex sees are kept in a
//! file. The others follow from them, for vertices of another mesh that sample there.

use super::MapParts;
use super::map_decoder::MapShape;
use super::sample::{self, BilinearSample};
use understudy_core::Vec2;

/// Which pixels of a map its vertices see.
fn seen_by(shape: &MapShape, coordinates: &[Vec2]) -> Vec<bool> {
    let side = shape.map_side();
    let samples: Vec<BilinearSample> = coordinates.iter().map(|c| BilinearSample::at(*c, side)).collect();
    sample::sampled_pixels(&samples, side)
}

/// Numbers of a set in each of the arrays of sets: weights, then bias.
fn sizes(shape: &MapShape) -> [usize; 2] {
    [shape.outputs * shape.reads(), shape.outputs]
}

/// The parameters of a map without the sets that no vertex sees.
pub(super) fn pack(map: &MapParts) -> Vec<f32> {
    let shape = &map.shape;
    if !shape.untied {
        return map.parameters.clone();
    }
    let seen = seen_by(shape, &map.coordinates);
    let (shared, mut rest) = map.parameters.split_at(shape.convolution_parameters());
    let mut out = shared.to_vec();
    for size in sizes(shape) {
        let (sets, after) = rest.split_at(shape.sets() * size);
        rest = after;
        let wanted = sets.chunks_exact(size).zip(&seen).filter(|(_, seen)| **seen);
        out.extend(wanted.flat_map(|(set, _)| set));
    }
    out
}

/// The reverse of [`pack`]: sets that no vertex sees take after their neighbours. Parameters that are not as
/// many as [`pack`] gives come back as they are: files from before it have all sets, and what is wrong is
/// found when parts are checked.
pub(super) fn unpack(shape: &MapShape, parameters: Vec<f32>, coordinates: &[Vec2]) -> Vec<f32> {
    if !shape.untied || !shape.is_sane() || !coordinates.iter().all(|c| c.is_finite()) {
        return parameters;
    }
    let seen = seen_by(shape, coordinates);
    let (count, shared) = (seen.iter().filter(|seen| **seen).count(), shape.convolution_parameters());
    if parameters.len() != shared + count * sizes(shape).iter().sum::<usize>() {
        return parameters;
    }
    let mut out = parameters[..shared].to_vec();
    let mut rest = &parameters[shared..];
    for size in sizes(shape) {
        let (own, after) = rest.split_at(count * size);
        rest = after;
        let start = out.len();
        out.resize(start + shape.sets() * size, 0.0);
        let sets = out[start..].chunks_exact_mut(size).zip(&seen).filter(|(_, seen)| **seen);
        sets.zip(own.chunks_exact(size)).for_each(|((set, _), own)| set.copy_from_slice(own));
        spread(&mut out[start..], size, shape.map_side(), &seen);
    }
    out
}

/// Gives the sets of pixels that no vertex sees what their neighbours have. `parameters`: all of a map's.
pub fn complete(shape: &MapShape, parameters: &mut [f32], coordinates: &[Vec2]) {
    if !shape.untied {
        return;
    }
    let seen = seen_by(shape, coordinates);
    let mut rest = &mut parameters[shape.convolution_parameters()..];
    for size in sizes(shape) {
        let (sets, after) = rest.split_at_mut(shape.sets() * size);
        spread(sets, size, shape.map_side(), &seen);
        rest = after;
    }
}

/// Gives pixels that no vertex samples at the mean of their neighbours, ring by ring. `sets`: `[side²][size]`.
fn spread(sets: &mut [f32], size: usize, side: usize, seen: &[bool]) {
    let mut known = seen.to_vec();
    let mut ring: Vec<usize> = Vec::new();
    while known.contains(&true) && known.contains(&false) {
        ring.clear();
        for pixel in (0..side * side).filter(|pixel| !known[*pixel]) {
            let (row, column) = (pixel / side, pixel % side);
            let rows = row.saturating_sub(1)..=(row + 1).min(side - 1);
            let near = rows.flat_map(|r| {
                (column.saturating_sub(1)..=(column + 1).min(side - 1)).map(move |c| r * side + c)
            });
            let near: Vec<usize> = near.filter(|other| known[*other]).collect();
            if near.is_empty() {
                continue;
            }
            for number in 0..size {
                let sum: f32 = near.iter().map(|other| sets[other * size + number]).sum();
                sets[pixel * size + number] = sum / near.len() as f32;
            }
            ring.push(pixel);
        }
        ring.iter().for_each(|pixel| known[*pixel] = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    #[test]
    fn pixels_that_nobody_sees_take_after_their_neighbours() {
        let mut sets = vec![0.0f32; 2 * 16];
        for (pixel, value) in [(0usize, 2.0f32), (15, 6.0)] {
            sets[2 * pixel..2 * pixel + 2].fill(value);
        }
        let mut seen = [false; 16];
        (seen[0], seen[15]) = (true, true);
        spread(&mut sets, 2, 4, &seen);
        let of = |pixel: usize| sets[2 * pixel];
        assert_eq!((of(0), of(15), of(1), of(14)), (2.0, 6.0, 2.0, 6.0));
        // Between both: the mean of its neighbours.
        assert!(sets.iter().all(|value| (2.0..=6.0).contains(value)));
        assert!((of(3) - 4.0).abs() < 2.0 && of(5) < of(10));
    }

    #[test]
    fn sets_come_back_from_those_that_are_kept() {
        let mut random = Random::new(3);
        let shape = MapShape { side: 2, untied: true, shared_features: 3, ..MapShape::default() };
        let coordinates: Vec<Vec2> =
            (0..5).map(|_| Vec2::new(random.uniform(0.0, 7.0), random.uniform(0.0, 3.0))).collect();
        let mut parameters: Vec<f32> =
            (0..shape.parameter_count()).map(|_| random.uniform(-1.0, 1.0)).collect();
        complete(&shape, &mut parameters, &coordinates);
        let map = MapParts { shape, parameters: parameters.clone(), coordinates: coordinates.clone() };
        let kept = pack(&map);
        let sets = |all: &[f32]| all.len() - shape.convolution_parameters();
        assert!(sets(&kept) < sets(&parameters) / 2, "{} of {}", sets(&kept), sets(&parameters));
        assert_eq!(unpack(&shape, kept.clone(), &coordinates), parameters);
        // Files from before have all of them; what is neither is left for the check.
        assert_eq!(unpack(&shape, parameters.clone(), &coordinates), parameters);
        assert_eq!(unpack(&shape, kept[1..].to_vec(), &coordinates).len(), kept.len() - 1);
        assert_eq!(unpack(&shape, kept.clone(), &[Vec2::NAN]), kept);
    }
}
