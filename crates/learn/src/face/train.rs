//! What every way of training can do, and the choice among them: our own kernels on the CPU
//! ([`super::trainer`]), or burn's tensors on the CPU or a GPU (`super::burn`, behind cargo features).
//! Plan, schedule, checkpoints and files know nothing but [`Train`].

use super::FaceLearnError;
use super::loss::Cost;
use super::net::NetSpec;
use super::trainer::{Problem, Trainer};
use serde::{Deserialize, Serialize};
use understudy_core::{Vec3, Vec3A};
use understudy_runtime::face::NetParts;

/// What training goes on from, per network: parameters, both moments of their gradient, the best parameters.
pub type NetState = [Vec<f32>; 4];

/// The networks of one stage while they are trained together.
pub trait Train {
    /// One step down on a batch of poses; gives the mean cost before it. `number` counts from 1. A GPU runs
    /// behind, and its cost may be that of a step some way back.
    ///
    /// # Panics
    /// When there are more poses than a batch, or none.
    fn step(&self, poses: &[usize], number: usize, rate: f32) -> Cost;

    /// Waits until all steps are done, for those who look at a clock.
    fn settle(&self) {}

    /// The mean cost of some poses, nothing learned.
    fn measure(&self, poses: &[usize]) -> Cost;

    /// Where the networks put some of the problem's vertices in some poses, one row per pose.
    fn predict_poses(
        &self,
        poses: &[usize],
        wanted: &[u32],
        watch: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<Vec3>, FaceLearnError>;

    /// The same in every pose: the base of the networks that refine them.
    fn predict(
        &self,
        wanted: &[u32],
        watch: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<Vec3>, FaceLearnError> {
        let all: Vec<usize> = (0..self.problem().poses.len()).collect();
        self.predict_poses(&all, wanted, watch)
    }

    /// What the networks leave of every vertex of the mesh in some poses: its share of the loss, on average.
    fn left(&self, poses: &[usize]) -> Result<Vec<f64>, FaceLearnError> {
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

    /// What is learned.
    fn problem(&self) -> &Problem<'_>;

    /// Numbers of some vertices of the mesh among those of the problem.
    ///
    /// # Panics
    /// When one is not among them.
    fn locals(&self, vertices: &[u32]) -> Vec<u32> {
        let members = &self.problem().members;
        let place = |v: &u32| members.binary_search(v).expect("a vertex of the problem") as u32;
        vertices.iter().map(place).collect()
    }

    /// Marks the current parameters as the best.
    fn keep(&self);

    /// Goes back to the best parameters.
    fn restore_best(&self);

    /// Everything that training goes on from.
    fn state(&self) -> Vec<NetState>;

    /// Takes a state over; `false` where it is not of these networks.
    fn set_state(&self, state: &[NetState]) -> bool;

    /// The networks for a twin.
    fn parts(&self) -> Vec<NetParts>;

    /// Networks that are trained together.
    fn network_count(&self) -> usize;

    /// Multiply-adds of one pose through all networks.
    fn multiply_adds(&self) -> usize;
}

/// Where and with what networks are trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    /// The CPU, with kernels of our own.
    #[default]
    Cpu,
    /// The CPU, with burn's tensors; slower, kept for comparison. Needs the cargo feature `burn`.
    Burn,
    /// An NVIDIA GPU. Needs the cargo feature `cuda`.
    Cuda,
}

impl Device {
    /// Those that this program was built with.
    pub fn built_in() -> &'static [Self] {
        if cfg!(feature = "cuda") {
            &[Self::Cpu, Self::Burn, Self::Cuda]
        } else if cfg!(feature = "burn") {
            &[Self::Cpu, Self::Burn]
        } else {
            &[Self::Cpu]
        }
    }

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Burn => "burn",
            Self::Cuda => "cuda",
        }
    }

    /// Whether training can begin there.
    pub fn check(self) -> Result<(), FaceLearnError> {
        let problem = match self {
            device if !Self::built_in().contains(&device) => {
                format!("this program was built without the cargo feature '{}'", self.name())
            }
            #[cfg(feature = "cuda")]
            Self::Cuda => match super::burn::cuda_problem() {
                None => return Ok(()),
                Some(problem) => problem,
            },
            _ => return Ok(()),
        };
        Err(FaceLearnError::Device { device: self.name(), problem })
    }

    /// Fresh networks, ready to be trained. `hidden`: width of the dense layers. The same seed gives the
    /// same first parameters everywhere.
    pub fn trainer<'a>(
        self,
        problem: Problem<'a>,
        specs: Vec<NetSpec>,
        hidden: usize,
        batch: usize,
        seed: u64,
        threads: usize,
    ) -> Result<Box<dyn Train + 'a>, FaceLearnError> {
        self.check()?;
        match self {
            #[cfg(feature = "burn")]
            Self::Burn => Ok(Box::new(super::burn::on_cpu(problem, specs, hidden, batch, seed))),
            #[cfg(feature = "cuda")]
            Self::Cuda => Ok(Box::new(super::burn::on_cuda(problem, specs, hidden, batch, seed))),
            _ => Ok(Box::new(Trainer::new(problem, specs, hidden, batch, seed, threads)?)),
        }
    }
}
