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
}
