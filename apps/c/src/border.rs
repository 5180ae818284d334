//! What every exported function stands on: errors of a thread, arrays and handles from outside, panics that stay inside.

use crate::UnderstudyStatus;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use understudy_runtime::Affine3A;

/// Numbers of a bone from outside: a 4×4 matrix by columns, as OpenGL and glTF have it. Its last row is not read.
pub const MATRIX: usize = 16;

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Why a call fails.
#[derive(Debug)]
pub enum Problem {
    Null(&'static str),
    Input(String),
}

impl<E: std::error::Error> From<E> for Problem {
    fn from(error: E) -> Self {
        Self::Input(error.to_string())
    }
}

pub fn last_error() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

fn fail(problem: Problem) -> UnderstudyStatus {
    let (status, text) = match problem {
        Problem::Null(what) => (UnderstudyStatus::Null, format!("{what} is NULL")),
        Problem::Input(text) => (UnderstudyStatus::BadInput, text),
    };
    LAST.set(c_text(&text));
    status
}

/// Text for C: what follows a NUL inside is left out.
pub fn c_text(text: &str) -> CString {
    let whole = text.split('\0').next().unwrap_or_default();
    CString::new(whole).expect("nothing after the first NUL is left")
}

/// Runs what a function does; gives its value, or the status that tells why there is none.
fn guarded<T>(work: impl FnOnce() -> Result<T, Problem>) -> Result<T, UnderstudyStatus> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(problem)) => Err(fail(problem)),
        Err(_) => {
            LAST.set(c_text("a bug of Understudy: the call panicked; its handles should not be used again"));
            Err(UnderstudyStatus::Internal)
        }
    }
}

/// For functions that give a status.
pub fn status(work: impl FnOnce() -> Result<(), Problem>) -> UnderstudyStatus {
    guarded(work).err().unwrap_or(UnderstudyStatus::Ok)
}

/// For functions that give something else where they fail.
pub fn value_or<T>(otherwise: T, work: impl FnOnce() -> Result<T, Problem>) -> T {
    guarded(work).unwrap_or(otherwise)
}

/// For functions that make a handle.
pub fn handle<T>(work: impl FnOnce() -> Result<T, Problem>) -> *mut T {
    guarded(work).map_or(std::ptr::null_mut(), |value| Box::into_raw(Box::new(value)))
}

/// Lets a handle go; NULL is nothing.
///
/// # Safety
/// `pointer` is NULL or came from [`handle`] and was not freed.
pub unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: it came from `Box::into_raw` and is freed once, as the caller promises. A panic while it is dropped stays here.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(unsafe { Box::from_raw(pointer) })));
    }
}

/// What a handle stands for.
///
/// # Safety
/// `pointer` is NULL or a live handle that nothing else changes meanwhile.
pub unsafe fn shared<'a, T>(pointer: *const T, what: &'static str) -> Result<&'a T, Problem> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }.ok_or(Problem::Null(what))
}

/// What a handle stands for, to change.
///
/// # Safety
/// `pointer` is NULL or a live handle that nothing else uses meanwhile.
pub unsafe fn owned<'a, T>(pointer: *mut T, what: &'static str) -> Result<&'a mut T, Problem> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_mut() }.ok_or(Problem::Null(what))
}

fn check_length<T>(length: usize, what: &'static str) -> Result<(), Problem> {
    if length > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Problem::Input(format!("{what}: {length} entries, more than memory holds")));
    }
    Ok(())
}

/// An array that is read. NULL is an empty one where nothing is promised.
///
/// # Safety
/// Where `length` is not zero, `pointer` is NULL or leads to so many entries that nobody writes meanwhile.
pub unsafe fn array<'a, T>(pointer: *const T, length: usize, what: &'static str) -> Result<&'a [T], Problem> {
    match (pointer.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Problem::Null(what)),
        _ if !pointer.is_aligned() => Err(Problem::Input(format!("{what}: the address is not aligned"))),
        _ => {
            check_length::<T>(length, what)?;
            // SAFETY: not NULL, aligned, not too long; the rest is the caller's promise.
            Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
        }
    }
}

/// An array that is written.
///
/// # Safety
/// Where `length` is not zero, `pointer` is NULL or leads to so many initialised entries that nobody else uses meanwhile.
pub unsafe fn array_mut<'a, T>(
    pointer: *mut T,
    length: usize,
    what: &'static str,
) -> Result<&'a mut [T], Problem> {
    match (pointer.is_null(), length) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Problem::Null(what)),
        _ if !pointer.is_aligned() => Err(Problem::Input(format!("{what}: the address is not aligned"))),
        _ => {
            check_length::<T>(length, what)?;
            // SAFETY: not NULL, aligned, not too long; the rest is the caller's promise.
            Ok(unsafe { std::slice::from_raw_parts_mut(pointer, length) })
        }
    }
}

/// Fails where an array that is written lies over one that is read: checked before either becomes a reference.
pub fn check_apart<A, B>(read: (*const A, usize), written: (*mut B, usize)) -> Result<(), Problem> {
    let range = |start: usize, entries: usize, size: usize| {
        (start, start.saturating_add(entries.saturating_mul(size)))
    };
    let (a, b) = (
        range(read.0 as usize, read.1, size_of::<A>()),
        range(written.0 as usize, written.1, size_of::<B>()),
    );
    if read.1 > 0 && written.1 > 0 && a.0 < b.1 && b.0 < a.1 {
        return Err(Problem::Input("an array that is written overlaps one that is read".into()));
    }
    Ok(())
}

/// Text from outside.
///
/// # Safety
/// `pointer` is NULL or leads to a text that ends with NUL.
pub unsafe fn text<'a>(pointer: *const c_char, what: &'static str) -> Result<&'a str, Problem> {
    if pointer.is_null() {
        return Err(Problem::Null(what));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Problem::Input(format!("{what}: not UTF-8")))
}

/// Bones from outside as the run time has them.
pub fn take_bones(matrices: &[f32], out: &mut Vec<Affine3A>) -> Result<(), Problem> {
    if !matrices.len().is_multiple_of(MATRIX) {
        let problem = format!("bones: {} numbers, a multiple of {MATRIX} expected", matrices.len());
        return Err(Problem::Input(problem));
    }
    out.clear();
    out.extend(matrices.chunks_exact(MATRIX).map(|m| {
        Affine3A::from_cols_array(&[
            m[0], m[1], m[2], m[4], m[5], m[6], m[8], m[9], m[10], m[12], m[13], m[14],
        ])
    }));
    Ok(())
}

/// A bone for outside.
pub fn matrix(affine: &Affine3A) -> [f32; MATRIX] {
    let c = affine.to_cols_array();
    [c[0], c[1], c[2], 0.0, c[3], c[4], c[5], 0.0, c[6], c[7], c[8], 0.0, c[9], c[10], c[11], 1.0]
}
