//! A few threads that wait for work: starting or waking a general-purpose pool costs as much as a whole
//! pose. Nothing is allocated when work is handed out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A job shared by all threads; called with the number of a task.
type Job = *const (dyn Fn(usize) + Sync);

struct Board {
    /// Counts handed-out jobs; a worker that has seen this number sleeps.
    round: usize,
    job: Option<Job>,
    tasks: usize,
    stop: bool,
}

// SAFETY: the pointer is only dereferenced between the hand-out and the end of `Workers::run`, which
// keeps the borrow alive and waits for every worker.
unsafe impl Send for Board {}

struct Shared {
    board: Mutex<Board>,
    wake: Condvar,
    done: Condvar,
    next: AtomicUsize,
    failed: AtomicBool,
    /// A copy of `Board::round`, to spin on without the lock.
    round: AtomicUsize,
    /// Workers still busy with this round.
    busy: AtomicUsize,
}

/// Threads that share work with the caller.
pub struct Workers {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
    /// One caller at a time.
    turn: Mutex<()>,
}

/// How often a worker looks before it sleeps: a few tens of microseconds, the gap between two poses of
/// a crowd, not the gap between two frames of a film.
const SPINS: usize = if cfg!(miri) { 10 } else { 20_000 };

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned board is still consistent: jobs run outside the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers {
    /// `threads` in all, the caller included; 0 counts as 1, and so does any number where the platform has no threads
    /// (WebAssembly as most pages load it).
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let single = cfg!(all(target_family = "wasm", not(target_feature = "atomics")));
        let threads = if single { 1 } else { threads };
        let board = Board { round: 0, job: None, tasks: 0, stop: false };
        let shared = Arc::new(Shared {
            board: Mutex::new(board),
            wake: Condvar::new(),
            done: Condvar::new(),
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            round: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
        });
        let spawn = |number: usize| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name(format!("understudy-{number}")).spawn(move || work(&shared))
        };
        let handles = (1..threads).map(spawn).collect::<std::io::Result<Vec<_>>>()?;
        Ok(Self { shared, handles, turn: Mutex::new(()) })
    }

    /// Threads in all, the caller included.
    pub fn threads(&self) -> usize {
        self.handles.len() + 1
    }

    /// Calls `job(0), …, job(tasks − 1)`, each once, on all threads, and waits.
    ///
    /// # Panics
    /// When a task panics, after all have ended.
    pub fn run(&self, tasks: usize, job: &(dyn Fn(usize) + Sync)) {
        if self.handles.is_empty() || tasks <= 1 {
            (0..tasks).for_each(job);
            return;
        }
        let _turn = lock(&self.turn);
        self.shared.next.store(0, Ordering::Relaxed);
        self.shared.failed.store(false, Ordering::Relaxed);
        self.shared.busy.store(self.handles.len(), Ordering::Relaxed);
        {
            let mut board = lock(&self.shared.board);
            // SAFETY: only the lifetime is erased; `run` does not return before every worker is done.
            let erased: Job = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync), Job>(job) };
            *board = Board { round: board.round.wrapping_add(1), job: Some(erased), tasks, stop: false };
            self.shared.round.store(board.round, Ordering::Release);
            self.shared.wake.notify_all();
        }
        take_tasks(&self.shared, tasks, job);
        // The others end at about the same time: going to sleep would cost more than waiting.
        for _ in 0..SPINS {
            if self.shared.busy.load(Ordering::Acquire) == 0 {
                break;
            }
            std::hint::spin_loop();
        }
        let mut board = lock(&self.shared.board);
        while self.shared.busy.load(Ordering::Acquire) > 0 {
            board = self.shared.done.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
        board.job = None;
        drop(board);
        assert!(!self.shared.failed.load(Ordering::Acquire), "a task panicked");
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        lock(&self.shared.board).stop = true;
        self.shared.round.fetch_add(1, Ordering::Release);
        self.shared.wake.notify_all();
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
    }
}

fn take_tasks(shared: &Shared, tasks: usize, job: &(dyn Fn(usize) + Sync)) {
    loop {
        let task = shared.next.fetch_add(1, Ordering::Relaxed);
        if task >= tasks {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| job(task))).is_err() {
            shared.failed.store(true, Ordering::Release);
        }
    }
}

fn work(shared: &Shared) {
    let mut seen = 0;
    loop {
        for _ in 0..SPINS {
            if shared.round.load(Ordering::Acquire) != seen {
                break;
            }
            std::hint::spin_loop();
        }
        let mut board = lock(&shared.board);
        while board.round == seen && !board.stop {
            board = shared.wake.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
        if board.stop {
            return;
        }
        seen = board.round;
        let (job, tasks) = (board.job, board.tasks);
        drop(board);
        if let Some(job) = job {
            // SAFETY: `Workers::run` keeps the job alive until `busy` is zero, which is below.
            take_tasks(shared, tasks, unsafe { &*job });
        }
        if shared.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            // With the lock held, so that a caller who is about to sleep is not missed.
            let _board = lock(&shared.board);
            shared.done.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once_again_and_again() {
        let rounds = if cfg!(miri) { 3 } else { 50 };
        for threads in [0, 1, 2, 3] {
            let workers = Workers::new(threads).expect("threads start");
            for tasks in [0, 1, 2, 7, 100] {
                let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                for _ in 0..rounds {
                    workers.run(tasks, &|task| {
                        counts[task].fetch_add(1, Ordering::Relaxed);
                    });
                }
                assert!(
                    counts.iter().all(|count| count.load(Ordering::Relaxed) == rounds),
                    "{threads} {tasks}"
                );
            }
        }
    }

    #[test]
    fn a_panic_in_a_task_reaches_the_caller_and_the_workers_live_on() {
        let workers = Workers::new(2).expect("threads start");
        let caught = catch_unwind(AssertUnwindSafe(|| workers.run(4, &|task| assert!(task != 2, "no"))));
        assert!(caught.is_err());
        let count = AtomicUsize::new(0);
        workers.run(8, &|_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(count.load(Ordering::Relaxed), 8);
    }
}
