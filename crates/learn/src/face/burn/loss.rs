//! The loss of a face twin (3.1) and its derivative by the vertices, for a batch of poses at once: what
//! [`super::super::loss::Loss`] is for one. Points are `[poses, 3, members]`.

use super::super::loss::{Cost, Loss, NO_AREA};
use super::sparse::{Rows, Sparse, transposed};
use burn_tensor::backend::Backend;
use burn_tensor::{Int, Tensor, TensorData};

/// What the loss looks at, on the device.
pub(super) struct BatchLoss<B: Backend> {
    /// From vertices to the difference vectors of all faces: first `v_b − v_a`, then `v_d − v_c`.
    edges: Sparse<B>,
    /// Its transpose.
    edges_back: Sparse<B>,
    faces: usize,
    /// One for vertices whose positions count, `[1, 1, members]`.
    counted: Tensor<B, 3>,
    sum_members: Sparse<B>,
    sum_faces: Sparse<B>,
    /// Coordinates in the order of a cross product's first and second factors.
    turned: [Tensor<B, 1, Int>; 2],
    position_weight: f64,
    normal_weight: f64,
}

/// What a batch gives.
pub(super) struct Evaluated<B: Backend> {
    /// Terms a pose and coordinate, `[poses, 3, 1]`: of positions, of normals where they count.
    sums: Option<[Option<Tensor<B, 3>>; 2]>,
    /// `∂L/∂ṽ` of the mean over the batch.
    pub slopes: Option<Tensor<B, 3>>,
}

/// Which of both answers are wanted.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub cost: bool,
    pub slopes: bool,
}

impl<B: Backend> BatchLoss<B> {
    /// `members`: how many vertices there are.
    pub fn new(loss: &Loss, members: usize, device: &B::Device) -> Self {
        let weighs = loss.normal_weight > 0.0;
        let faces = if weighs { &loss.faces[..] } else { &[] };
        let first = faces.iter().map(|[a, b, _, _]| vec![(*b, 1.0), (*a, -1.0)]);
        let second = faces.iter().map(|[_, _, c, d]| vec![(*d, 1.0), (*c, -1.0)]);
        let edges: Rows = first.chain(second).collect();
        let back = transposed(&edges, members);
        let mut counted = vec![0.0f32; members];
        loss.counted.iter().for_each(|v| counted[*v as usize] = 1.0);
        let total = |count: usize| vec![(0..count as u32).map(|entry| (entry, 1.0)).collect()];
        let order = |order: [i32; 3]| Tensor::from_data(TensorData::new(order.to_vec(), [3]), device);
        Self {
            edges: Sparse::new(edges, device),
            edges_back: Sparse::new(back, device),
            faces: faces.len(),
            counted: Tensor::from_data(TensorData::new(counted, [1, 1, members]), device),
            sum_members: Sparse::new(total(members), device),
            sum_faces: Sparse::new(total(faces.len()), device),
            turned: [order([1, 2, 0]), order([2, 0, 1])],
            position_weight: 1.0 / loss.vertex_total.max(1) as f64,
            normal_weight: f64::from(loss.normal_weight) / loss.face_total.max(1) as f64,
        }
    }

    fn cross(&self, p: &Tensor<B, 3>, q: &Tensor<B, 3>) -> Tensor<B, 3> {
        let [next, over] = &self.turned;
        let turn = |v: &Tensor<B, 3>, order: &Tensor<B, 1, Int>| v.clone().select(1, order.clone());
        turn(p, next) * turn(q, over) - turn(p, over) * turn(q, next)
    }

    /// Cost and slopes of a batch, as far as they are wanted.
    pub fn evaluate(&self, truth: Tensor<B, 3>, now: Tensor<B, 3>, wanted: Wanted) -> Evaluated<B> {
        let poses = now.dims()[0];
        let share = 1.0 / poses as f64;
        let miss = now.clone() - truth.clone();
        let position =
            wanted.cost.then(|| self.sum_members.apply(miss.clone().abs().mul(self.counted.clone())));
        let unit = (self.position_weight * share) as f32;
        let slopes = wanted.slopes.then(|| miss.sign().mul(self.counted.clone().mul_scalar(unit)));
        let mut out = Evaluated { sums: None, slopes };
        let mut normal = None;
        if self.faces > 0 {
            let (sum, by_vectors) = self.normals(truth, now, wanted, (self.normal_weight * share) as f32);
            normal = sum;
            out.slopes = match (out.slopes, by_vectors) {
                (Some(slopes), Some(by_vectors)) => Some(slopes + self.edges_back.apply(by_vectors)),
                (slopes, _) => slopes,
            };
        }
        out.sums = wanted.cost.then_some([position, normal]);
        out
    }

    /// The sum over normals, and the derivative by the vectors of all faces, `unit` included.
    fn normals(
        &self,
        truth: Tensor<B, 3>,
        now: Tensor<B, 3>,
        wanted: Wanted,
        unit: f32,
    ) -> (Option<Tensor<B, 3>>, Option<Tensor<B, 3>>) {
        let poses = now.dims()[0];
        let vectors = self.edges.apply(Tensor::cat(vec![now, truth], 0));
        let p = vectors.clone().narrow(2, 0, self.faces);
        let q = vectors.narrow(2, self.faces, self.faces);
        let area = self.cross(&p, &q);
        let squares = area.clone().mul(area.clone()).sum_dim(1);
        let short = squares.clone().narrow(0, 0, poses);
        let long = squares.clone().narrow(0, poses, poses);
        // Faces without an area have no normal: nothing of them counts.
        let least = NO_AREA * NO_AREA;
        let whole = short.greater_equal_elem(least).float() * long.greater_equal_elem(least).float();
        let size = squares.clamp_min(least).sqrt().recip();
        let direction = area * size.clone();
        let miss = direction.clone().narrow(0, 0, poses) - direction.clone().narrow(0, poses, poses);
        let sum = wanted.cost.then(|| self.sum_faces.apply(miss.clone().abs() * whole.clone()));
        let by_vectors = wanted.slopes.then(|| {
            let (p, q) = (p.narrow(0, 0, poses), q.narrow(0, 0, poses));
            let (direction, size) = (direction.narrow(0, 0, poses), size.narrow(0, 0, poses));
            // ∂n/∂A = (1 − n nᵀ)/|A|.
            let by_normal = miss.sign() * whole.mul_scalar(unit);
            let along = direction.clone().mul(by_normal.clone()).sum_dim(1);
            let by_area = (by_normal - direction * along) * size;
            Tensor::cat(vec![self.cross(&q, &by_area), self.cross(&by_area, &p)], 2)
        });
        (sum, by_vectors)
    }

    /// Reads a cost back: the mean over its poses.
    pub fn read(&self, evaluated: Evaluated<B>) -> Cost {
        let mean = |sums: Option<Tensor<B, 3>>, weight: f64| -> f64 {
            let Some(sums) = sums else { return 0.0 };
            let poses = sums.dims()[0];
            let numbers = sums.into_data().to_vec::<f32>().expect("numbers of 32 bits");
            numbers.iter().map(|n| f64::from(*n)).sum::<f64>() * weight / poses as f64
        };
        let [position, normal] = evaluated.sums.unwrap_or_default();
        Cost { position: mean(position, self.position_weight), normal: mean(normal, self.normal_weight) }
    }
}
