//! All networks of a stage on one device: the poses lie there from the beginning, and a step sends nothing
//! but the numbers of its poses. Start at [`BurnTrainer`].

use super::super::FaceLearnError;
use super::super::loss::Cost;
use super::super::net::{NetKind, NetSpec, TrainNet};
use super::super::parameters::ParameterLayout;
use super::super::start::first_parameters;
use super::super::train::{NetState, Train};
use super::super::trainer::Problem;
use super::super::update::{BETA_1, BETA_2, EPSILON, Step};
use super::group::{Group, GroupTape, sort};
use super::loss::{BatchLoss, Wanted};
use super::sparse::{Rows, Sparse, transposed};
use burn_tensor::backend::Backend;
use burn_tensor::{Int, Tensor, TensorData};
use std::sync::{Mutex, MutexGuard, PoisonError};
use understudy_core::Vec3;
use understudy_runtime::face::NetParts;
use understudy_runtime::face::sample::BilinearSample;

/// A cost is read back once in so many steps: reading waits for all that runs behind.
const READ_EVERY: usize = 16;
/// Poses that are measured or predicted at once.
const MANY: usize = 32;

/// Networks, their poses and their loss on a device of burn's.
pub struct BurnTrainer<'a, B: Backend> {
    problem: Problem<'a>,
    device: B::Device,
    batch: usize,
    specs: Vec<NetSpec>,
    layouts: Vec<ParameterLayout>,
    groups: Vec<Group<B>>,
    /// Per network, where its parameters stand among all.
    places: Vec<Vec<usize>>,
    parameter_count: usize,
    /// From what networks give to members, units included, and back.
    offsets: Sparse<B>,
    offsets_back: Sparse<B>,
    /// `[all poses, 3, members]`.
    truth: Tensor<B, 3>,
    /// The same, or one row for all.
    base: Tensor<B, 3>,
    loss: BatchLoss<B>,
    multiply_adds: usize,
    state: Mutex<State<B>>,
}

/// All parameters and what belongs to each, flat.
struct State<B: Backend> {
    parameters: Tensor<B, 1>,
    first: Tensor<B, 1>,
    second: Tensor<B, 1>,
    best: Tensor<B, 1>,
    /// The cost that was read last, and the steps since then.
    cost: Option<Cost>,
    since: usize,
}

