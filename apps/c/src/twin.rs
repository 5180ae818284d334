//! Loading twins, and what they say about themselves.

use crate::UnderstudyStatus;
use crate::border::{self, MATRIX, Problem, array, array_mut, c_text, shared, status, text, value_or};
use std::ffi::{CString, c_char};
use std::sync::Arc;
use understudy_core::{ControlSpecs, Face};
use understudy_runtime::Twin;
use understudy_runtime::ik::PointIk;

/// A twin: a file, loaded and checked. Players share it; it may be freed while they live.
pub struct UnderstudyTwin {
    pub(crate) twin: Twin,
    /// Networks that pose it by points, where its file has them.
    pub(crate) points: Option<Arc<PointIk>>,
    json: CString,
    rig: CString,
    kind: CString,
    bones: Vec<CString>,
    controls: Vec<CString>,
    extras: Vec<CString>,
}

impl UnderstudyTwin {
    fn parse(bytes: &[u8]) -> Result<Self, Problem> {
        let twin = Twin::parse(bytes)?;
        let points = PointIk::read(bytes, &twin)?.map(Arc::new);
        let header = twin.header();
        let names = |specs: &ControlSpecs| specs.iter().map(|spec| c_text(&spec.name)).collect();
        Ok(Self {
            json: c_text(&serde_json::to_string(header)?),
            rig: c_text(&header.rig),
            kind: c_text(twin.method()),
            bones: header.inputs.bones.iter().map(|bone| c_text(&bone.name)).collect(),
            controls: twin.posing_controls().map(names).unwrap_or_default(),
            extras: names(&header.inputs.controls),
            points,
            twin,
        })
    }
}

/// What the controls of a pose are: `UNDERSTUDY_CONTROLS_POSING` are all that pose the twin without bones,
/// `UNDERSTUDY_CONTROLS_EXTRA` those that matter beside its bones.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnderstudyControls {
    /// For `understudy_pose_controls`.
    Posing = 0,
    /// For `understudy_pose_bones`.
    Extra = 1,
}

impl UnderstudyControls {
    /// A number from outside: an enum of C holds any.
    fn of(number: i32) -> Result<Self, Problem> {
        match number {
            0 => Ok(Self::Posing),
            1 => Ok(Self::Extra),
            _ => Err(Problem::Input(format!("controls are posing (0) or extra (1), not {number}"))),
        }
    }
}

/// Reads a twin's file (a path in UTF-8) and checks everything about it. NULL where that fails.
///
/// # Safety
/// `path` is NULL or a text that ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_load(path: *const c_char) -> *mut UnderstudyTwin {
    border::handle(|| {
        // SAFETY: the caller's promise.
        read_file(unsafe { text(path, "path") }?, UnderstudyTwin::parse)
    })
}

/// The same of a file in memory, which may go afterwards.
///
/// # Safety
/// `bytes` is NULL or leads to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_parse(bytes: *const u8, length: usize) -> *mut UnderstudyTwin {
    border::handle(|| {
        // SAFETY: the caller's promise.
        UnderstudyTwin::parse(unsafe { array(bytes, length, "bytes") }?)
    })
}

/// Frees a twin; players that were made of it go on. NULL is nothing.
///
/// # Safety
/// `twin` is NULL, or came from `understudy_twin_load` or `_parse` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_free(twin: *mut UnderstudyTwin) {
    // SAFETY: the caller's promise.
    unsafe { border::free(twin) }
}

/// Asks a twin for a number; 0 where `twin` is NULL. What asks is written out below: functions of a macro are not in the header.
///
/// # Safety
/// `twin` is NULL or a live handle.
unsafe fn count_of(twin: *const UnderstudyTwin, count: impl FnOnce(&UnderstudyTwin) -> usize) -> usize {
    value_or(0, || {
        // SAFETY: the caller's promise.
        let twin = unsafe { shared(twin, "twin") }?;
        Ok(count(twin))
    })
}

/// Vertices that it moves; 0 where `twin` is NULL, as of all counts.
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_vertex_count(twin: *const UnderstudyTwin) -> usize {
    // SAFETY: the caller's promise.
    unsafe { count_of(twin, |twin| twin.twin.vertex_count()) }
}

/// Faces of its mesh.
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_face_count(twin: *const UnderstudyTwin) -> usize {
    // SAFETY: the caller's promise.
    unsafe { count_of(twin, |twin| twin.twin.faces().len()) }
}

/// Bones that pose it; 0 for a twin of controls alone.
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_bone_count(twin: *const UnderstudyTwin) -> usize {
    // SAFETY: the caller's promise.
    unsafe { count_of(twin, |twin| twin.bones.len()) }
}

/// Points that can be dragged; 0 where its file has none (`understudy learn ik` makes them).
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_point_count(twin: *const UnderstudyTwin) -> usize {
    // SAFETY: the caller's promise.
    unsafe { count_of(twin, |twin| twin.points.as_ref().map_or(0, |points| points.points().len())) }
}

/// How many controls a pose has.
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_control_count(twin: *const UnderstudyTwin, which: i32) -> usize {
    value_or(0, || {
        // SAFETY: the caller's promise.
        let twin = unsafe { shared(twin, "twin") }?;
        Ok(match UnderstudyControls::of(which)? {
            UnderstudyControls::Posing => twin.controls.len(),
            UnderstudyControls::Extra => twin.extras.len(),
        })
    })
}

/// Everything that the twin says about itself (rig, kind, inputs, training), as JSON. It lives as long as the twin; NULL
/// where `twin` is NULL.
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_describe(twin: *const UnderstudyTwin) -> *const c_char {
    // SAFETY: the caller's promise.
    value_or(std::ptr::null(), || Ok(unsafe { shared(twin, "twin") }?.json.as_ptr()))
}

