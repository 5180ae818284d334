//! All networks of a stage trained together, since the loss looks across the borders of segments. A step
//! is three rounds of tasks on a few threads: dense layers a network, then all that one pose needs a pose,
//! then the step per network. Every sum has a fixed order, so that the number of threads leaves no trace.
//! Start at [`Trainer`].

use super::loss::{Cost, Loss};
use super::net::{NetHarvest, NetSpec, PoseTape, TrainNet};
use super::parameters::ParameterLayout;
use super::start::first_parameters;
use super::update::Step;
use super::{FaceLearnError, Recording};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use understudy_core::{Vec3, Vec3A};
use understudy_runtime::dense::Kernel;
use understudy_runtime::face::NetParts;
use understudy_runtime::workers::Workers;

/// What training goes on from, per network: parameters, both moments of their gradient, the best parameters.
pub type NetState = [Vec<f32>; 4];

/// What is to be learned.
pub struct Problem<'a> {
    /// The poses, the head's motion taken away.
    pub poses: &'a Recording,
    /// The vertices of the mesh that the loss sees.
    pub members: Vec<u32>,
    /// Where they are before the networks add to them: one row for all poses, or one per pose.
    pub base: Vec<Vec3>,
    /// What counts, by numbers into `members`.
    pub loss: Loss,
    /// Poses that the networks begin from; none: with random weights.
    pub start: Vec<usize>,
}

impl Problem<'_> {
    /// For every vertex of the mesh its number among the members.
    pub(super) fn locals(&self) -> Vec<u32> {
        let mut local = vec![u32::MAX; self.poses.mesh.vertex_count()];
        for (index, vertex) in (0u32..).zip(&self.members) {
            local[*vertex as usize] = index;
        }
        local
    }

    pub(super) fn base_of(&self, pose: usize) -> &[Vec3] {
        let count = self.members.len();
        if self.base.len() == count { &self.base } else { &self.base[pose * count..(pose + 1) * count] }
    }
}

/// The memory in which one pose at a time is worked on: all its networks stay near each other in the cache.
struct Desk {
    tapes: Vec<PoseTape>,
    truth: Vec<Vec3A>,
    now: Vec<Vec3A>,
    slopes: Vec<Vec3A>,
}

/// What a pose leaves for the step.
struct Harvest {
    cost: Cost,
    /// Where the vertices were put; only filled for predictions.
    predicted: Vec<Vec3>,
    /// Derivatives a network.
    nets: Vec<NetHarvest>,
}

/// Networks, their memory and the threads.
pub struct Trainer<'a> {
    problem: Problem<'a>,
    workers: Workers,
    kernel: Kernel,
    batch: usize,
    nets: Vec<RwLock<TrainNet>>,
    /// As many as threads; which pose is worked on where leaves no trace.
    desks: Vec<Mutex<Desk>>,
    harvests: Vec<RwLock<Harvest>>,
    /// Networks, the heaviest first.
    order: Vec<usize>,
}

