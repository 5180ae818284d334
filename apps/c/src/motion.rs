//! Characters that play motion: a file that `understudy motion learn` wrote, commands in as text, controls out frame by frame.

use crate::UnderstudyStatus;
use crate::border::{self, Problem, array, array_mut, c_text, owned, shared, status, text, value_or};
use crate::twin::{copy, place, read_file};
use std::ffi::{CString, c_char};
use std::sync::Arc;
use understudy_runtime::motion::{Model, Motion, MotionPlayer, PlayConfig};

/// A file of motion, loaded and checked. Characters share it; it may be freed while they live.
pub struct UnderstudyMotion {
    motion: Arc<Motion>,
    json: CString,
    rig: CString,
    controls: Vec<CString>,
}

/// Somebody who plays a motion: one for each thread or character.
pub struct UnderstudyCharacter {
    player: MotionPlayer,
    /// What was said of it last.
    json: CString,
}

impl UnderstudyMotion {
    fn parse(bytes: &[u8]) -> Result<Self, Problem> {
        let motion = Motion::parse(bytes)?;
        let label = |model: &Model| {
            serde_json::json!({
                "label": model.label(),
                "dimensions": model.space().dimensions(),
                "frames": model.space().len(),
                "clips": model.clips(),
            })
        };
        let json = serde_json::json!({
            "rig": motion.rig(),
            "rate": motion.rate(),
            "controls": motion.controls(),
            "labels": motion.models().iter().map(label).collect::<Vec<_>>(),
        });
        Ok(Self {
            json: c_text(&json.to_string()),
            rig: c_text(motion.rig()),
            controls: motion.controls().iter().map(|spec| c_text(&spec.name)).collect(),
            motion: motion.shared(),
        })
    }
}

/// Reads a file of motion (a path in UTF-8) and checks everything about it. NULL where that fails.
///
/// # Safety
/// `path` is NULL or a text that ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_motion_load(path: *const c_char) -> *mut UnderstudyMotion {
    border::handle(|| {
        // SAFETY: the caller's promise.
        read_file(unsafe { text(path, "path") }?, UnderstudyMotion::parse)
    })
}

/// The same of a file in memory, which may go afterwards.
///
/// # Safety
/// `bytes` is NULL or leads to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_motion_parse(bytes: *const u8, length: usize) -> *mut UnderstudyMotion {
    border::handle(|| {
        // SAFETY: the caller's promise.
        UnderstudyMotion::parse(unsafe { array(bytes, length, "bytes") }?)
    })
}

/// Frees a motion; characters that were made of it go on. NULL is nothing.
///
/// # Safety
/// `motion` is NULL, or came from `understudy_motion_load` or `_parse` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_motion_free(motion: *mut UnderstudyMotion) {
    // SAFETY: the caller's promise.
    unsafe { border::free(motion) }
}

/// What the motion is (rig, rate, controls, labels with their clips), as JSON. Lives as long as the motion; NULL where
/// `motion` is NULL.
///
/// # Safety
/// `motion` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_motion_describe(motion: *const UnderstudyMotion) -> *const c_char {
    // SAFETY: the caller's promise.
    value_or(std::ptr::null(), || Ok(unsafe { shared(motion, "motion") }?.json.as_ptr()))
}

/// The rig whose controls it moves. Lives as long as the motion.
///
/// # Safety
/// `motion` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_motion_rig(motion: *const UnderstudyMotion) -> *const c_char {
    // SAFETY: the caller's promise.
    value_or(std::ptr::null(), || Ok(unsafe { shared(motion, "motion") }?.rig.as_ptr()))
}

/// Frames per second; 0 where `motion` is NULL.
///
/// # Safety
/// `motion` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_motion_rate(motion: *const UnderstudyMotion) -> f32 {
    // SAFETY: the caller's promise.
    value_or(0.0, || Ok(unsafe { shared(motion, "motion") }?.motion.rate()))
}

/// Controls of a frame; 0 where `motion` is NULL.
///
/// # Safety
/// `motion` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_motion_control_count(motion: *const UnderstudyMotion) -> usize {
    // SAFETY: the caller's promise.
    value_or(0, || Ok(unsafe { shared(motion, "motion") }?.controls.len()))
}