impl<'a, B: Backend> BurnTrainer<'a, B> {
    /// Fresh networks. `hidden`: width of the dense layers. The problem's poses are copied to the device.
    pub fn new(
        problem: Problem<'a>,
        specs: Vec<NetSpec>,
        hidden: usize,
        batch: usize,
        seed: u64,
        device: B::Device,
    ) -> Self {
        let layouts: Vec<ParameterLayout> =
            specs.iter().map(|spec| ParameterLayout::new(spec, hidden)).collect();
        let mut groups: Vec<Group<B>> = Vec::new();
        let mut places = vec![Vec::new(); specs.len()];
        let mut parameter_count = 0;
        for nets in sort(&layouts) {
            let (group, end) = Group::new(nets, &specs, &layouts, problem.poses, parameter_count, &device);
            for (index, net) in group.nets.iter().enumerate() {
                places[*net] = group.parameter_places(index, &layouts[*net]);
            }
            groups.push(group);
            parameter_count = end;
        }
        let rows = offset_rows(&problem, &specs, &groups);
        let sources = groups.iter().map(|group| group.nets.len() * group.sources()).sum();
        let back = transposed(&rows, sources);
        let members = problem.members.len();
        let pose_rows = |rows: usize, point: &dyn Fn(usize, usize) -> Vec3| {
            let mut numbers = Vec::with_capacity(rows * 3 * members);
            for row in 0..rows {
                for axis in 0..3 {
                    numbers.extend((0..members).map(|member| point(row, member)[axis]));
                }
            }
            Tensor::from_data(TensorData::new(numbers, [rows, 3, members]), &device)
        };
        let truth = pose_rows(problem.poses.len(), &|pose, member| {
            problem.poses.vertices_of(pose)[problem.members[member] as usize]
        });
        let base = pose_rows(problem.base.len() / members.max(1), &|row, member| {
            problem.base[row * members + member]
        });
        let work = |(spec, layout): (&NetSpec, &ParameterLayout)| {
            TrainNet::new(spec.clone(), Vec::new(), layout.clone(), vec![0.0; layout.count()], 1).work()
        };
        let multiply_adds = specs.iter().zip(&layouts).map(work).sum();
        let first = first_parameters(&problem, &specs, &layouts, seed);
        let blank = Tensor::zeros([parameter_count], &device);
        let state = State {
            parameters: blank.clone(),
            first: blank.clone(),
            second: blank.clone(),
            best: blank,
            cost: None,
            since: 0,
        };
        let trainer = Self {
            loss: BatchLoss::new(&problem.loss, members, &device),
            offsets: Sparse::new(rows, &device),
            offsets_back: Sparse::new(back, &device),
            problem,
            batch,
            specs,
            layouts,
            groups,
            places,
            parameter_count,
            truth,
            base,
            multiply_adds,
            state: Mutex::new(state),
            device,
        };
        let initial = trainer.pack(&first);
        let mut state = trainer.lock();
        (state.parameters, state.best) = (initial.clone(), initial);
        drop(state);
        trainer
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pack<V: AsRef<[f32]>>(&self, arrays: &[V]) -> Tensor<B, 1> {
        let mut all = vec![0.0f32; self.parameter_count];
        for (places, array) in self.places.iter().zip(arrays) {
            places.iter().zip(array.as_ref()).for_each(|(place, number)| all[*place] = *number);
        }
        Tensor::from_data(TensorData::new(all, [self.parameter_count]), &self.device)
    }

    fn unpack(&self, all: &Tensor<B, 1>) -> Vec<Vec<f32>> {
        let all = all.to_data().to_vec::<f32>().expect("numbers of 32 bits");
        self.places.iter().map(|places| places.iter().map(|place| all[*place]).collect()).collect()
    }

    fn numbers(&self, poses: &[usize]) -> Tensor<B, 1, Int> {
        let numbers: Vec<i32> = poses.iter().map(|pose| *pose as i32).collect();
        Tensor::from_data(TensorData::new(numbers, [poses.len()]), &self.device)
    }

    /// Where the members are in some poses.
    fn draw(&self, parameters: &Tensor<B, 1>, poses: Tensor<B, 1, Int>) -> (Tensor<B, 3>, Vec<GroupTape<B>>) {
        let forward = |group: &Group<B>| group.forward(parameters, poses.clone());
        let (mut sources, tapes): (Vec<_>, Vec<_>) = self.groups.iter().map(forward).unzip();
        let sources = if sources.len() == 1 { sources.remove(0) } else { Tensor::cat(sources, 2) };
        let base = match self.base.dims()[0] {
            1 => self.base.clone(),
            _ => self.base.clone().select(0, poses),
        };
        (self.offsets.apply(sources) + base, tapes)
    }

    fn truth_of(&self, poses: Tensor<B, 1, Int>) -> Tensor<B, 3> {
        self.truth.clone().select(0, poses)
    }

    /// Cost, where it is wanted, and the derivative by all parameters.
    fn gradient(
        &self,
        parameters: &Tensor<B, 1>,
        poses: &[usize],
        cost: bool,
    ) -> (Option<Cost>, Tensor<B, 1>) {
        let numbers = self.numbers(poses);
        let (now, tapes) = self.draw(parameters, numbers.clone());
        let mut evaluated = self.loss.evaluate(self.truth_of(numbers), now, Wanted { cost, slopes: true });
        let slopes = evaluated.slopes.take().expect("slopes were wanted");
        let cost = cost.then(|| self.loss.read(evaluated));
        let by_sources = self.offsets_back.apply(slopes);
        let mut arrays = Vec::new();
        let mut start = 0;
        for (group, tape) in self.groups.iter().zip(tapes) {
            let count = group.nets.len() * group.sources();
            arrays.extend(group.backward(parameters, by_sources.clone().narrow(2, start, count), tape));
            start += count;
        }
        (cost, Tensor::cat(arrays, 0))
    }
}

/// For every member, the sources that move it and how much.
fn offset_rows<B: Backend>(problem: &Problem<'_>, specs: &[NetSpec], groups: &[Group<B>]) -> Rows {
    let mut local = vec![u32::MAX; problem.poses.mesh.vertex_count()];
    for (index, vertex) in (0u32..).zip(&problem.members) {
        local[*vertex as usize] = index;
    }
    let mut rows: Rows = vec![Vec::new(); problem.members.len()];
    let mut start = 0;
    for group in groups {
        for net in &group.nets {
            let spec = &specs[*net];
            for (index, vertex) in spec.vertices.iter().enumerate() {
                let row = &mut rows[local[*vertex as usize] as usize];
                match &spec.kind {
                    NetKind::Dense => row.push(((start + index) as u32, spec.unit)),
                    NetKind::Map { shape, coordinates } => {
                        let side = shape.map_side();
                        let sample = BilinearSample::at(coordinates[index], side);
                        let corners = sample.pixels(side).into_iter().zip(sample.weights);
                        row.extend(corners.filter(|(_, weight)| *weight != 0.0).map(|(pixel, weight)| {
                            ((start + group.place(pixel)) as u32, weight * spec.unit)
                        }));
                    }
                }
            }
            start += group.sources();
        }
    }
    rows
}

impl<B: Backend> Train for BurnTrainer<'_, B> {
    fn step(&self, poses: &[usize], number: usize, rate: f32) -> Cost {
        assert!(!poses.is_empty() && poses.len() <= self.batch, "a batch of poses");
        let mut state = self.lock();
        state.since += 1;
        let wanted = state.cost.is_none() || state.since >= READ_EVERY;
        let (cost, gradient) = self.gradient(&state.parameters, poses, wanted);
        if cost.is_some() {
            (state.cost, state.since) = (cost, 0);
        }
        let step = Step::new(number, rate);
        let first = state.first.clone().mul_scalar(BETA_1) + gradient.clone().mul_scalar(1.0 - BETA_1);
        let squares = gradient.clone().mul(gradient).mul_scalar(1.0 - BETA_2);
        let second = state.second.clone().mul_scalar(BETA_2) + squares;
        let root = second.clone().mul_scalar(step.correction_2).sqrt().add_scalar(EPSILON);
        let change = first.clone().mul_scalar(step.rate * step.correction_1).div(root);
        state.parameters = state.parameters.clone() - change;
        (state.first, state.second) = (first, second);
        state.cost.unwrap_or_default()
    }

