//! The Cholesky factor of a sparse symmetric matrix in f64, over `faer`, one thread: factor once, solve for many
//! right-hand sides. Matrices come from [`crate::laplacian`]; dense ones are in [`crate::linear_algebra`].

use crate::laplacian::SparseRows;
use faer::linalg::solvers::SolveCore as _;
use faer::sparse::linalg::solvers::{Llt, SymbolicLlt};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Conj, MatMut, Side};

/// `P A Pᵀ = L Lᵀ` with an ordering that keeps `L` sparse (approximate minimum degree).
#[derive(Debug, Clone)]
pub struct SparseCholesky {
    factor: Llt<u32, f64>,
    size: usize,
}

/// The pattern of a factor, for matrices whose zeros are in the same places.
#[derive(Debug, Clone)]
pub struct SparsePattern(SymbolicLlt<u32>);

impl SparsePattern {
    /// Orders the unknowns; `None` where there is not enough memory.
    pub fn new(matrix: &SparseRows) -> Option<Self> {
        Some(Self(SymbolicLlt::try_new(view(matrix).symbolic(), Side::Upper).ok()?))
    }

    /// Factors a matrix of this pattern; `None` where it is not positive definite.
    pub fn factor(&self, matrix: &SparseRows) -> Option<SparseCholesky> {
        let factor = Llt::try_new_with_symbolic(self.0.clone(), view(matrix), Side::Upper).ok()?;
        Some(SparseCholesky { factor, size: matrix.size() })
    }
}

impl SparseCholesky {
    /// Factors a symmetric matrix; `None` where it is not positive definite or memory is short.
    pub fn new(matrix: &SparseRows) -> Option<Self> {
        SparsePattern::new(matrix)?.factor(matrix)
    }

    /// Number of unknowns.
    pub fn size(&self) -> usize {
        self.size
    }

    /// `right ← A⁻¹ right`, columns of `size` numbers end to end.
    ///
    /// # Panics
    /// When the length is no multiple of the size.
    pub fn solve(&self, right: &mut [f64]) {
        if self.size == 0 {
            return;
        }
        assert_eq!(right.len() % self.size, 0, "whole columns");
        let columns = right.len() / self.size;
        let right = MatMut::from_column_major_slice_mut(right, self.size, columns);
        self.factor.solve_in_place_with_conj(Conj::No, right);
    }
}

/// Rows of a symmetric matrix are its columns.
fn view(matrix: &SparseRows) -> SparseColMatRef<'_, u32, f64> {
    let (offsets, columns, values) = matrix.compressed();
    let n = matrix.size();
    SparseColMatRef::new(SymbolicSparseColMatRef::new_checked(n, n, offsets, None, columns), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laplacian::uniform_laplacian;
    use crate::{Adjacency, Face};

    #[test]
    fn solutions_solve_and_indefinite_matrices_are_refused() {
        let side = 12u32;
        let quad = |i: u32| {
            let at = i / (side - 1) * side + i % (side - 1);
            Face::quad(at, at + 1, at + side + 1, at + side)
        };
        let faces: Vec<Face> = (0..(side - 1) * (side - 1)).map(quad).collect();
        let n = (side * side) as usize;
        let laplacian = uniform_laplacian(&Adjacency::from_faces(n, &faces));
        let matrix = laplacian.sandwich(&vec![1.0; n]).scaled_plus_diagonal(1.0, &vec![0.1; n]);
        let pattern = SparsePattern::new(&matrix).expect("memory");
        let factor = pattern.factor(&matrix).expect("positive definite");
        let right: Vec<f64> = (0..3 * n).map(|i| (i as f64).cos()).collect();
        let mut x = right.clone();
        factor.solve(&mut x);
        for (x, b) in x.chunks_exact(n).zip(right.chunks_exact(n)) {
            let worst = matrix.times(x).iter().zip(b).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
            assert!(worst < 1e-10, "{worst}");
        }
        assert!(pattern.factor(&laplacian.scaled_plus_diagonal(1.0, &vec![-1.0; n])).is_none());
        let nothing =
            SparseCholesky::new(&SparseRows::from_triplets(0, Vec::new())).expect("an empty system");
        nothing.solve(&mut []);
        assert_eq!(nothing.size(), 0);
    }
}