/// The rig that it was learned from. Lives as long as the twin.
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_rig(twin: *const UnderstudyTwin) -> *const c_char {
    // SAFETY: the caller's promise.
    value_or(std::ptr::null(), || Ok(unsafe { shared(twin, "twin") }?.rig.as_ptr()))
}

/// Its kind: "body", "diff", "face" or "skin". Lives as long as the twin.
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_kind(twin: *const UnderstudyTwin) -> *const c_char {
    // SAFETY: the caller's promise.
    value_or(std::ptr::null(), || Ok(unsafe { shared(twin, "twin") }?.kind.as_ptr()))
}

pub(crate) fn place<'a, T>(list: &'a [T], index: usize, what: &str) -> Result<&'a T, Problem> {
    let wrong = || Problem::Input(format!("{what}: {index} is out of range, there are {}", list.len()));
    list.get(index).ok_or_else(wrong)
}

/// The name of a bone; NULL where there is no such bone. Lives as long as the twin.
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_bone_name(
    twin: *const UnderstudyTwin,
    bone: usize,
) -> *const c_char {
    value_or(std::ptr::null(), || {
        // SAFETY: the caller's promise.
        let twin = unsafe { shared(twin, "twin") }?;
        Ok(place(&twin.bones, bone, "bone")?.as_ptr())
    })
}

/// The parent of a bone, -1 for a root; -2 where there is no such bone.
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_bone_parent(twin: *const UnderstudyTwin, bone: usize) -> i64 {
    value_or(-2, || {
        // SAFETY: the caller's promise.
        let twin = unsafe { shared(twin, "twin") }?;
        Ok(place(&twin.twin.header().inputs.bones, bone, "bone")?.parent.map_or(-1, |parent| parent as i64))
    })
}

/// The name of a control; NULL where there is no such control. Lives as long as the twin.
///
/// # Safety
/// `twin` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_control_name(
    twin: *const UnderstudyTwin,
    which: i32,
    control: usize,
) -> *const c_char {
    value_or(std::ptr::null(), || {
        // SAFETY: the caller's promise.
        let twin = unsafe { shared(twin, "twin") }?;
        let names = match UnderstudyControls::of(which)? {
            UnderstudyControls::Posing => &twin.controls,
            UnderstudyControls::Extra => &twin.extras,
        };
        Ok(place(names, control, "control")?.as_ptr())
    })
}

/// The lower end, the upper end and the default of every control: three numbers each.
///
/// # Safety
/// `twin` is NULL or a live handle; `out` is NULL or leads to `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_control_ranges(
    twin: *const UnderstudyTwin,
    which: i32,
    out: *mut f32,
    length: usize,
) -> UnderstudyStatus {
    status(|| {
        // SAFETY: the caller's promises.
        let (twin, out) = unsafe { (shared(twin, "twin")?, array_mut(out, length, "ranges")?) };
        let specs = match UnderstudyControls::of(which)? {
            UnderstudyControls::Posing => twin.twin.posing_controls(),
            UnderstudyControls::Extra => Some(&twin.twin.header().inputs.controls),
        };
        let ranges: Vec<f32> =
            specs.iter().flat_map(|specs| specs.iter()).flat_map(|s| [s.low, s.high, s.default]).collect();
        copy(&ranges, out, "ranges")
    })
}

/// The corners of every face, four numbers each; the last of a triangle is `UINT32_MAX`.
///
/// # Safety
/// `twin` is NULL or a live handle; `out` is NULL or leads to `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_faces(
    twin: *const UnderstudyTwin,
    out: *mut u32,
    length: usize,
) -> UnderstudyStatus {
    status(|| {
        // SAFETY: the caller's promises.
        let (twin, out) = unsafe { (shared(twin, "twin")?, array_mut(out, length, "faces")?) };
        let faces: Vec<u32> = twin.twin.faces().iter().flat_map(Face::raw).collect();
        copy(&faces, out, "faces")
    })
}

/// World transforms of the bones at rest: 4×4 matrices by columns, cm.
///
/// # Safety
/// `twin` is NULL or a live handle; `out` is NULL or leads to `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_twin_rest_bones(
    twin: *const UnderstudyTwin,
    out: *mut f32,
    length: usize,
) -> UnderstudyStatus {
    status(|| {
        // SAFETY: the caller's promises.
        let (twin, out) = unsafe { (shared(twin, "twin")?, array_mut(out, length, "bones at rest")?) };
        let mut bones: Vec<f32> = Vec::with_capacity(twin.bones.len() * MATRIX);
        twin.twin.rest_bones().iter().for_each(|bone| bones.extend(border::matrix(bone)));
        copy(&bones, out, "bones at rest")
    })
}

/// What a file holds; its path stands before what is wrong with it.
pub(crate) fn read_file<T>(
    path: &str,
    parse: impl FnOnce(&[u8]) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let bytes = std::fs::read(path).map_err(|error| Problem::Input(format!("{path}: {error}")))?;
    parse(&bytes).map_err(|problem| match problem {
        Problem::Input(problem) => Problem::Input(format!("{path}: {problem}")),
        other => other,
    })
}

/// Copies a whole array for the caller.
pub(crate) fn copy<T: Copy>(from: &[T], to: &mut [T], what: &str) -> Result<(), Problem> {
    if from.len() != to.len() {
        return Err(Problem::Input(format!("{what}: {} entries, {} expected", to.len(), from.len())));
    }
    to.copy_from_slice(from);
    Ok(())
}
