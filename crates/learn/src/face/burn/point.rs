//! The 1×1 convolution at the end of many networks at once, with weights that pixels share or that each has
//! of its own, and its derivatives. Images are `[networks, poses, pixels, channels]`.

use super::stage::sum_rows;
use burn_tensor::Tensor;
use burn_tensor::backend::Backend;
use understudy_runtime::face::map_decoder::MapShape;

/// What pixels read, or derivatives by it.
#[derive(Clone)]
pub(super) struct Read<B: Backend> {
    /// `[networks, poses, pixels, hidden]`.
    pub features: Tensor<B, 4>,
    /// The same for all pixels, `[networks, poses, common]`, where there is something.
    pub common: Option<Tensor<B, 3>>,
}

/// Derivatives by what went in.
pub(super) struct PointSlopes<B: Backend> {
    /// By what pixels read.
    pub read: Read<B>,
    /// `[networks, sets, outputs, hidden + common]`, flat.
    pub weights: Tensor<B, 1>,
    /// `[networks, sets, outputs]`, flat.
    pub bias: Tensor<B, 1>,
}

/// `Σ_c w[o][c] · read[c] + bias[o]`. `weights`: `[networks, sets, outputs, hidden + common]`, `bias`:
/// `[networks, sets, outputs]`.
pub(super) fn forward<B: Backend>(
    shape: &MapShape,
    read: Read<B>,
    weights: Tensor<B, 4>,
    bias: Tensor<B, 3>,
) -> Tensor<B, 4> {
    let [n, poses, pixels, hidden] = read.features.dims();
    let outputs = shape.outputs;
    if !shape.untied {
        let weights = weights.reshape([n, outputs, hidden]).swap_dims(1, 2);
        let sums = read.features.reshape([n, poses * pixels, hidden]).matmul(weights);
        return (sums + bias.reshape([n, 1, outputs])).reshape([n, poses, pixels, outputs]);
    }
    let own = weights.clone().narrow(3, 0, hidden).reshape([n, 1, pixels, outputs, hidden]);
    let products = read.features.reshape([n, poses, pixels, 1, hidden]) * own;
    let map =
        products.sum_dim(4).reshape([n, poses, pixels, outputs]) + bias.reshape([n, 1, pixels, outputs]);
    match read.common {
        None => map,
        Some(common) => {
            let weights = common_weights(shape, weights).swap_dims(1, 2);
            map + common.matmul(weights).reshape([n, poses, pixels, outputs])
        }
    }
}

/// `[networks, pixels · outputs, common]`.
fn common_weights<B: Backend>(shape: &MapShape, weights: Tensor<B, 4>) -> Tensor<B, 3> {
    let [n, pixels, outputs, _] = weights.dims();
    weights.narrow(3, shape.hidden, shape.shared_features).reshape([
        n,
        pixels * outputs,
        shape.shared_features,
    ])
}

/// From derivatives by the map.
pub(super) fn backward<B: Backend>(
    shape: &MapShape,
    read: Read<B>,
    weights: Tensor<B, 4>,
    by_map: Tensor<B, 4>,
) -> PointSlopes<B> {
    let Read { features, common } = read;
    let [n, poses, pixels, hidden] = features.dims();
    let outputs = shape.outputs;
    let rows = n * shape.sets() * outputs;
    if !shape.untied {
        let flat = by_map.clone().reshape([n, poses * pixels, outputs]);
        let by_features = flat.clone().matmul(weights.reshape([n, outputs, hidden]));
        return PointSlopes {
            read: Read { features: by_features.reshape([n, poses, pixels, hidden]), common: None },
            weights: by_map.swap_dims(2, 3).matmul(features).sum_dim(1).reshape([rows * hidden]),
            bias: sum_rows(flat).reshape([rows]),
        };
    }
    let by = by_map.clone().reshape([n, poses, pixels, outputs, 1]);
    let own = weights.clone().narrow(3, 0, hidden).reshape([n, 1, pixels, outputs, hidden]);
    let by_features = (by.clone() * own).sum_dim(3).reshape([n, poses, pixels, hidden]);
    let by_own = by * features.reshape([n, poses, pixels, 1, hidden]);
    let mut by_weights = by_own.sum_dim(1).reshape([n, pixels, outputs, hidden]);
    let by_common = common.map(|common| {
        let by = by_map.clone().reshape([n, poses, pixels * outputs]);
        let by_shared = by.clone().swap_dims(1, 2).matmul(common);
        let by_shared = by_shared.reshape([n, pixels, outputs, shape.shared_features]);
        by_weights = Tensor::cat(vec![by_weights.clone(), by_shared], 3);
        by.matmul(common_weights(shape, weights))
    });
    PointSlopes {
        read: Read { features: by_features, common: by_common },
        weights: by_weights.reshape([rows * shape.reads()]),
        bias: by_map.sum_dim(1).reshape([rows]),
    }
}
