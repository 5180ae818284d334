//! Happy, grumpy, bored, curious and neutral.

use super::faces::*;
use super::take::Take;

const STILL: [f32; 3] = [0.0, 0.0, 0.0];

pub(super) fn all() -> Vec<Take> {
    let mut takes = happy();
    takes.extend(grumpy());
    takes.extend(bored());
    takes.extend(curious());
    takes.extend(neutral());
    takes
}

fn happy() -> Vec<Take> {
    vec![
        // A smile that grows into a grin.
        Take::new("happy_1", 3.6)
            .key(0.22, &[(DOWN, 0.6), (STERN, 0.2)], [4.0, 0.0, 0.0])
            .hit(0.65, &[(SMILE, 0.8), (BROWS_UP, 0.25)], [-3.0, 3.0, -6.0])
            .hold(1.35)
            .hit(1.7, &[(GRIN, 1.0), (BROWS_UP, 0.35)], [-6.0, -2.0, -8.0])
            .hold(2.6)
            .key(3.0, &[(SMILE, 0.6)], [0.0, -2.0, -3.0])
            .blinks(&[0.3, 1.5, 2.85]),
        // A laugh that shakes her.
        Take::new("happy_2", 3.9)
            .key(0.2, &[(SMILE, 0.35)], [3.0, 0.0, 2.0])
            .hit(0.6, &[(LAUGH, 0.9), (BROWS_UP, 0.2)], [-9.0, 2.0, 3.0])
            .key(0.95, &[(GRIN, 1.0), (LAUGH, 0.05)], [-3.0, 3.0, 4.0])
            .key(1.15, &[(LAUGH, 0.95)], [-9.0, 3.0, 4.0])
            .key(1.35, &[(GRIN, 1.0), (SQUINT, 0.3)], [-2.0, 2.0, 3.0])
            .key(1.55, &[(LAUGH, 1.0), (SQUINT, 0.3)], [-7.0, -1.0, 2.0])
            .key(1.75, &[(GRIN, 1.0), (SQUINT, 0.3)], [2.0, -3.0, 0.0])
            .key(1.97, &[(LAUGH, 0.8), (SQUINT, 0.3)], [0.0, -4.0, -3.0])
            .key(2.25, &[(GRIN, 1.0)], [4.0, -4.0, -5.0])
            .hit(2.7, &[(SMILE, 1.0), (BROWS_UP, 0.3)], [-1.0, 0.0, -4.0])
            .hold(3.3)
            .blinks(&[0.28, 2.45]),
        // Pleased and shy: one side first, a look away, then all of it.
        Take::new("happy_3", 3.7)
            .key(0.5, &[(SMIRK, 0.9), (BROW_RIGHT_UP, 0.25), (LEFT, 0.9)], [5.0, 8.0, 6.0])
            .hold(1.15)
            .key(1.45, &[(SMIRK, 0.7), (DOWN, 0.9), (SMILE, 0.2)], [9.0, 3.0, 3.0])
            .hit(1.95, &[(GRIN, 0.85), (BROWS_UP, 0.55)], [-5.0, -3.0, -6.0])
            .hold(2.9)
            .key(3.2, &[(SMILE, 0.5)], [0.0, -2.0, -3.0])
            .blinks(&[0.35, 1.5, 1.72, 3.1]),
        // Nods with shut eyes: "yes, that is good".
        Take::new("happy_4", 3.3)
            .hit(0.45, &[(SMILE, 0.95), (BROWS_UP, 0.35)], [-4.0, 0.0, 3.0])
            .key(0.85, &[(SMILE, 1.0)], [8.0, -1.0, 2.0])
            .key(1.15, &[(SMILE, 1.0), (BROWS_UP, 0.25)], [-4.0, -1.0, 2.0])
            .key(1.45, &[(SMILE, 1.0)], [7.0, 0.0, 1.0])
            .key(1.75, &[(SMILE, 0.95), (BROWS_UP, 0.25)], [-2.0, 0.0, 0.0])
            .hit(2.1, &[(GRIN, 0.8), (BROWS_UP, 0.4)], [-4.0, 2.0, -4.0])
            .hold(2.8)
            .curve(
                "eyeBlink_*",
                &[
                    (0.0, 0.0),
                    (0.6, 0.0),
                    (0.75, 1.0),
                    (1.55, 0.95),
                    (1.8, 0.0),
                    (2.55, 0.0),
                    (2.62, 1.0),
                    (2.8, 0.0),
                ],
            ),
    ]
}

