//! Roars, shaken heads, surprises.

use super::faces::*;
use super::take::Take;

pub(super) fn all() -> Vec<Take> {
    let mut takes = roar();
    takes.extend(head_shake());
    takes.extend(surprise());
    takes
}

/// A tremble of the head while a roar lasts, degrees.
fn tremble(from: f32, to: f32, degrees: f32) -> Vec<(f32, f32)> {
    let mut keys = vec![(0.0, 0.0), (from, 0.0)];
    let mut side = 1.0;
    let mut time = from + 0.08;
    while time < to {
        keys.push((time, side * degrees));
        side = -side * 0.97;
        time += 0.085;
    }
    keys.push((to + 0.1, 0.0));
    keys
}

fn roar() -> Vec<Take> {
    vec![
        // Gathers, roars, growls it out.
        Take::new("roar_1", 3.6)
            .key(0.45, &[(GROWL, 0.5), (BACK, 0.8)], [11.0, 0.0, 0.0])
            .hit(0.85, &[(ROAR, 0.95)], [-13.0, 0.0, 2.0])
            .key(1.4, &[(ROAR, 0.92)], [-10.0, 3.0, 3.0])
            .key(1.95, &[(ROAR, 1.0)], [-12.0, -2.0, 0.0])
            .key(2.4, &[(GROWL, 1.0), (LEAN, 0.5)], [2.0, -3.0, -2.0])
            .hold(2.95)
            .curve("headTwist", &tremble(0.95, 2.05, 2.2)),
        // A bark as a warning, then the whole of it from side to side.
        Take::new("roar_2", 3.9)
            .key(0.3, &[(GROWL, 0.4), (BACK, 0.5)], [5.0, 4.0, 0.0])
            .hit(0.5, &[(ROAR, 0.6), (LEAN, 0.2)], [-5.0, 4.0, 3.0])
            .key(0.9, &[(GROWL, 0.7)], [8.0, 8.0, 4.0])
            .key(1.1, &[(GROWL, 0.6), (BACK, 0.7)], [10.0, 11.0, 5.0])
            .hit(1.4, &[(ROAR, 0.95)], [-12.0, 12.0, 6.0])
            .key(2.1, &[(ROAR, 1.0)], [-11.0, -3.0, 0.0])
            .key(2.7, &[(ROAR, 0.85)], [-8.0, -13.0, -6.0])
            .key(3.15, &[(GROWL, 0.7)], [4.0, -6.0, -3.0])
            .curve("headTwist", &tremble(1.5, 2.75, 2.0)),
        // Bares her teeth for long, snaps, roars short.
        Take::new("roar_3", 3.6)
            .hit(0.5, &[(GROWL, 0.9), (LEAN, 0.8)], [7.0, -5.0, -5.0])
            .hold(1.1)
            .key(1.3, &[(GROWL, 0.8), (&[("jawOpen", 0.45)], 1.0), (LEAN, 0.9)], [0.0, 0.0, 0.0])
            .key(1.42, &[(GROWL, 1.0), (LEAN, 1.2)], [5.0, 2.0, 2.0])
            .key(1.75, &[(GROWL, 0.7), (BACK, 0.6)], [10.0, 3.0, 2.0])
            .hit(2.05, &[(ROAR, 1.0)], [-12.0, 2.0, 5.0])
            .key(2.55, &[(ROAR, 0.9)], [-10.0, -2.0, 4.0])
            .key(2.95, &[(GROWL, 0.6)], [3.0, 0.0, 0.0])
            .curve("headTwist", &tremble(2.15, 2.65, 2.4)),
    ]
}