/// The name of a control; NULL where there is no such control. Lives as long as the motion.
///
/// # Safety
/// `motion` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_motion_control_name(
    motion: *const UnderstudyMotion,
    control: usize,
) -> *const c_char {
    value_or(std::ptr::null(), || {
        // SAFETY: the caller's promise.
        let motion = unsafe { shared(motion, "motion") }?;
        Ok(place(&motion.controls, control, "control")?.as_ptr())
    })
}

/// A character that plays a motion: it begins at the first frame of a label (NULL: of the first label). The same seed and
/// commands give the same frames. NULL where that fails.
///
/// # Safety
/// `motion` is NULL or a live handle; `label` is NULL or a text that ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_character_new(
    motion: *const UnderstudyMotion,
    label: *const c_char,
    seed: u64,
) -> *mut UnderstudyCharacter {
    border::handle(|| {
        // SAFETY: the caller's promises.
        let (motion, label) = unsafe {
            (shared(motion, "motion")?, if label.is_null() { None } else { Some(text(label, "label")?) })
        };
        let config = PlayConfig { seed, ..PlayConfig::default() };
        let player = MotionPlayer::new(Arc::clone(&motion.motion), label, config)?;
        Ok(UnderstudyCharacter { player, json: CString::default() })
    })
}

/// Frees a character. NULL is nothing.
///
/// # Safety
/// `character` is NULL, or came from `understudy_character_new` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_character_free(character: *mut UnderstudyCharacter) {
    // SAFETY: the caller's promise.
    unsafe { border::free(character) }
}

/// Does something after what it does now: a command as JSON, such as `{"command":"transition","label":"happy"}`.
///
/// # Safety
/// `character` is NULL or a live handle; `json` is NULL or a text that ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_character_command(
    character: *mut UnderstudyCharacter,
    json: *const c_char,
) -> UnderstudyStatus {
    status(|| {
        // SAFETY: the caller's promises.
        let (character, json) = unsafe { (owned(character, "character")?, text(json, "command")?) };
        Ok(character.player.send(json)?)
    })
}

/// Does all that a script says, or, where a line of it is wrong, nothing: `transition happy; idle 2s; play nod`.
///
/// # Safety
/// `character` is NULL or a live handle; `script` is NULL or a text that ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_character_script(
    character: *mut UnderstudyCharacter,
    script: *const c_char,
) -> UnderstudyStatus {
    status(|| {
        // SAFETY: the caller's promises.
        let (character, script) = unsafe { (owned(character, "character")?, text(script, "script")?) };
        Ok(character.player.script(script)?)
    })
}

/// So many frames on, of which `understudy_motion_rate` make a second. Allocates nothing but in a frame in which a command begins.
///
/// # Safety
/// `character` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_character_step(
    character: *mut UnderstudyCharacter,
    frames: u32,
) -> UnderstudyStatus {
    status(|| {
        // SAFETY: the caller's promise.
        let character = unsafe { owned(character, "character") }?;
        (0..frames).for_each(|_| character.player.step());
        Ok(())
    })
}

/// The controls of the last frame, in the order of the motion's; of the first pose before any.
///
/// # Safety
/// `character` is NULL or a live handle; `out` is NULL or leads to `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_character_controls(
    character: *const UnderstudyCharacter,
    out: *mut f32,
    length: usize,
) -> UnderstudyStatus {
    status(|| {
        // SAFETY: the caller's promises.
        let (character, out) =
            unsafe { (shared(character, "character")?, array_mut(out, length, "controls")?) };
        copy(character.player.controls(), out, "controls")
    })
}

/// Where it stands after the last frame, as JSON: label, what it does and whether commands are left ("busy"), its place in the
/// label's space. Lives until the next call with this character; NULL where `character` is NULL.
///
/// # Safety
/// `character` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn understudy_character_situation(
    character: *mut UnderstudyCharacter,
) -> *const c_char {
    value_or(std::ptr::null(), || {
        // SAFETY: the caller's promise.
        let character = unsafe { owned(character, "character") }?;
        let player = &character.player;
        let now = player.situation();
        let dimensions = player.motion().models()[now.label].space().dimensions();
        let json = serde_json::json!({
            "label": player.label(),
            "doing": now.doing,
            "busy": player.is_busy(),
            "position": now.position.coordinates(dimensions),
            "radius": now.radius,
            "distance": now.distance,
            "frame": now.frame,
        });
        character.json = c_text(&json.to_string());
        Ok(character.json.as_ptr())
    })
}
