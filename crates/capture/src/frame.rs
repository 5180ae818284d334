//! A picture as cameras and videos give it: 8 bits of red, green and blue. Files and programs that frames come from are the
//! job's.

/// A frame, row by row from the top left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Frame {
    /// A black frame.
    pub fn black(width: usize, height: usize) -> Self {
        Self { width, height, rgb: vec![0; 3 * width * height] }
    }

    /// From pixels; `None` where their number is not that of the size, or the size is zero.
    pub fn new(width: usize, height: usize, rgb: Vec<u8>) -> Option<Self> {
        let count = width.checked_mul(height)?.checked_mul(3)?;
        (count > 0 && rgb.len() == count).then_some(Self { width, height, rgb })
    }

    /// Pixels across.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Pixels down.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Red, green, blue, three bytes per pixel.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// The same, to write to.
    pub fn rgb_mut(&mut self) -> &mut [u8] {
        &mut self.rgb
    }

    /// The colour of a pixel.
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let place = 3 * (y * self.width + x);
        [self.rgb[place], self.rgb[place + 1], self.rgb[place + 2]]
    }

    /// Exchanges left and right.
    pub fn mirror(&mut self) {
        for row in self.rgb.chunks_exact_mut(3 * self.width.max(1)) {
            row.reverse();
            // Pixels are turned round with their colours: those go back.
            row.chunks_exact_mut(3).for_each(<[u8]>::reverse);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirrored_frame_keeps_its_colours() {
        let mut frame = Frame::new(2, 1, vec![1, 2, 3, 4, 5, 6]).expect("two pixels");
        frame.mirror();
        assert_eq!(frame.rgb(), [4, 5, 6, 1, 2, 3]);
        assert!(Frame::new(2, 1, vec![0; 5]).is_none() && Frame::new(0, 1, Vec::new()).is_none());
    }
}
