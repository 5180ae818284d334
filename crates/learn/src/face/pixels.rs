//! A pixel of its own for every vertex of a region: what a map can say is then no longer bounded by its
//! resolution. See [`own_pixels`].

use understudy_core::Vec2;

/// Coordinates in a map of `side` pixels such that no two vertices share one, near their neighbours: the
/// vertices are halved by their places across the map, each half gets half of it, and so on, across and along in
/// turn. `None` where there are more vertices than pixels.
pub fn own_pixels(coordinates: &[Vec2], side: usize) -> Option<Vec<Vec2>> {
    if coordinates.len() > side * side {
        return None;
    }
    let mut out = vec![Vec2::ZERO; coordinates.len()];
    let mut order: Vec<usize> = (0..coordinates.len()).collect();
    share(&mut order, coordinates, Block { corner: [0, 0], size: [side, side] }, &mut out);
    Some(out)
}

/// Some pixels of a map.
#[derive(Clone, Copy)]
struct Block {
    corner: [usize; 2],
    size: [usize; 2],
}

/// Gives each of some vertices a pixel of a block that has enough of them.
fn share(order: &mut [usize], coordinates: &[Vec2], block: Block, out: &mut [Vec2]) {
    let Block { corner, size } = block;
    match order {
        [] => return,
        [one] if size == [1, 1] => {
            out[*one] = Vec2::new(corner[0] as f32, corner[1] as f32);
            return;
        }
        _ => {}
    }
    let axis = usize::from(size[1] > size[0]);
    let place = |vertex: &usize| coordinates[*vertex][axis];
    order.sort_by(|a, b| place(a).total_cmp(&place(b)).then(a.cmp(b)));
    let (mut low, mut high) = (block, block);
    low.size[axis] = size[axis] / 2;
    high.size[axis] = size[axis] - low.size[axis];
    high.corner[axis] += low.size[axis];
    let room = |block: Block| block.size[0] * block.size[1];
    // As many as the block has pixels, and not more than either half has room for.
    let fair = (order.len() * room(low) + room(block) / 2) / room(block);
    let least = order.len().saturating_sub(room(high));
    let (first, second) = order.split_at_mut(fair.clamp(least, room(low)));
    share(first, coordinates, low, out);
    share(second, coordinates, high, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    #[test]
    fn no_two_vertices_share_a_pixel_at_any_count() {
        let mut random = Random::new(4);
        for (count, side) in
            [(0usize, 2usize), (1, 2), (4, 2), (5, 3), (9, 3), (100, 16), (256, 16), (700, 32)]
        {
            // Crowded in one corner.
            let at: Vec<Vec2> = (0..count)
                .map(|_| Vec2::new(random.unit() as f32, random.unit() as f32).powf(4.0) * 9.0)
                .collect();
            let placed = own_pixels(&at, side).expect("enough pixels");
            let mut taken = vec![false; side * side];
            for place in &placed {
                assert_eq!(place.round(), *place);
                let pixel = place.y as usize * side + place.x as usize;
                assert!(!std::mem::replace(&mut taken[pixel], true), "{count} in {side}");
            }
            assert_eq!(placed, own_pixels(&at, side).expect("enough pixels"));
        }
        assert_eq!(own_pixels(&[Vec2::ZERO; 5], 2), None);
    }

    #[test]
    fn a_grid_stays_a_grid_and_neighbours_stay_near() {
        let side = 16;
        let grid = |warp: fn(f32) -> f32| -> Vec<Vec2> {
            let at = |i: usize| Vec2::new(warp((i % side) as f32), warp((i / side) as f32));
            (0..side * side).map(at).collect()
        };
        let plain = grid(|x| x);
        assert_eq!(own_pixels(&plain, side).as_ref(), Some(&plain));
        // Squeezed to a corner: every vertex still finds its pixel.
        assert_eq!(own_pixels(&grid(|x| x * x * 0.01), side), Some(plain));
    }
}
