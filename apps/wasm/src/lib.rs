//! The run time as a WebAssembly module: plain exported functions and numbered handles, no generated glue. Start here for
//! the border; what stands behind a handle is in `loaded.rs`. `apps/wasm/js` is the TypeScript face that people use.
//!
//! The module never takes an address from outside. It owns every array; a caller asks where one lies and how long it is,
//! writes numbers there, and calls a function with a handle and counts, which are checked. Anything that is wrong is a
//! zero, and [`understudy_text`] says why in the run time's own words. Addresses hold until the next call that makes an
//! array: memory may grow.

mod following;
mod limbs;
mod live;
mod loaded;
mod motion;

use loaded::{Buffer, By, Loaded};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// All twins that are loaded; a handle is a place in this list plus one.
static TWINS: Mutex<Vec<Option<Loaded>>> = Mutex::new(Vec::new());
/// Bytes on their way in: a twin's file, a file of motion, a command.
static INCOMING: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// What was said last: an error, or a description.
static TEXT: Mutex<String> = Mutex::new(String::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // After a panic the module is not used again; natively, in tests, the arrays are still sound.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn say(text: impl Into<String>) {
    *lock(&TEXT) = text.into();
}

/// Runs something that can fail; what went wrong becomes the text, and the answer zero.
fn answer(work: impl FnOnce() -> Result<usize, String>) -> usize {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        // A panic ends the module with a trap; the text says which it was.
        #[cfg(target_family = "wasm")]
        std::panic::set_hook(Box::new(|panic| {
            if let Ok(mut text) = TEXT.try_lock() {
                *text = panic.to_string();
            }
        }));
    });
    match work() {
        Ok(value) => value,
        Err(problem) => {
            say(problem);
            0
        }
    }
}

fn with_twin(handle: usize, work: impl FnOnce(&mut Loaded) -> Result<usize, String>) -> usize {
    answer(|| {
        let mut twins = lock(&TWINS);
        let place = handle.checked_sub(1).and_then(|place| twins.get_mut(place)?.as_mut());
        work(
            place.ok_or_else(|| {
                format!("there is no twin of handle {handle}: it was freed, or never loaded")
            })?,
        )
    })
}

/// The newest format of twins' files that this module reads.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_format() -> usize {
    understudy_runtime::VERSION as usize
}

/// What the module was built for: 1 for SIMD128, 3 with relaxed SIMD, 0 for neither.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_lanes() -> usize {
    usize::from(cfg!(target_feature = "simd128")) + 2 * usize::from(cfg!(target_feature = "relaxed-simd"))
}

/// Where the text of the last error or description lies: UTF-8, of the length that [`understudy_text_length`] gives.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_text() -> usize {
    lock(&TEXT).as_ptr() as usize
}

/// Bytes of that text.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_text_length() -> usize {
    lock(&TEXT).len()
}

/// Room for so many bytes, a file or a text; zero where there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_incoming(bytes: usize) -> usize {
    answer(|| {
        let mut incoming = lock(&INCOMING);
        *incoming = Vec::new();
        loaded::grow(&mut incoming, bytes, 0, "the file")?;
        Ok(incoming.as_ptr() as usize)
    })
}

/// Reads the twin whose file was written to [`understudy_incoming`], checks everything about it, and gives its handle.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_load() -> usize {
    answer(|| {
        let bytes = std::mem::take(&mut *lock(&INCOMING));
        let loaded = Loaded::parse(&bytes)?;
        let mut twins = lock(&TWINS);
        let free = twins.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            twins.push(None);
            twins.len() - 1
        });
        twins[place] = Some(loaded);
        Ok(place + 1)
    })
}

/// Lets a twin and its arrays go. One where there was such a twin.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_free(handle: usize) -> usize {
    let mut twins = lock(&TWINS);
    let place = handle.checked_sub(1).and_then(|place| twins.get_mut(place));
    usize::from(place.is_some_and(|place| place.take().is_some()))
}

/// Makes the text what the twin says about itself, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_describe(handle: usize) -> usize {
    with_twin(handle, |twin| {
        say(twin.describe()?);
        Ok(1)
    })
}

/// Where an array of a twin lies, made large enough for so many poses. `which`: see `Buffer`.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_buffer(handle: usize, which: usize, poses: usize) -> usize {
    with_twin(handle, |twin| twin.address(Buffer::of(which)?, poses))
}

/// How many numbers such an array has for one pose, plus one: zero is an error.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_buffer_size(handle: usize, which: usize) -> usize {
    with_twin(handle, |twin| Ok(twin.size(Buffer::of(which)?) + 1))
}

/// Moves the vertices for the poses that were written to the arrays, one after another. `by`: 0 controls alone, 1 bones,
/// and the controls that matter beside them.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_pose(handle: usize, by: usize, poses: usize) -> usize {
    with_twin(handle, |twin| twin.pose(By::of(by)?, poses))
}

/// Writes the unit normals of the pose that was played last.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_normals(handle: usize) -> usize {
    with_twin(handle, Loaded::normals)
}

/// Writes the derivative of a loss by the controls, from its derivative by the vertices that was written to the arrays,
/// at the pose that was written there.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_gradient(handle: usize, by: usize) -> usize {
    with_twin(handle, |twin| twin.gradient(By::of(by)?))
}

/// Begins to drag points: writes where they are with the controls that were written to the arrays, of a twin that has
/// learned to follow points.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_hold(handle: usize) -> usize {
    with_twin(handle, Loaded::hold)
}

/// Brings points to where the arrays say, with so many corrections, from the pose that was held last. Writes the controls
/// and where the points are then.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_drag(handle: usize, steps: usize) -> usize {
    with_twin(handle, |twin| twin.drag(steps.min(MOST_STEPS)))
}

/// Names the bones of hands, feet and torso: the text that was written to [`understudy_incoming`], as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_limbs(handle: usize) -> usize {
    let bytes = std::mem::take(&mut *lock(&INCOMING));
    with_twin(handle, |twin| {
        let text = std::str::from_utf8(&bytes).map_err(|_| "spelling: not UTF-8")?;
        twin.spell_limbs(text)
    })
}

/// Brings a hand, a foot or the torso, by its place in the description, to the goal that was written to the arrays, from the
/// bones that were written there, and writes those bones anew. 1 where it is there, 2 where it stays behind on purpose, 3 where
/// the limb is too short, 4 where the target is too near for it.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_reach(handle: usize, place: usize) -> usize {
    with_twin(handle, |twin| twin.reach(place))
}

/// Corrections of one drag.
const MOST_STEPS: usize = 100;

/// An actor drives the twin from now on; the canonical face of a `.task` file was written to [`understudy_incoming`].
#[unsafe(no_mangle)]
pub extern "C" fn understudy_live(handle: usize) -> usize {
    let bytes = std::mem::take(&mut *lock(&INCOMING));
    with_twin(handle, |twin| twin.begin_live(&bytes))
}

/// Takes the face that was written to the arrays as the actor at rest.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_live_rest(handle: usize) -> usize {
    with_twin(handle, Loaded::live_rest)
}

/// The next frame of the actor: the face that was written to the arrays, or none where `seen` is zero, so many microseconds
/// after the last. Writes the controls and what the actor does.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_live_follow(handle: usize, seen: usize, microseconds: usize) -> usize {
    with_twin(handle, |twin| twin.live_follow(seen != 0, microseconds as f32 * 1e-6))
}

#[cfg(test)]
mod tests;
