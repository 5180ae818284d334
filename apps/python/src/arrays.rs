//! NumPy's arrays as the slices that the rest of the program reads and writes, without copies. Shapes and strides are
//! checked here.

use crate::problem::bad;
use numpy::ndarray::Dimension;
use numpy::{
    PyArray, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3, PyReadwriteArray2, PyReadwriteArray3,
    PyUntypedArrayMethods as _,
};
use pyo3::prelude::*;
use understudy_core::{Affine3A, Mat3, Vec3};

const _: () = assert!(size_of::<Vec3>() == 12 && align_of::<Vec3>() == align_of::<f32>());

fn vectors(numbers: &[f32]) -> &[Vec3] {
    debug_assert!(numbers.len().is_multiple_of(3));
    // SAFETY: a Vec3 is three numbers, no more and as aligned as one; the length is rounded down to whole ones.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len() / 3) }
}

fn vectors_mut(numbers: &mut [f32]) -> &mut [Vec3] {
    debug_assert!(numbers.len().is_multiple_of(3));
    // SAFETY: as above; any three numbers are a Vec3, and any Vec3 is three numbers.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), numbers.len() / 3) }
}

fn not_contiguous(what: &str) -> PyErr {
    bad(format!("{what}: the array is not contiguous: numpy.ascontiguousarray makes it so"))
}

/// A slice of an array by columns (a transposed one, say) would have its numbers in another order.
fn check_order<D: Dimension>(what: &str, array: &Bound<'_, PyArray<f32, D>>) -> PyResult<()> {
    if array.is_c_contiguous() { Ok(()) } else { Err(not_contiguous(what)) }
}

fn check_last(what: &str, shape: &[usize], want: usize) -> PyResult<()> {
    match shape.last() {
        Some(&last) if last == want => Ok(()),
        _ => Err(bad(format!("{what}: shape {shape:?}, {want} numbers per row expected"))),
    }
}

/// Values of controls.
pub fn numbers<'a>(array: &'a PyReadonlyArray1<'_, f32>, what: &str) -> PyResult<&'a [f32]> {
    array.as_slice().map_err(|_| not_contiguous(what))
}

/// Values of controls of many poses, `[poses, controls]`, with the number of poses.
pub fn rows_of<'a>(array: &'a PyReadonlyArray2<'_, f32>, what: &str) -> PyResult<(usize, &'a [f32])> {
    check_order(what, array)?;
    Ok((array.as_array().shape()[0], array.as_slice().map_err(|_| not_contiguous(what))?))
}

/// `[n, 3]` as places or directions.
pub fn places<'a>(array: &'a PyReadonlyArray2<'_, f32>, what: &str) -> PyResult<&'a [Vec3]> {
    check_last(what, array.as_array().shape(), 3)?;
    check_order(what, array)?;
    Ok(vectors(array.as_slice().map_err(|_| not_contiguous(what))?))
}

/// `[n, 3]` to be written.
pub fn places_mut<'a>(array: &'a mut PyReadwriteArray2<'_, f32>, what: &str) -> PyResult<&'a mut [Vec3]> {
    check_last(what, array.as_array().shape(), 3)?;
    check_order(what, array)?;
    Ok(vectors_mut(array.as_slice_mut().map_err(|_| not_contiguous(what))?))
}

/// `[b, n, 3]` to be written, with `b`.
pub fn crowd_mut<'a>(
    array: &'a mut PyReadwriteArray3<'_, f32>,
    what: &str,
) -> PyResult<(usize, &'a mut [Vec3])> {
    let shape = array.as_array().shape().to_vec();
    check_last(what, &shape, 3)?;
    check_order(what, array)?;
    Ok((shape[0], vectors_mut(array.as_slice_mut().map_err(|_| not_contiguous(what))?)))
}

/// `[J, 3, 4]`: the rows of world transforms, translation last.
pub fn bones(array: &PyReadonlyArray3<'_, f32>, what: &str) -> PyResult<Vec<Affine3A>> {
    let shape = array.as_array().shape().to_vec();
    if shape[1..] != [3, 4] && shape[1..] != [4, 4] {
        return Err(bad(format!("{what}: shape {shape:?}, [bones, 3, 4] expected")));
    }
    check_order(what, array)?;
    let numbers = array.as_slice().map_err(|_| not_contiguous(what))?;
    Ok(numbers.chunks_exact(shape[1] * 4).map(affine).collect())
}

/// Of the rows of a transform.
pub fn affine(rows: &[f32]) -> Affine3A {
    let column = |axis: usize| Vec3::new(rows[axis], rows[4 + axis], rows[8 + axis]);
    Affine3A::from_mat3_translation(Mat3::from_cols(column(0), column(1), column(2)), column(3))
}

/// The rows of transforms.
pub fn rows(bones: &[Affine3A]) -> Vec<f32> {
    let row = |bone: &Affine3A, row: usize| {
        let m = bone.matrix3;
        [m.x_axis[row], m.y_axis[row], m.z_axis[row], bone.translation[row]]
    };
    bones.iter().flat_map(|bone| (0..3).flat_map(move |index| row(bone, index))).collect()
}
