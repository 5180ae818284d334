//! What a fuzzer runs on files of motion: bytes in, and nothing may panic; what is accepted is played, saved, and read
//! again. Two programs share this file: the fuzz target beside it, and `crates/runtime/tests/motion_files.rs`.

use understudy_runtime::motion::{Command, Motion, MotionPlayer, PlayConfig, parse_script};

/// Tells whether the bytes were accepted, as a file or as a script and commands.
pub fn motion(bytes: &[u8]) -> bool {
    if let Ok(text) = std::str::from_utf8(bytes) {
        for line in parse_script(text).unwrap_or_default() {
            assert_eq!(Command::from_json(&line.command.to_json()).as_ref(), Ok(&line.command));
        }
        let _ = Command::from_json(text);
    }
    let Ok(motion) = Motion::parse(bytes) else { return false };
    let saved = motion.to_bytes().expect("what was loaded can be saved");
    let again = Motion::parse(&saved).expect("we read what we write");
    assert!(again.to_bytes().expect("and save it") == saved, "saving and loading is the identity");
    let motion = motion.shared();
    let mut player = MotionPlayer::new(motion.clone(), None, PlayConfig::default()).expect("it has a label");
    let last = motion.models().len() - 1;
    let model = &motion.models()[last];
    let clip = model.clips()[0].name.clone();
    let commands = [
        Command::Transition { label: model.label().to_owned() },
        Command::Play { clip, part: None },
        Command::Idle { seconds: Some(0.5), around: Vec::new(), dwell: None },
    ];
    for command in commands {
        // No bridge may lead there.
        let _ = player.command(command);
    }
    for _ in 0..40 {
        player.step();
        assert_eq!(player.controls().len(), motion.controls().len());
    }
    let _ = player.density();
    let controls = player.controls().to_vec();
    let _ = player.place_at_controls(model.label(), &controls);
    true
}