fn grumpy() -> Vec<Take> {
    vec![
        // Scowls, and turns away.
        Take::new("grumpy_1", 3.6)
            .key(0.2, &[(BROWS_UP, 0.3)], [-3.0, 0.0, 0.0])
            .hit(0.6, &[(SCOWL, 0.95)], [8.0, 0.0, 2.0])
            .hold(1.3)
            .key(1.65, &[(SCOWL, 1.0), (RIGHT, 0.5)], [6.0, -16.0, -4.0])
            .hold(2.25)
            .key(2.5, &[(SCOWL, 1.0), (LEFT, 1.0), (BROW_LEFT_UP, 0.2)], [6.0, -14.0, -5.0])
            .hold(3.0)
            .blinks(&[0.3, 1.5, 3.1]),
        // A huff: draws breath, puffs up, lets it out, shakes it off.
        Take::new("grumpy_2", 3.8)
            .key(0.4, &[(SCOWL, 0.6), (UP, 0.5)], [-6.0, 2.0, 0.0])
            .hit(0.8, &[(BROWS_DOWN, 0.9), (PUFFED, 1.0)], [-3.0, 3.0, 2.0])
            .hold(1.35)
            .hit(1.55, &[(BROWS_DOWN, 0.8), (BLOW, 1.0), (LEAN, 0.4)], [7.0, -3.0, -2.0])
            .hold(1.95)
            .key(2.3, &[(SCOWL, 0.95)], [9.0, -8.0, -3.0])
            .key(2.55, &[(SCOWL, 1.0)], [9.0, 2.0, -2.0])
            .hold(3.2)
            .blinks(&[0.5, 1.5, 2.4]),
        // Grumbles with a shut mouth, and sneers at the end of it.
        Take::new("grumpy_3", 3.9)
            .hit(0.5, &[(SCOWL, 0.85), (DOWN, 0.4)], [7.0, 5.0, 4.0])
            .key(0.85, &[(SCOWL, 0.85), (&[("jawLeft", 0.5), ("jawOpen", 0.04)], 1.0)], [8.0, 3.0, 4.0])
            .key(
                1.1,
                &[(SCOWL, 0.8), (&[("jawRight", 0.4), ("jawOpen", 0.1), ("mouthRight", 0.3)], 1.0)],
                [7.0, 0.0, 3.0],
            )
            .key(1.35, &[(SCOWL, 0.85), (&[("jawLeft", 0.4), ("jawOpen", 0.03)], 1.0)], [8.0, -2.0, 1.0])
            .key(
                1.6,
                &[(SCOWL, 0.8), (&[("jawRight", 0.35), ("jawOpen", 0.11), ("mouthFunnel", 0.25)], 1.0)],
                [7.0, -3.0, 0.0],
            )
            .hit(
                2.0,
                &[(BROWS_DOWN, 1.0), (SNEER_LEFT, 1.0), (SQUINT, 0.3), (&[("mouthFrown_R", 0.6)], 1.0)],
                [3.0, -6.0, -7.0],
            )
            .hold(2.7)
            .key(3.1, &[(SCOWL, 0.8)], [6.0, -3.0, -2.0])
            .blinks(&[0.4, 1.75, 3.2]),
    ]
}

