//! The 1×1 convolution at the end of many networks at once, with weights that pixels share or that each has
//! of its own, and its derivatives. Images are `[networks, poses, pixels, channels]`.

use super::stage::sum_rows;
use burn_tensor::Tensor;
use burn_tensor::backend::Backend;
use understudy_runtime::face::drawing::DrawingShape;

/// Derivatives by what went in.
pub(super) struct PointSlopes<B: Backend> {
    /// `[networks, poses, pixels, hidden]`.
    pub features: Tensor<B, 4>,
    /// `[networks, sets, outputs, hidden]`, flat.
    pub weights: Tensor<B, 1>,
    /// `[networks, sets, outputs]`, flat.
    pub bias: Tensor<B, 1>,
}

/// `Σ_c w[o][c] · features[c] + bias[o]`. `weights`: `[networks, sets, outputs, hidden]`, `bias`:
/// `[networks, sets, outputs]`.
pub(super) fn forward<B: Backend>(
    shape: &DrawingShape,
    features: Tensor<B, 4>,
    weights: Tensor<B, 4>,
    bias: Tensor<B, 3>,
) -> Tensor<B, 4> {
    let [n, poses, pixels, hidden] = features.dims();
    let outputs = shape.outputs;
    if shape.untied {
        let products = features.reshape([n, poses, pixels, 1, hidden])
            * weights.reshape([n, 1, pixels, outputs, hidden]);
        products.sum_dim(4).reshape([n, poses, pixels, outputs]) + bias.reshape([n, 1, pixels, outputs])
    } else {
        let weights = weights.reshape([n, outputs, hidden]).swap_dims(1, 2);
        let sums = features.reshape([n, poses * pixels, hidden]).matmul(weights);
        (sums + bias.reshape([n, 1, outputs])).reshape([n, poses, pixels, outputs])
    }
}

/// From derivatives by the map.
pub(super) fn backward<B: Backend>(
    shape: &DrawingShape,
    features: Tensor<B, 4>,
    weights: Tensor<B, 4>,
    by_map: Tensor<B, 4>,
) -> PointSlopes<B> {
    let [n, poses, pixels, hidden] = features.dims();
    let outputs = shape.outputs;
    let [weight_count, bias_count] = [n * shape.sets() * outputs * hidden, n * shape.sets() * outputs];
    if shape.untied {
        let by = by_map.clone().reshape([n, poses, pixels, outputs, 1]);
        let by_features = by.clone() * weights.reshape([n, 1, pixels, outputs, hidden]);
        let by_weights = by * features.reshape([n, poses, pixels, 1, hidden]);
        PointSlopes {
            features: by_features.sum_dim(3).reshape([n, poses, pixels, hidden]),
            weights: by_weights.sum_dim(1).reshape([weight_count]),
            bias: by_map.sum_dim(1).reshape([bias_count]),
        }
    } else {
        let flat = by_map.clone().reshape([n, poses * pixels, outputs]);
        let by_features = flat.clone().matmul(weights.reshape([n, outputs, hidden]));
        PointSlopes {
            features: by_features.reshape([n, poses, pixels, hidden]),
            weights: by_map.swap_dims(2, 3).matmul(features).sum_dim(1).reshape([weight_count]),
            bias: sum_rows(flat).reshape([bias_count]),
        }
    }
}
