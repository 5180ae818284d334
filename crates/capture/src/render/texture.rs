//! A painted map over UV space with its smaller versions, so that paint finer than a pixel does not flicker.

use crate::Image;
use understudy_core::Vec2;

/// Linear albedo over UVs: u to the right, v up, both 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Texture {
    levels: Vec<Image>,
}

impl Texture {
    /// Makes the smaller versions.
    pub fn new(image: Image) -> Self {
        let mut levels = vec![image];
        while levels.last().is_some_and(|last| last.width().min(last.height()) > 4) {
            let half = levels[levels.len() - 1].halved();
            levels.push(half);
        }
        Self { levels }
    }

    /// The largest version.
    pub fn image(&self) -> &Image {
        &self.levels[0]
    }

    /// Texels across.
    pub fn width(&self) -> usize {
        self.levels[0].width()
    }

    /// The colour at a UV, between two versions: level 0 is the largest, each next one half as large.
    pub fn at(&self, uv: Vec2, level: f32) -> [f32; 3] {
        let level = level.max(0.0).min((self.levels.len() - 1) as f32);
        let (low, share) = (level as usize, level.fract());
        let near = Self::bilinear(&self.levels[low], uv);
        if share == 0.0 {
            return near;
        }
        let far = Self::bilinear(&self.levels[low + 1], uv);
        [0, 1, 2].map(|c| near[c] + (far[c] - near[c]) * share)
    }

    fn bilinear(image: &Image, uv: Vec2) -> [f32; 3] {
        let (width, height) = (image.width(), image.height());
        let x = (uv.x * width as f32 - 0.5).max(0.0).min((width - 1) as f32);
        let y = ((1.0 - uv.y) * height as f32 - 0.5).max(0.0).min((height - 1) as f32);
        let (column, row) = (x as usize, y as usize);
        let (u, v) = (x - column as f32, y - row as f32);
        let (right, below) = ((column + 1).min(width - 1), (row + 1).min(height - 1));
        let at = |x: usize, y: usize| image.pixels()[y * width + x];
        let (a, b, c, d) = (at(column, row), at(right, row), at(column, below), at(right, below));
        [0, 1, 2].map(|i| {
            let (top, bottom) = (a[i] + (b[i] - a[i]) * u, c[i] + (d[i] - c[i]) * u);
            top + (bottom - top) * v
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_hold_the_mean_and_v_runs_up() {
        let mut image = Image::new(8, 8, [0.0; 3]);
        image.pixels_mut()[..32].fill([1.0, 0.5, 0.25]);
        let texture = Texture::new(image);
        assert_eq!(texture.at(Vec2::new(0.5, 0.9), 0.0), [1.0, 0.5, 0.25]);
        assert_eq!(texture.at(Vec2::new(0.5, 0.1), 0.0), [0.0; 3]);
        let half = texture.at(Vec2::new(0.5, 0.5), 0.0);
        assert_eq!(half, [0.5, 0.25, 0.125]);
        assert_eq!(texture.at(Vec2::new(f32::NAN, 2.0), 99.0).len(), 3);
    }
}