fn bored() -> Vec<Take> {
    vec![
        // Sinks, sighs, rolls her eyes.
        Take::new("bored_1", 4.4)
            .key(0.7, &[(SLACK, 0.9), (LEFT, 0.5)], [5.0, 6.0, 7.0])
            .hold(1.3)
            .key(1.6, &[(SLACK, 0.6), (PUFFED, 0.6), (&[("browInnerUp_*", 0.4)], 1.0)], [-3.0, 4.0, 6.0])
            .hit(1.95, &[(SLACK, 0.8), (BLOW, 0.75)], [6.0, 2.0, 7.0])
            .hold(2.4)
            .key(2.75, &[(SLACK, 0.4), (UP, 1.4), (&[("browUp_*", 0.25)], 1.0)], [-4.0, -2.0, 5.0])
            .key(3.1, &[(SLACK, 0.6), (RIGHT, 1.0), (UP, 0.5)], [0.0, -7.0, 0.0])
            .key(3.5, &[(SLACK, 0.9)], [7.0, -6.0, -3.0])
            .hold(3.95)
            .curve(
                "eyeBlink_*",
                &[
                    (0.0, 0.0),
                    (0.35, 0.0),
                    (0.55, 1.0),
                    (0.95, 0.1),
                    (1.2, 0.0),
                    (3.2, 0.0),
                    (3.38, 1.0),
                    (3.75, 0.0),
                ],
            ),
        // A yawn, and what is left of it.
        Take::new("bored_2", 4.3)
            .key(0.5, &[(SLACK, 0.8)], [5.0, -3.0, -4.0])
            .key(0.95, &[(YAWN, 0.35), (SLACK, 0.3)], [-2.0, -3.0, -5.0])
            .key(1.45, &[(YAWN, 1.0)], [-12.0, -4.0, -7.0])
            .key(2.1, &[(YAWN, 0.95)], [-10.0, -5.0, -8.0])
            .key(
                2.6,
                &[(SLACK, 0.7), (&[("mouthPress_*", 0.5), ("mouthRollLower", 0.4)], 1.0)],
                [3.0, -2.0, -3.0],
            )
            .key(2.85, &[(SLACK, 0.8), (&[("jawOpen", 0.12), ("tongueUp", 0.3)], 1.0)], [4.0, -1.0, -2.0])
            .key(3.05, &[(SLACK, 0.8), (&[("mouthPress_*", 0.5)], 1.0)], [4.0, 0.0, -1.0])
            .hold(3.8)
            .curve(
                "eyeBlink_*",
                &[
                    (0.0, 0.0),
                    (0.7, 0.15),
                    (1.35, 1.0),
                    (2.3, 1.0),
                    (2.65, 0.3),
                    (3.2, 0.15),
                    (3.32, 1.0),
                    (3.6, 0.1),
                    (4.1, 0.0),
                ],
            ),
        // Leans over, looks for anything at all, chews her cheek.
        Take::new("bored_3", 4.4)
            .key(0.7, &[(SLACK, 0.85), (RIGHT, 0.8)], [4.0, -8.0, 13.0])
            .hold(1.3)
            .key(
                1.7,
                &[(SLACK, 0.8), (LEFT, 1.0), (&[("mouthLeft", 0.6), ("mouthPucker", 0.2)], 1.0)],
                [3.0, 10.0, 12.0],
            )
            .key(
                2.15,
                &[(SLACK, 0.75), (LEFT, 0.6), (&[("mouthRight", 0.6), ("mouthPress_*", 0.3)], 1.0)],
                [4.0, 11.0, 11.0],
            )
            .key(
                2.6,
                &[(SLACK, 0.8), (DOWN, 0.5), (&[("mouthLeft", 0.3), ("jawLeft", 0.3)], 1.0)],
                [8.0, 4.0, 12.0],
            )
            .hold(3.2)
            .key(3.6, &[(SLACK, 0.7), (&[("browUp_*", 0.3)], 1.0)], [2.0, 0.0, 7.0])
            .curve(
                "eyeBlink_*",
                &[(0.0, 0.0), (1.25, 0.0), (1.42, 1.0), (1.85, 0.0), (2.85, 0.0), (3.05, 1.0), (3.5, 0.0)],
            ),
    ]
}

