//! Pools of threads of a given size. Results never depend on it.

use crate::JobError;

/// More than this is taken for a slip.
pub const MAX_THREADS: usize = 1024;

/// A pool; `0` is refused, since it would mean something else to every reader.
pub fn pool(threads: usize) -> Result<rayon::ThreadPool, JobError> {
    if !(1..=MAX_THREADS).contains(&threads) {
        return Err(JobError::setting("threads", format!("{threads} is not between 1 and {MAX_THREADS}")));
    }
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    builder.build().map_err(|error| JobError::Machine(format!("{threads} threads: {error}")))
}

/// As many as the machine offers.
pub fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}
