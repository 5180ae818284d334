//! Numbers by image, channel, row and column: what every operation takes and gives.

/// `[images, channels, rows, columns]`, columns fastest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tensor {
    shape: [usize; 4],
    data: Vec<f32>,
}

impl Tensor {
    /// All zero.
    pub fn zeros(shape: [usize; 4]) -> Self {
        Self { shape, data: vec![0.0; shape.iter().product()] }
    }

    /// From numbers.
    ///
    /// # Panics
    /// When their count is not that of the shape.
    pub fn new(shape: [usize; 4], data: Vec<f32>) -> Self {
        assert_eq!(shape.iter().product::<usize>(), data.len(), "as many numbers as the shape says");
        Self { shape, data }
    }

    /// Images, channels, rows, columns.
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// All numbers.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The same, to write to.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The numbers alone.
    pub fn into_data(self) -> Vec<f32> {
        self.data
    }

    /// Numbers in one image.
    pub fn image_len(&self) -> usize {
        self.shape[1..].iter().product()
    }

    /// Numbers in one channel of one image.
    pub fn plane_len(&self) -> usize {
        self.shape[2] * self.shape[3]
    }

    /// One channel of one image, `[rows][columns]`.
    pub fn plane(&self, image: usize, channel: usize) -> &[f32] {
        let (length, start) = (self.plane_len(), image * self.image_len());
        &self.data[start + channel * length..][..length]
    }

    /// The same numbers in another shape of the same length per image.
    pub(super) fn reshaped(self, shape: [usize; 4]) -> Self {
        Self::new(shape, self.data)
    }

    /// Adds another of the same shape.
    pub(super) fn add(&mut self, other: &Self) {
        assert_eq!(self.shape, other.shape, "one shape");
        self.data.iter_mut().zip(&other.data).for_each(|(own, other)| *own += other);
    }
}