fn curious() -> Vec<Take> {
    vec![
        // Tilts her head at something and comes nearer.
        Take::new("curious_1", 3.7)
            .key(0.25, &[(DOWN, 0.2), (SQUINT, 0.2)], [3.0, 0.0, -3.0])
            .hit(0.6, &[(BROW_LEFT_UP, 1.0), (PARTED, 0.8), (LEAN, 0.5), (WIDE, 0.2)], [-2.0, 6.0, 11.0])
            .hold(1.5)
            .hit(1.85, &[(BROWS_UP, 0.8), (WIDE, 0.4), (LEAN, 1.0), (PARTED, 1.0)], [2.0, -3.0, -9.0])
            .hold(2.8)
            .key(3.15, &[(BROWS_UP, 0.4), (PARTED, 0.5), (LEAN, 0.4)], [0.0, -1.0, -3.0])
            .blinks(&[0.33, 1.65, 2.95]),
        // Peers from side to side, then sees it.
        Take::new("curious_2", 4.0)
            .key(0.5, &[(SQUINT, 0.9), (BROWS_DOWN, 0.3), (LEAN, 1.0), (RIGHT, 0.8)], [4.0, -11.0, -3.0])
            .hold(1.1)
            .key(1.6, &[(SQUINT, 1.0), (BROWS_DOWN, 0.35), (LEAN, 1.0), (LEFT, 0.9)], [5.0, 11.0, 4.0])
            .hold(2.2)
            .hit(
                2.55,
                &[(BROWS_UP, 0.95), (WIDE, 0.6), (PARTED, 1.0), (SMILE, 0.2), (LEAN, 0.5)],
                [-4.0, 4.0, 6.0],
            )
            .hold(3.35)
            .blinks(&[0.3, 1.3, 2.42]),
        // Listens, thinks "hmm", looks up for the answer.
        Take::new("curious_3", 4.1)
            .hit(0.5, &[(BROWS_UP, 0.55), (LEFT, 0.5), (PARTED, 0.6)], [0.0, -14.0, 7.0])
            .hold(1.15)
            .hit(1.55, &[(HMM, 1.0), (BROW_RIGHT_UP, 0.9), (UP, 0.9), (RIGHT, 0.6)], [-5.0, -5.0, -8.0])
            .hold(2.4)
            .key(2.75, &[(HMM, 0.6), (BROW_RIGHT_UP, 0.6), (LEFT, 0.6), (UP, 0.6)], [-4.0, 5.0, -5.0])
            .hit(3.1, &[(BROWS_UP, 0.6), (PARTED, 0.8), (SMILE, 0.15), (LEAN, 0.5)], [1.0, 2.0, 6.0])
            .hold(3.6)
            .blinks(&[0.4, 1.4, 2.6, 3.0]),
    ]
}

fn neutral() -> Vec<Take> {
    let ease: super::take::Pose = &[("mouthSmile_*", 0.1), ("mouthPress_*", 0.12)];
    vec![
        // Breathes, and shifts her weight.
        Take::new("neutral_1", 3.8)
            .key(0.9, &[(ease, 0.6)], [1.5, 2.5, 1.5])
            .hold(1.7)
            .key(2.5, &[(ease, 1.0), (BROWS_UP, 0.08)], [-1.0, -2.0, -1.5])
            .hold(3.2)
            .blinks(&[1.0, 2.9]),
        // Looks here and there.
        Take::new("neutral_2", 4.0)
            .key(0.6, &[(LEFT, 0.8), (ease, 0.5)], [0.5, 7.0, 1.0])
            .hold(1.4)
            .key(1.9, &[(RIGHT, 0.8), (BROWS_UP, 0.12)], [-1.0, -7.0, -1.0])
            .hold(2.7)
            .key(3.2, &[(DOWN, 0.3)], [2.0, 0.0, 0.0])
            .blinks(&[0.5, 1.75, 3.1]),
        // Presses her lips, swallows, lifts her brows for a moment.
        Take::new("neutral_3", 3.9)
            .key(0.6, &[(&[("mouthPress_*", 0.55), ("mouthRollLower", 0.3)], 1.0)], [1.5, -1.5, 0.0])
            .key(1.0, &[(ease, 0.8), (&[("throatSwallow", 0.8)], 1.0)], [2.5, -1.0, 1.0])
            .key(1.35, &[(ease, 0.6)], STILL)
            .key(2.0, &[(BROWS_UP, 0.35), (ease, 0.7)], [-2.0, 2.0, 2.0])
            .key(2.35, &[(ease, 0.8)], [0.5, 2.0, 2.0])
            .hold(3.3)
            .blinks(&[0.45, 1.2, 2.6]),
    ]
}
