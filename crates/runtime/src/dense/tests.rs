//! Every kernel against the slow truth, at lane edges and beyond.

use super::*;
use understudy_core::Random;

/// Sizes around lanes, panels and tiles.
const SIZES: &[usize] = match cfg!(miri) {
    false => &[0, 1, 7, 8, 9, 15, 16, 17, 100, 131],
    // An interpreter needs minutes for the large ones, which go the same ways.
    true => &[0, 1, 8, 17],
};

fn layer(rows: usize, columns: usize, activation: Activation, precision: Precision) -> (Layer, Random) {
    let mut random = Random::stream(rows as u64, columns as u64);
    let scale = 1.5 / (columns.max(1) as f32).sqrt();
    let weights: Vec<f32> = (0..rows * columns).map(|_| random.uniform(-scale, scale)).collect();
    let bias: Vec<f32> = (0..rows).map(|_| random.uniform(-1.0, 1.0)).collect();
    (Layer::pack(&weights, &bias, columns, activation, precision).expect("finite weights"), random)
}

fn tolerance(columns: usize) -> f32 {
    // Terms are below 1.5, sums below ~3: n half-ulps of that, and the tangent's own bound.
    4.0 * understudy_testkit::Tol::f32_sum(columns + 1) + tanh::MAX_ERROR
}

#[test]
fn one_pose_matches_the_reference_at_every_size() {
    Kernel::all().for_each(one_pose_matches_the_reference);
}

fn one_pose_matches_the_reference(kernel: Kernel) {
    for activation in [Activation::None, Activation::Tanh] {
        for precision in [Precision::Half, Precision::Single] {
            for &rows in SIZES {
                for &columns in SIZES {
                    let (layer, mut random) = layer(rows, columns, activation, precision);
                    let x: Vec<f32> = (0..columns).map(|_| random.uniform(-1.0, 1.0)).collect();
                    let (mut fast, mut slow) =
                        (vec![7.0; layer.padded_rows()], vec![9.0; layer.padded_rows()]);
                    layer.apply(kernel, &x, &mut fast);
                    layer.apply(Kernel::REFERENCE, &x, &mut slow);
                    for (row, (a, b)) in fast.iter().zip(&slow).enumerate() {
                        let miss = (a - b).abs();
                        assert!(
                            miss <= tolerance(columns),
                            "{rows}×{columns} {precision:?} row {row}: {miss}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn many_poses_match_one_pose() {
    Kernel::all().for_each(many_poses_match_one);
}

fn many_poses_match_one(kernel: Kernel) {
    let (counts, sizes): (&[usize], &[(usize, usize)]) = match cfg!(miri) {
        false => {
            (&[0, 1, 2, 5, 6, 7, 11, 12, 13, 23, 64], &[(1, 1), (16, 8), (33, 100), (100, 33), (128, 240)])
        }
        true => (&[0, 1, 7], &[(1, 1), (33, 9)]),
    };
    for &poses in counts {
        for (&(rows, columns), precision) in
            sizes.iter().flat_map(|size| [(size, Precision::Half), (size, Precision::Single)])
        {
            let (layer, mut random) = layer(rows, columns, Activation::Tanh, precision);
            let (x_stride, y_stride) = (columns + 3, layer.padded_rows() + 5);
            let x: Vec<f32> = (0..poses * x_stride).map(|_| random.uniform(-1.0, 1.0)).collect();
            let mut many = vec![0.0; poses * y_stride];
            let mut panel = vec![0.0; layer.working_size()];
            layer.apply_batch(kernel, poses, &x, x_stride, &mut many, y_stride, &mut panel);
            let mut one = vec![0.0; layer.padded_rows()];
            for pose in 0..poses {
                layer.apply(Kernel::REFERENCE, &x[pose * x_stride..], &mut one);
                for (a, b) in many[pose * y_stride..].iter().zip(&one) {
                    assert!((a - b).abs() <= tolerance(columns), "{poses} poses, {rows}×{columns}");
                }
            }
        }
    }
}

#[test]
fn bad_parts_are_named() {
    let pack = |w: &[f32], b: &[f32]| Layer::pack(w, b, 2, Activation::None, Precision::Half);
    assert_eq!(pack(&[1.0; 3], &[0.0; 2]), Err(LayerError::Count { what: "weights", got: 3, want: 4 }));
    let nan = pack(&[1.0, f32::NAN], &[0.0]);
    assert_eq!(nan, Err(LayerError::NonFinite { what: "weights", index: 1 }));
    let huge = pack(&[1.0, 1e6], &[0.0]);
    assert_eq!(huge, Err(LayerError::NonFinite { what: "weights in 16 bits", index: 1 }));
}

#[test]
fn tangents_in_lanes_match_the_scalar_form() {
    let mut numbers: Vec<f32> = (-1000..1003).map(|i| i as f32 * 0.011).collect();
    let slow: Vec<f32> = numbers.iter().map(|x| tanh::tanh(*x)).collect();
    Kernel::detect().tanh(&mut numbers);
    for (a, b) in numbers.iter().zip(&slow) {
        assert!((a - b).abs() <= tanh::MAX_ERROR);
    }
}
