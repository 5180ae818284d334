//! A prepared solver allocates nothing per frame, whatever the method and order. Counted by the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use understudy_core::Vec3;
use understudy_solve::inverse_rig::{InverseRig, InverseSettings, Method, Missing, Order, Symmetry};
use understudy_testkit::synthetic::{SyntheticRig, random_rig, random_take};

struct Counting;

thread_local! {
    /// Of this thread alone: the test runner has threads of its own.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

fn count() -> usize {
    COUNT.with(Cell::get)
}

// SAFETY: every call goes to the system's allocator; we only count.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn frames_are_solved_in_the_buffers_that_were_made() {
    let rig = random_rig(&SyntheticRig::small(3));
    let take = random_take(rig.shapes().len(), 40, 1);
    let mut targets = vec![vec![Vec3::ZERO; rig.neutral().len()]; 40];
    take.iter().zip(&mut targets).for_each(|(weights, target)| rig.evaluate(weights, target));
    let prepared = InverseRig::prepare(&rig).expect("valid rig");
    let name = |shape: usize| rig.shapes()[shape].name.clone();
    let mut all: Vec<InverseSettings> = Method::ALL.map(InverseSettings::paper_with).into();
    all.extend(Order::ALL.map(|order| InverseSettings { order, ..InverseSettings::paper() }));
    all.push(InverseSettings { missing: Missing::Ignore, ..InverseSettings::paper() });
    all.push(InverseSettings::default());
    all.push(InverseSettings { missing: Missing::Ignore, ..InverseSettings::default() });
    for symmetry in [Symmetry::Tied, Symmetry::Soft(3.0)] {
        all.push(InverseSettings {
            symmetric: vec![[name(0), name(1)]],
            exclusive: vec![vec![name(2), name(3), name(4)]],
            symmetry,
            ..InverseSettings::paper()
        });
    }
    for settings in all {
        let mut solver = prepared.solver(&settings).expect("valid settings");
        let holes = settings.missing == Missing::Ignore;
        if holes {
            targets.iter_mut().enumerate().for_each(|(t, target)| target[t % 7] = Vec3::NAN);
        }
        // A frame with holes makes the solver copy the table: once.
        solver.solve(&targets[0]).expect("valid target");
        let before = count();
        for target in &targets {
            solver.solve(target).expect("valid target");
        }
        assert_eq!(count(), before, "{settings:?}");
        if holes {
            take.iter().zip(&mut targets).for_each(|(weights, target)| rig.evaluate(weights, target));
        }
    }
}