fn head_shake() -> Vec<Take> {
    vec![
        // A firm no.
        Take::new("head_shake_1", 3.0)
            .key(0.2, &[(STERN, 0.5)], [2.0, -4.0, 0.0])
            .key(0.5, &[(STERN, 1.0), (RIGHT, 0.6)], [4.0, 20.0, 2.0])
            .key(0.85, &[(STERN, 1.0), (LEFT, 0.6)], [4.0, -21.0, -2.0])
            .key(1.2, &[(STERN, 1.0), (RIGHT, 0.5)], [5.0, 18.0, 2.0])
            .key(1.55, &[(STERN, 0.9), (LEFT, 0.4)], [5.0, -15.0, -1.0])
            .key(1.9, &[(STERN, 0.9), (RIGHT, 0.2)], [5.0, 9.0, 1.0])
            .key(2.2, &[(STERN, 0.8)], [4.0, -2.0, 0.0])
            .hold(2.55)
            .blinks(&[0.32, 1.35]),
        // "I cannot believe it": slow, with shut eyes and raised inner brows.
        Take::new("head_shake_2", 3.8)
            .key(
                0.4,
                &[(WORRIED, 0.7), (&[("mouthPress_*", 0.6), ("mouthRollLower", 0.3)], 1.0)],
                [7.0, 5.0, 2.0],
            )
            .key(
                0.95,
                &[(WORRIED, 0.9), (&[("mouthPress_*", 0.6), ("mouthDimple_*", 0.4)], 1.0)],
                [9.0, 17.0, 3.0],
            )
            .key(
                1.6,
                &[(WORRIED, 0.9), (&[("mouthPress_*", 0.5), ("mouthDimple_*", 0.5)], 1.0)],
                [8.0, -18.0, -4.0],
            )
            .key(
                2.25,
                &[(WORRIED, 0.9), (&[("mouthPress_*", 0.5), ("mouthDimple_*", 0.4)], 1.0)],
                [8.0, 15.0, 3.0],
            )
            .key(2.8, &[(WORRIED, 0.6), (&[("mouthPress_*", 0.4)], 1.0)], [5.0, -8.0, -1.0])
            .key(3.2, &[(WORRIED, 0.3)], [2.0, -1.0, 0.0])
            .curve(
                "eyeBlink_*",
                &[
                    (0.0, 0.0),
                    (0.35, 0.0),
                    (0.55, 1.0),
                    (2.45, 1.0),
                    (2.7, 0.0),
                    (3.3, 0.0),
                    (3.38, 1.0),
                    (3.55, 0.0),
                ],
            ),
        // Says "no, no, no" with it, faster and faster.
        Take::new("head_shake_3", 3.1)
            .key(0.25, &[(BROWS_UP, 0.4), (PARTED, 0.3)], [-2.0, 5.0, 0.0])
            .key(0.5, &[(STERN, 0.4), (BLOW, 0.8), (WORRIED, 0.3)], [1.0, -16.0, -3.0])
            .key(0.78, &[(WORRIED, 0.5), (PARTED, 0.8)], [0.0, 16.0, 3.0])
            .key(1.03, &[(BLOW, 0.8), (WORRIED, 0.5)], [1.0, -16.0, -3.0])
            .key(1.27, &[(PARTED, 0.8), (WORRIED, 0.6)], [1.0, 15.0, 2.0])
            .key(1.5, &[(BLOW, 0.7), (WORRIED, 0.6)], [2.0, -14.0, -2.0])
            .key(1.73, &[(PARTED, 0.6), (WORRIED, 0.6)], [2.0, 11.0, 1.0])
            .key(1.97, &[(STERN, 0.4), (WORRIED, 0.5)], [3.0, -6.0, 0.0])
            .key(2.25, &[(STERN, 0.6), (WORRIED, 0.3)], [4.0, 1.0, 0.0])
            .hold(2.6)
            .blinks(&[0.38, 1.4, 2.3]),
    ]
}

fn surprise() -> Vec<Take> {
    vec![
        // A gasp.
        Take::new("surprise_1", 3.4)
            .key(0.3, &[(SHUT, 0.55)], [6.0, 0.0, 0.0])
            .hit(0.52, &[(GASP, 0.97), (BACK, 0.9), (&[("headStretch", 0.07)], 1.0)], [-9.0, 0.0, 1.0])
            .hold(1.5)
            .key(1.85, &[(OH, 0.7), (BACK, 0.5)], [-5.0, 3.0, 4.0])
            .hold(2.4)
            .key(2.8, &[(BROWS_UP, 0.4), (PARTED, 0.5)], [0.0, 1.0, 2.0])
            .curve(
                "eyeBlink_*",
                &[
                    (0.0, 0.0),
                    (0.22, 0.0),
                    (0.3, 0.9),
                    (0.42, 0.0),
                    (1.52, 0.0),
                    (1.59, 1.0),
                    (1.7, 0.0),
                    (1.78, 0.9),
                    (1.92, 0.0),
                    (2.7, 0.0),
                    (2.77, 1.0),
                    (2.92, 0.0),
                ],
            ),
        // A double take.
        Take::new("surprise_2", 3.6)
            .key(0.35, &[(LEFT, 0.9)], [1.0, 9.0, 1.0])
            .key(0.75, &[(RIGHT, 0.2)], [1.0, -5.0, -1.0])
            .key(0.95, &[(SHUT, 0.3), (RIGHT, 0.2)], [4.0, -6.0, -1.0])
            .hit(
                1.2,
                &[(OH, 1.0), (WIDE, 0.3), (BACK, 0.7), (LEFT, 0.4), (&[("headStretch", 0.06)], 1.0)],
                [-6.0, 10.0, 3.0],
            )
            .hold(2.1)
            .key(2.45, &[(GASP, 0.7), (LEAN, 0.2)], [-2.0, 7.0, 6.0])
            .hold(2.9)
            .blinks(&[0.28, 0.95, 2.28, 3.1]),
        // Starts back, and breathes out.
        Take::new("surprise_3", 3.6)
            .hit(
                0.3,
                &[
                    (GASP, 0.9),
                    (&[("mouthStretch_*", 0.5)], 1.0),
                    (BACK, 1.0),
                    (&[("headStretch", 0.08)], 1.0),
                ],
                [-8.0, -6.0, -5.0],
            )
            .hold(1.3)
            .key(1.6, &[(OH, 0.8), (BACK, 0.8)], [-6.0, -3.0, -3.0])
            .hold(2.0)
            .key(2.3, &[(BROWS_UP, 0.5), (BLOW, 0.7), (&[("cheekPuff_*", 0.3)], 1.0)], [0.0, 0.0, 0.0])
            .key(2.8, &[(WORRIED, 0.3), (SMILE, 0.25)], [3.0, 2.0, 3.0])
            .blinks(&[1.42, 2.15, 2.95]),
    ]
}
