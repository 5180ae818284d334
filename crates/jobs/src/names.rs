//! Names that users type, and what they probably meant: one message for clips, controls, baselines and rigs.

use crate::JobError;

/// Most names that a message lists.
const LISTED: usize = 12;

/// The known name that differs least from a wrong one, where so few letters differ that it may be meant. Case
/// does not count.
pub(crate) fn closest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = letters(wrong);
    let allowed = (wrong.len() / 3).max(1);
    let distances = known.into_iter().map(|name| (distance(&wrong, &letters(name)), name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= allowed).then_some(name)
}

/// `clip 'walc': rook has no such clip (it has walk, kick); did you mean 'walk'?`
pub(crate) fn unknown<'a>(
    what: &str,
    wrong: &str,
    owner: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> JobError {
    let known: Vec<&str> = known.into_iter().collect();
    let mut problem = match known.len() {
        0 => format!("{owner} has no {what}s"),
        1..=LISTED => format!("{owner} has no such {what} (it has {})", known.join(", ")),
        many => format!("{owner} has no such {what} among its {many} (info lists them)"),
    };
    if let Some(close) = closest(wrong, known) {
        problem += &format!("; did you mean '{close}'?");
    }
    JobError::setting(format!("{what} '{wrong}'"), problem)
}

fn letters(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// Fewest letters to add, drop, replace or swap with their neighbour (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<usize>>(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        rows[2][0] = i;
        for j in 1..=b.len() {
            let replaced = rows[1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[1][j] + 1).min(rows[2][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = least;
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_understood() {
        let known = ["walk", "reach", "kick", "mouthSmile_L"];
        for (wrong, meant) in [
            ("walc", Some("walk")),
            ("WALK", Some("walk")),
            ("wlak", Some("walk")),
            ("mouthSmil_l", Some("mouthSmile_L")),
            ("dance", None),
            ("", None),
        ] {
            assert_eq!(closest(wrong, known), meant, "{wrong}");
        }
        let error = unknown("clip", "kik", "rook", known).to_string();
        assert_eq!(
            error,
            "clip 'kik': rook has no such clip (it has walk, reach, kick, mouthSmile_L); did you mean 'kick'?"
        );
        assert_eq!(unknown("clip", "x", "cube", []).to_string(), "clip 'x': cube has no clips");
    }

    #[test]
    fn distances_count_edits() {
        for (a, b, want) in [("", "", 0), ("", "ab", 2), ("ab", "ba", 1), ("kitten", "sitting", 3)] {
            assert_eq!(distance(&letters(a), &letters(b)), want, "{a} {b}");
        }
    }
}