    fn settle(&self) {
        // One number of the newest parameters: it is there when all before it is done.
        self.lock().parameters.clone().slice([0..1]).into_data();
    }

    fn measure(&self, poses: &[usize]) -> Cost {
        let parameters = self.lock().parameters.clone();
        let mut sum = Cost::default();
        for chunk in poses.chunks(MANY) {
            let numbers = self.numbers(chunk);
            let (now, _) = self.draw(&parameters, numbers.clone());
            let wanted = Wanted { cost: true, slopes: false };
            let cost = self.loss.read(self.loss.evaluate(self.truth_of(numbers), now, wanted));
            let count = chunk.len() as f64;
            sum += Cost { position: cost.position * count, normal: cost.normal * count };
        }
        let count = poses.len().max(1) as f64;
        Cost { position: sum.position / count, normal: sum.normal / count }
    }

    fn predict_poses(
        &self,
        poses: &[usize],
        wanted: &[u32],
        watch: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<Vec3>, FaceLearnError> {
        let parameters = self.lock().parameters.clone();
        let mut out = Vec::with_capacity(poses.len() * wanted.len());
        for chunk in poses.chunks(MANY) {
            let (now, _) = self.draw(&parameters, self.numbers(chunk));
            let now = now.into_data().to_vec::<f32>().expect("numbers of 32 bits");
            let members = self.problem.members.len();
            for pose in now.chunks_exact(3 * members) {
                let point = |member: &u32| {
                    let axis = |axis: usize| pose[axis * members + *member as usize];
                    Vec3::new(axis(0), axis(1), axis(2))
                };
                out.extend(wanted.iter().map(point));
            }
            if !watch(out.len() / wanted.len().max(1)) {
                return Err(FaceLearnError::Stopped);
            }
        }
        Ok(out)
    }

    fn problem(&self) -> &Problem<'_> {
        &self.problem
    }

    fn keep(&self) {
        let mut state = self.lock();
        state.best = state.parameters.clone();
    }

    fn restore_best(&self) {
        let mut state = self.lock();
        state.parameters = state.best.clone();
    }

    fn state(&self) -> Vec<NetState> {
        let state = self.lock();
        let arrays = [&state.parameters, &state.first, &state.second, &state.best];
        let [parameters, first, second, best] = arrays.map(|array| self.unpack(array));
        let nets = parameters.into_iter().zip(first).zip(second).zip(best);
        nets.map(|(((parameters, first), second), best)| [parameters, first, second, best]).collect()
    }

    fn set_state(&self, state: &[NetState]) -> bool {
        let fits = |(layout, arrays): (&ParameterLayout, &NetState)| {
            let count = layout.count();
            arrays.iter().all(|array| array.len() == count && array.iter().all(|n| n.is_finite()))
        };
        if state.len() != self.layouts.len() || !self.layouts.iter().zip(state).all(fits) {
            return false;
        }
        let [parameters, first, second, best] =
            [0, 1, 2, 3].map(|array| self.pack(&state.iter().map(|net| &net[array]).collect::<Vec<_>>()));
        *self.lock() = State { parameters, first, second, best, cost: None, since: 0 };
        true
    }

    fn parts(&self) -> Vec<NetParts> {
        let parameters = self.unpack(&self.lock().parameters);
        let nets = self.layouts.iter().zip(&self.specs).zip(&parameters);
        nets.map(|((layout, spec), parameters)| layout.parts(spec, parameters)).collect()
    }

    fn network_count(&self) -> usize {
        self.specs.len()
    }

    fn multiply_adds(&self) -> usize {
        self.multiply_adds
    }
}
