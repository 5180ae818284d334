//! Characters that play motion, by handles of their own: commands in as text, controls out as an array. Files and texts
//! come in through `understudy_incoming`, as twins do.

use crate::{INCOMING, answer, lock, say};
use std::sync::{Arc, Mutex};
use understudy_runtime::motion::{Command, Motion, MotionPlayer, PlayConfig};

/// All characters; a handle is a place in this list plus one.
static CHARACTERS: Mutex<Vec<Option<MotionPlayer>>> = Mutex::new(Vec::new());

fn with_character(handle: usize, work: impl FnOnce(&mut MotionPlayer) -> Result<usize, String>) -> usize {
    answer(|| {
        let mut characters = lock(&CHARACTERS);
        let place = handle.checked_sub(1).and_then(|place| characters.get_mut(place)?.as_mut());
        work(place.ok_or_else(|| {
            format!("there is no character of handle {handle}: it was freed, or never loaded")
        })?)
    })
}

fn keep(player: MotionPlayer) -> usize {
    let mut characters = lock(&CHARACTERS);
    let free = characters.iter().position(Option::is_none);
    let place = free.unwrap_or_else(|| {
        characters.push(None);
        characters.len() - 1
    });
    characters[place] = Some(player);
    place + 1
}

fn begin(motion: Arc<Motion>, seed: usize) -> Result<usize, String> {
    let config = PlayConfig { seed: seed as u64, ..PlayConfig::default() };
    MotionPlayer::new(motion, None, config).map(keep).map_err(|error| error.to_string())
}

/// What was written to `understudy_incoming`, as text.
fn text() -> Result<String, String> {
    String::from_utf8(std::mem::take(&mut *lock(&INCOMING))).map_err(|_| "the text is not UTF-8".into())
}

/// Reads the file of motion that was written to `understudy_incoming`, checks everything about it, and gives the handle of
/// a character that plays it.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_motion_load(seed: usize) -> usize {
    answer(|| {
        let bytes = std::mem::take(&mut *lock(&INCOMING));
        let motion = Motion::parse(&bytes).map_err(|error| error.to_string())?;
        begin(motion.shared(), seed)
    })
}

/// The handle of one more character that plays the same motion.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_motion_again(handle: usize, seed: usize) -> usize {
    let mut motion = None;
    let found = with_character(handle, |player| {
        motion = Some(player.motion().clone());
        Ok(1)
    });
    match motion {
        Some(motion) => answer(|| begin(motion, seed)),
        None => found,
    }
}

/// Lets a character go. One where there was such a character.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_motion_free(handle: usize) -> usize {
    let mut characters = lock(&CHARACTERS);
    let place = handle.checked_sub(1).and_then(|place| characters.get_mut(place));
    usize::from(place.is_some_and(|place| place.take().is_some()))
}

/// Makes the text what the motion is, as JSON: rig, rate, controls, labels with their clips.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_motion_describe(handle: usize) -> usize {
    with_character(handle, |player| {
        let motion = player.motion();
        let label = |model: &understudy_runtime::motion::Model| {
            serde_json::json!({
                "label": model.label(),
                "dimensions": model.space().dimensions(),
                "frames": model.space().len(),
                "clips": model.clips(),
            })
        };
        let text = serde_json::json!({
            "rig": motion.rig(),
            "rate": motion.rate(),
            "controls": motion.controls(),
            "labels": motion.models().iter().map(label).collect::<Vec<_>>(),
        });
        say(text.to_string());
        Ok(1)
    })
}

/// Gives the character the command that was written to `understudy_incoming` as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_motion_command(handle: usize) -> usize {
    with_character(handle, |player| {
        let command = Command::from_json(&text()?).map_err(|error| error.to_string())?;
        player.command(command).map(|()| 1).map_err(|error| error.to_string())
    })
}

/// Gives the character all commands of the script that was written to `understudy_incoming`, or none.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_motion_script(handle: usize) -> usize {
    with_character(handle, |player| player.script(&text()?).map(|()| 1).map_err(|error| error.to_string()))
}

/// So many frames on.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_motion_step(handle: usize, frames: usize) -> usize {
    with_character(handle, |player| {
        (0..frames).for_each(|_| player.step());
        Ok(1)
    })
}

/// Where the controls of the last frame lie: one f32 each, in the order of the description.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_motion_controls(handle: usize) -> usize {
    with_character(handle, |player| Ok(player.controls().as_ptr() as usize))
}

/// Makes the text where the character stands, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn understudy_motion_situation(handle: usize) -> usize {
    with_character(handle, |player| {
        let now = player.situation();
        let dimensions = player.motion().models()[now.label].space().dimensions();
        let text = serde_json::json!({
            "label": player.label(),
            "doing": now.doing,
            "busy": player.is_busy(),
            "position": now.position.coordinates(dimensions),
            "path": player.path().map(|corner| corner.coordinates(dimensions).to_vec()).collect::<Vec<_>>(),
            "radius": now.radius,
            "distance": now.distance,
            "density": player.density().0,
            "frame": now.frame,
        });
        say(text.to_string());
        Ok(1)
    })
}

#[cfg(test)]
pub(crate) use tests::characters_play_and_mistakes_are_told;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TEXT, understudy_incoming};

    const SWAY: &[u8] = include_bytes!("../../../crates/runtime/tests/golden/sway.motion");

    fn write(bytes: &[u8]) {
        assert_ne!(understudy_incoming(bytes.len().max(1)), 0);
        *lock(&INCOMING) = bytes.to_vec();
    }

    fn said() -> serde_json::Value {
        serde_json::from_str(&lock(&TEXT)).expect("JSON")
    }

    pub(crate) fn characters_play_and_mistakes_are_told() {
        write(SWAY);
        let handle = understudy_motion_load(7);
        assert_ne!(handle, 0, "{}", lock(&TEXT));
        assert_eq!(understudy_motion_describe(handle), 1);
        let description = said();
        assert_eq!(description["rate"], 24.0);
        assert_eq!(description["labels"].as_array().map(Vec::len), Some(3));
        assert_eq!(description["controls"].as_array().map(Vec::len), Some(4));
        let other = understudy_motion_again(handle, 8);
        assert!(other != 0 && other != handle);
        for character in [handle, other] {
            write(br#"{"command":"transition","label":"turn"}"#);
            assert_eq!(understudy_motion_command(character), 1);
            write(b"idle 1s; play turn_0");
            assert_eq!(understudy_motion_script(character), 1);
            assert_eq!(understudy_motion_step(character, 400), 1);
            assert_eq!(understudy_motion_situation(character), 1);
            assert_eq!((said()["label"].as_str(), said()["busy"].as_bool()), (Some("turn"), Some(false)));
            assert_ne!(understudy_motion_controls(character), 0);
        }
        let refused = |answer: usize, part: &str| {
            assert_eq!(answer, 0);
            assert!(lock(&TEXT).contains(part), "{}", lock(&TEXT));
        };
        write(br#"{"command":"transition","label":"cry"}"#);
        refused(understudy_motion_command(handle), "there is no label 'cry'");
        write(b"idle 1s\nfly");
        refused(understudy_motion_script(handle), "line 2");
        write(b"\xff");
        refused(understudy_motion_script(handle), "UTF-8");
        write(&SWAY[..SWAY.len() - 1]);
        refused(understudy_motion_load(1), "does not fit");
        assert_eq!((understudy_motion_free(handle), understudy_motion_free(handle)), (1, 0));
        refused(understudy_motion_step(handle, 1), "was freed");
        refused(understudy_motion_again(handle, 1), "was freed");
        assert_eq!(understudy_motion_free(other), 1);
    }
}