/// What a pose is worked on for.
#[derive(Clone, Copy)]
enum Then<'w> {
    /// Its cost.
    Measure,
    /// Its cost and all derivatives.
    Learn,
    /// Where some of the vertices are.
    Predict(&'w [u32]),
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Trainer<'a> {
    /// Fresh networks. `hidden`: width of the dense layers.
    pub fn new(
        problem: Problem<'a>,
        specs: Vec<NetSpec>,
        hidden: usize,
        batch: usize,
        seed: u64,
        threads: usize,
    ) -> Result<Self, FaceLearnError> {
        let local = problem.locals();
        let layouts: Vec<ParameterLayout> = specs.iter().map(|s| ParameterLayout::new(s, hidden)).collect();
        let first = first_parameters(&problem, &specs, &layouts, seed);
        let net = |((spec, layout), parameters): ((NetSpec, ParameterLayout), Vec<f32>)| {
            let members = spec.vertices.iter().map(|v| local[*v as usize]).collect();
            TrainNet::new(spec, members, layout, parameters, batch)
        };
        let nets = specs.into_iter().zip(layouts).zip(first).map(net).collect();
        Self::with_nets(problem, nets, batch, threads)
    }

    /// Trained networks that learn to read something else off their features (see [`super::normals`]). `None`
    /// where one has no weights for that.
    pub fn reading(
        problem: Problem<'a>,
        nets: &[NetParts],
        batch: usize,
        threads: usize,
    ) -> Option<Result<Self, FaceLearnError>> {
        let local = problem.locals();
        let net = |net: &NetParts| {
            let members = net.vertices.iter().map(|v| local[*v as usize]).collect();
            TrainNet::reading(net, members, batch)
        };
        let nets = nets.iter().map(net).collect::<Option<Vec<_>>>()?;
        Some(Self::with_nets(problem, nets, batch, threads))
    }

    fn with_nets(
        problem: Problem<'a>,
        nets: Vec<TrainNet>,
        batch: usize,
        threads: usize,
    ) -> Result<Self, FaceLearnError> {
        let count = problem.members.len();
        let blank = || vec![Vec3A::ZERO; count];
        let desk = |_| {
            let tapes = nets.iter().map(TrainNet::tape).collect();
            Mutex::new(Desk { tapes, truth: blank(), now: blank(), slopes: blank() })
        };
        let harvest = |_| {
            let nets = nets.iter().map(TrainNet::harvest).collect();
            RwLock::new(Harvest { cost: Cost::default(), predicted: Vec::new(), nets })
        };
        let desks = (0..threads.clamp(1, batch)).map(desk).collect();
        let harvests = (0..batch).map(harvest).collect();
        let mut order: Vec<usize> = (0..nets.len()).collect();
        order.sort_by_key(|net| (std::cmp::Reverse(nets[*net].work()), *net));
        let workers =
            Workers::new(threads).map_err(|error| FaceLearnError::Threads { problem: error.to_string() })?;
        Ok(Self {
            workers,
            kernel: Kernel::detect(),
            batch,
            nets: nets.into_iter().map(RwLock::new).collect(),
            desks,
            harvests,
            order,
            problem,
        })
    }

    /// A free desk: there are as many as threads.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        loop {
            for desk in &self.desks {
                match desk.try_lock() {
                    Ok(guard) => return guard,
                    Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) => {}
                }
            }
            std::hint::spin_loop();
        }
    }

    /// Networks draw and vertices move, for at most a batch of poses; then what `then` wants of them.
    fn work(&self, poses: &[usize], then: Then<'_>) {
        self.workers.run(self.nets.len(), &|task| {
            write(&self.nets[self.order[task]]).begin(self.problem.poses, poses);
        });
        self.workers.run(poses.len(), &|task| {
            let mut desk = self.desk();
            let Desk { tapes, truth, now, slopes } = &mut *desk;
            let mut harvest = write(&self.harvests[task]);
            let base = self.problem.base_of(poses[task]);
            now.iter_mut().zip(base).for_each(|(now, base)| *now = (*base).into());
            for (net, tape) in self.nets.iter().zip(tapes.iter_mut()) {
                let net = read(net);
                net.draw(self.kernel, task, tape);
                for (offset, member) in tape.offsets.iter().zip(&net.members) {
                    now[*member as usize] += Vec3A::from(*offset);
                }
            }
            if let Then::Predict(wanted) = then {
                harvest.predicted.clear();
                harvest.predicted.extend(wanted.iter().map(|member| Vec3::from(now[*member as usize])));
                return;
            }
            let vertices = self.problem.poses.vertices_of(poses[task]);
            for (slot, vertex) in truth.iter_mut().zip(&self.problem.members) {
                *slot = vertices[*vertex as usize].into();
            }
            harvest.cost = self.problem.loss.evaluate(truth, now, 1.0 / poses.len() as f32, slopes);
            if let Then::Learn = then {
                for ((net, tape), own) in self.nets.iter().zip(tapes).zip(&mut harvest.nets) {
                    read(net).undraw(self.kernel, slopes, tape, own);
                }
            }
        });
    }

    fn cost(&self, count: usize) -> Cost {
        let mut sum = Cost::default();
        for harvest in &self.harvests[..count] {
            sum += read(harvest).cost;
        }
        Cost { position: sum.position / count as f64, normal: sum.normal / count as f64 }
    }

    /// One step down on a batch of poses; gives the mean cost before it. `number` counts from 1.
    ///
    /// # Panics
    /// When there are more poses than a batch, or none.
    pub fn step(&self, poses: &[usize], number: usize, rate: f32) -> Cost {
        assert!(!poses.is_empty() && poses.len() <= self.batch, "a batch of poses");
        self.work(poses, Then::Learn);
        let count = poses.len();
        let step = Step::new(number, rate);
        self.workers.run(self.nets.len(), &|task| {
            let index = self.order[task];
            let harvests: Vec<_> = self.harvests[..count].iter().map(read).collect();
            let own: Vec<&NetHarvest> = harvests.iter().map(|harvest| &harvest.nets[index]).collect();
            write(&self.nets[index]).finish(&own, step);
        });
        self.cost(count)
    }

    /// The mean cost of some poses, nothing learned.
    pub fn measure(&self, poses: &[usize]) -> Cost {
        let mut sum = Cost::default();
        for batch in poses.chunks(self.batch) {
            self.work(batch, Then::Measure);
            let cost = self.cost(batch.len());
            sum += Cost {
                position: cost.position * batch.len() as f64,
                normal: cost.normal * batch.len() as f64,
            };
        }
        let count = poses.len().max(1) as f64;
        Cost { position: sum.position / count, normal: sum.normal / count }
    }

    /// Where the networks put some of the problem's vertices in some poses, one row per pose.
    pub fn predict_poses(
        &self,
        poses: &[usize],
        wanted: &[u32],
        watch: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<Vec3>, FaceLearnError> {
        let mut out = Vec::with_capacity(poses.len() * wanted.len());
        for batch in poses.chunks(self.batch) {
            self.work(batch, Then::Predict(wanted));
            for harvest in &self.harvests[..batch.len()] {
                out.extend_from_slice(&read(harvest).predicted);
            }
            if !watch(out.len() / wanted.len().max(1)) {
                return Err(FaceLearnError::Stopped);
            }
        }
        Ok(out)
    }

    /// The same in every pose: the base of the networks that refine them.
    pub fn predict(
        &self,
        wanted: &[u32],
        watch: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<Vec3>, FaceLearnError> {
        let all: Vec<usize> = (0..self.problem().poses.len()).collect();
        self.predict_poses(&all, wanted, watch)
    }

    /// What the networks leave of every vertex of the mesh in some poses: its share of the loss, on average.
    pub fn left(&self, poses: &[usize]) -> Result<Vec<f64>, FaceLearnError> {
        let problem = self.problem();
        let members = &problem.members;
        let all: Vec<u32> = (0..members.len() as u32).collect();
        let predicted = self.predict_poses(poses, &all, &mut |_| true)?;
        let mut sums = vec![0.0; members.len()];
        for (pose, now) in poses.iter().zip(predicted.chunks_exact(members.len().max(1))) {
            let vertices = problem.poses.vertices_of(*pose);
            let truth: Vec<Vec3A> = members.iter().map(|v| vertices[*v as usize].into()).collect();
            let now: Vec<Vec3A> = now.iter().map(|v| (*v).into()).collect();
            problem.loss.blame(&truth, &now, &mut sums);
        }
        let mut out = vec![0.0; problem.poses.mesh.vertex_count()];
        for (vertex, sum) in members.iter().zip(sums) {
            out[*vertex as usize] = sum / poses.len().max(1) as f64;
        }
        Ok(out)
    }

    /// Numbers of some vertices of the mesh among those of the problem.
    ///
    /// # Panics
    /// When one is not among them.
    pub fn locals(&self, vertices: &[u32]) -> Vec<u32> {
        let members = &self.problem().members;
        let place = |v: &u32| members.binary_search(v).expect("a vertex of the problem") as u32;
        vertices.iter().map(place).collect()
    }

    /// Marks the current parameters as the best.
    pub fn keep(&self) {
        for net in &self.nets {
            let mut net = write(net);
            let net = &mut *net;
            net.best.copy_from_slice(&net.parameters);
        }
    }

    /// Goes back to the best parameters.
    pub fn restore_best(&self) {
        for net in &self.nets {
            let mut net = write(net);
            let net = &mut *net;
            net.parameters.copy_from_slice(&net.best);
        }
    }

    /// Everything that training goes on from.
    pub fn state(&self) -> Vec<NetState> {
        let one = |net: &RwLock<TrainNet>| {
            let net = read(net);
            let moments = &net.moments;
            [net.parameters.clone(), moments.first.clone(), moments.second.clone(), net.best.clone()]
        };
        self.nets.iter().map(one).collect()
    }

    /// Takes a state over; `false` where it is not of these networks.
    pub fn set_state(&self, state: &[NetState]) -> bool {
        let fits = |(net, arrays): (&RwLock<TrainNet>, &NetState)| {
            let count = read(net).parameters.len();
            arrays.iter().all(|array| array.len() == count && array.iter().all(|n| n.is_finite()))
        };
        if state.len() != self.nets.len() || !self.nets.iter().zip(state).all(fits) {
            return false;
        }
        for (net, [parameters, first, second, best]) in self.nets.iter().zip(state) {
            let mut net = write(net);
            net.parameters.copy_from_slice(parameters);
            net.moments.first.copy_from_slice(first);
            net.moments.second.copy_from_slice(second);
            net.best.copy_from_slice(best);
        }
        true
    }

    /// The networks for a twin.
    pub fn parts(&self) -> Vec<NetParts> {
        self.nets.iter().map(|net| read(net).parts()).collect()
    }

    /// What is learned.
    pub fn problem(&self) -> &Problem<'_> {
        &self.problem
    }

    /// Networks that are trained together.
    pub fn network_count(&self) -> usize {
        self.nets.len()
    }

    /// Multiply-adds of one pose through all networks.
    pub fn multiply_adds(&self) -> usize {
        self.nets.iter().map(|net| read(net).work()).sum()
    }
}
