//! Face twins trained on burn's tensors, generic over its backends: a GPU, or the CPU for comparison. Start
//! at [`trainer::BurnTrainer`]; which one runs is chosen by [`super::train::Device`].
//!
//! A GPU is fast when its kernels are few and large. All networks of one shape therefore run as one, inputs
//! padded with zeros ([`group`]); every sum over a mesh is a product with a sparse matrix that only gathers
//! ([`sparse`]), since a backend's scatter walks its indices one after another or adds in any order; and
//! derivatives are written by hand, like those of our own kernels, which saves most of the copies that a
//! tape would make. Every sum has a fixed order: the same machine gives the same twin.

mod group;
mod loss;
mod point;
mod sparse;
mod stage;
pub mod trainer;

use super::net::NetSpec;
use super::trainer::Problem;
use trainer::BurnTrainer;

/// On the CPU, in the threads of the pool that calls.
pub fn on_cpu<'a>(
    problem: Problem<'a>,
    specs: Vec<NetSpec>,
    hidden: usize,
    batch: usize,
    seed: u64,
) -> BurnTrainer<'a, burn_flex::Flex> {
    BurnTrainer::new(problem, specs, hidden, batch, seed, Default::default())
}

/// On the first NVIDIA GPU.
#[cfg(feature = "cuda")]
pub fn on_cuda<'a>(
    problem: Problem<'a>,
    specs: Vec<NetSpec>,
    hidden: usize,
    batch: usize,
    seed: u64,
) -> BurnTrainer<'a, burn_cuda::Cuda> {
    BurnTrainer::new(problem, specs, hidden, batch, seed, Default::default())
}

/// Why nothing can run on a GPU here; `None` where it can. Compiles and runs a first kernel: driver, compiler
/// and headers are opened at run time, and burn panics where one is missing.
#[cfg(feature = "cuda")]
pub fn cuda_problem() -> Option<String> {
    use burn_tensor::Tensor;
    let attempt = || {
        let one = Tensor::<burn_cuda::Cuda, 1>::ones([8], &Default::default());
        (one.clone() + one).into_data().to_vec::<f32>().is_ok_and(|sum| sum == [2.0; 8])
    };
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = std::panic::catch_unwind(attempt);
    std::panic::set_hook(loud);
    match outcome {
        Ok(true) => None,
        Ok(false) => Some("a first sum came out wrong".into()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
            let line = text.lines().next().unwrap_or_default();
            Some(format!("no NVIDIA driver, NVRTC and CUDA headers that work ({line})"))
        }
    }
}

#[cfg(test)]
mod tests;
