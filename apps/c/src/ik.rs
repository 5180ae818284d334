//! Posing a face by points that are dragged: for twins whose file has the section `ik`.

use crate::UnderstudyStatus;
use crate::border::{self, Problem, array, array_mut, c_text, check_apart, owned, shared, status, value_or};
use crate::twin::{UnderstudyTwin, copy};
use std::ffi::{CString, c_char};
use understudy_core::Vec3;
use understudy_runtime::ik::{Correction, PointSolver};

/// Memory to pose a twin by its points: one for each thread or character.
pub struct UnderstudyIk {
    solver: PointSolver,
    targets: Vec<Vec3>,
    names: Vec<CString>,
}

/// A solver for a twin's points; NULL where its file has none.
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_ik_new(twin: *const UnderstudyTwin) -> *mut UnderstudyIk {
    border::handle(|| {
        // SAFETY: the caller's promise.
        let twin = unsafe { shared(twin, "twin") }?;
        let none =
            || Problem::Input("the twin has no points to be posed by: see `understudy learn ik`".into());
        let points = twin.points.as_ref().ok_or_else(none)?;
        let names = points.points().iter().map(|point| c_text(&point.name)).collect();
        Ok(UnderstudyIk { solver: points.solver(), targets: Vec::new(), names })
    })
}

/// Frees a solver. NULL is nothing.
///
/// # Safety
/// `ik` is NULL, or came from `understudy_ik_new` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_ik_free(ik: *mut UnderstudyIk) {
    // SAFETY: the caller's promise.
    unsafe { border::free(ik) }
}

/// The name of a point; NULL where there is no such point. Lives as long as the solver.
///
/// # Safety
/// `ik` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_ik_point_name(ik: *const UnderstudyIk, point: usize) -> *const c_char {
    value_or(std::ptr::null(), || {
        // SAFETY: the caller's promise.
        let names = &unsafe { shared(ik, "ik") }?.names;
        let wrong = || Problem::Input(format!("point: {point} is out of range, there are {}", names.len()));
        Ok(names.get(point).ok_or_else(wrong)?.as_ptr())
    })
}

/// Where the points rest: x, y, z each, cm.
///
/// # Safety
/// `ik` is NULL or a live handle; `out` is NULL or leads to `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_ik_rest(
    ik: *const UnderstudyIk,
    out: *mut f32,
    length: usize,
) -> UnderstudyStatus {
    status(|| {
        // SAFETY: the caller's promises.
        let (ik, out) = unsafe { (shared(ik, "ik")?, array_mut(out, length, "points at rest")?) };
        let rest: Vec<f32> = ik.solver.ik().rest().iter().flat_map(|point| point.to_array()).collect();
        copy(&rest, out, "points at rest")
    })
}

/// Controls that bring all points to about their targets (x, y, z each, cm): the networks alone, or with so many
/// corrections through the twin's derivatives.
///
/// # Safety
/// `ik` is NULL or a live handle; arrays are NULL or as long as promised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_ik_solve(
    ik: *mut UnderstudyIk,
    targets: *const f32,
    target_length: usize,
    corrections: usize,
    controls: *mut f32,
    control_length: usize,
) -> UnderstudyStatus {
    status(|| {
        check_apart((targets, target_length), (controls, control_length))?;
        // SAFETY: the caller's promises; arrays do not overlap.
        let (ik, targets, controls) = unsafe {
            (
                owned(ik, "ik")?,
                array(targets, target_length, "targets of points")?,
                array_mut(controls, control_length, "controls")?,
            )
        };
        if !targets.len().is_multiple_of(3) {
            let problem = format!("targets of points: {} numbers, a multiple of 3 expected", targets.len());
            return Err(Problem::Input(problem));
        }
        ik.targets.clear();
        ik.targets.extend(targets.chunks_exact(3).map(Vec3::from_slice));
        ik.solver.solve(&ik.targets, controls)?;
        if corrections > 0 {
            let how = Correction { steps: corrections.min(100), ..Correction::default() };
            ik.solver.correct(&ik.targets, &[], &how, controls)?;
        }
        Ok(())
    })
}
