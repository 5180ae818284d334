//! Matrix products on row-major slices: the one door to `gemm`.

/// What matrices hold: `f32` in training, `f64` where digits would cancel.
pub trait Number: Copy + PartialEq + From<f32> + 'static {}
impl Number for f32 {}
impl Number for f64 {}

/// A matrix inside a slice, by rows or transposed.
#[derive(Clone, Copy)]
pub struct View<'a, T = f32> {
    data: &'a [T],
    rows: usize,
    columns: usize,
    transposed: bool,
}

impl<'a, T: Number> View<'a, T> {
    /// `[rows × columns]` by rows.
    pub fn new(data: &'a [T], rows: usize, columns: usize) -> Self {
        assert!(data.len() >= rows * columns, "the slice holds the matrix");
        Self { data, rows, columns, transposed: false }
    }

    /// The same numbers with rows and columns exchanged.
    pub fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    fn shape(&self) -> (usize, usize) {
        if self.transposed { (self.columns, self.rows) } else { (self.rows, self.columns) }
    }

    fn strides(&self) -> (isize, isize) {
        let along = self.columns as isize;
        if self.transposed { (along, 1) } else { (1, along) }
    }
}

/// `out = beta · out + a · b`, `out` by rows.
///
/// # Panics
/// When the shapes disagree.
pub fn multiply<T: Number>(out: &mut [T], beta: T, a: View<'_, T>, b: View<'_, T>) {
    let ((m, k), (inner, n)) = (a.shape(), b.shape());
    assert_eq!(k, inner, "inner sizes agree");
    assert!(out.len() >= m * n, "the slice holds the product");
    let ((a_column, a_row), (b_column, b_row)) = (a.strides(), b.strides());
    // SAFETY: the assertions above keep every address inside its slice, and `out` overlaps neither input
    // because it is borrowed mutably.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            beta != T::from(0.0),
            a.data.as_ptr(),
            a_column,
            a_row,
            b.data.as_ptr(),
            b_column,
            b_row,
            beta,
            T::from(1.0),
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_transposes() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let b = [1.0, 0.0, -1.0, 2.0, 1.0, 1.0];
        let mut out = [10.0; 4];
        multiply(&mut out, 0.0, View::new(&a, 2, 3), View::new(&b, 3, 2));
        assert_eq!(out, [2.0, 7.0, 5.0, 16.0]);
        multiply(&mut out, 1.0, View::new(&a, 2, 3), View::new(&b, 2, 3).transposed());
        assert_eq!(out, [0.0, 14.0, 3.0, 35.0]);
    }
}
