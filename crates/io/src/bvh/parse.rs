//! From text to [`Bvh`]: the hierarchy by words, the motion by lines, every error with its line.

use super::{Bvh, BvhChannel, transform, units};
use crate::{Axis, Conversion, ParseError, ReadError, read_bytes};
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use understudy_core::{Bone, JointClip, JointPose, JointTransform, Quat, Skeleton, Vec3};

/// What a caller knows about a file that names neither its unit nor its axes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BvhOptions {
    /// Centimetres in one unit; estimated from the skeleton's height when not given.
    pub cm_per_unit: Option<f32>,
    /// The axis that points up; Y, as is the custom, when not given.
    pub up: Option<Axis>,
}

/// Reads a file; the clip is named after it.
pub fn read(path: &Path, options: BvhOptions) -> Result<Bvh, ReadError> {
    let mut bvh = parse(&read_bytes(path)?, options).map_err(ReadError::content(path))?;
    bvh.clip.name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    Ok(bvh)
}

/// [`read`] on bytes.
pub fn parse(bytes: &[u8], options: BvhOptions) -> Result<Bvh, ParseError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ParseError::new(format!("byte {}", error.valid_up_to()), "is not UTF-8 text"))?;
    let mut lines = Lines { rest: text.trim_start_matches('\u{feff}').lines().zip(1usize..), last: 0 };
    let mut warnings = Vec::new();
    let mut joints = hierarchy(&mut lines)?;
    make_unique(&mut joints.names, &mut warnings);
    let conversion = conversion(&joints, options, &mut warnings)?;
    let clip = motion(&mut lines, &joints, &conversion, text.len())?;

    let turn = upright(conversion.up);
    let bones = (0..joints.names.len()).map(|joint| {
        let mut rest = JointTransform::from_translation(joints.offsets[joint].as_vec3() * conversion.scale);
        if joints.parents[joint].is_none() {
            rest = turned(rest, turn);
        }
        Bone { name: joints.names[joint].clone(), parent: joints.parents[joint], rest }
    });
    let skeleton = Skeleton::new(bones.collect()).map_err(|error| ParseError::new("hierarchy", error))?;
    let end_sites =
        joints.end_sites.iter().map(|(joint, offset)| (*joint, offset.as_vec3() * conversion.scale));
    let end_sites: Vec<(usize, Vec3)> = end_sites.collect();
    if end_sites.iter().any(|(_, offset)| !offset.is_finite()) {
        return Err(ParseError::new("hierarchy", "an end site is too far away"));
    }
    Ok(Bvh { skeleton, channels: joints.channels, end_sites, clip, conversion, warnings })
}

/// The rotation that brings a file's up axis to Y.
fn upright(up: Axis) -> Option<Quat> {
    match up {
        Axis::Y => None,
        Axis::Z => Some(Quat::from_rotation_x(-std::f32::consts::FRAC_PI_2)),
    }
}

fn turned(transform: JointTransform, turn: Option<Quat>) -> JointTransform {
    match turn {
        None => transform,
        Some(turn) => JointTransform {
            rotation: turn * transform.rotation,
            translation: turn * transform.translation,
            scale: transform.scale,
        },
    }
}

#[derive(Default)]
struct Joints {
    names: Vec<String>,
    parents: Vec<Option<usize>>,
    /// In the file's unit.
    offsets: Vec<glam::DVec3>,
    channels: Vec<Vec<BvhChannel>>,
    end_sites: Vec<(usize, glam::DVec3)>,
}

struct Lines<'a> {
    rest: std::iter::Zip<std::str::Lines<'a>, std::ops::RangeFrom<usize>>,
    last: usize,
}

impl<'a> Lines<'a> {
    /// The next line with words on it.
    fn next(&mut self) -> Option<(usize, Vec<&'a str>)> {
        for (line, number) in self.rest.by_ref() {
            self.last = number;
            // A brace may stand right behind a word.
            let words: Vec<&str> = line.split_whitespace().flat_map(split_braces).collect();
            if !words.is_empty() {
                return Some((number, words));
            }
        }
        None
    }

    fn expect(&mut self, what: &str) -> Result<(usize, Vec<&'a str>), ParseError> {
        let last = self.last;
        self.next().ok_or_else(|| at(last, format!("the file ends where {what} should follow")))
    }
}

fn split_braces(word: &str) -> impl Iterator<Item = &str> {
    word.split_inclusive(['{', '}']).flat_map(|part| {
        let (head, brace) = part.split_at(part.trim_end_matches(['{', '}']).len());
        [head, brace].into_iter().filter(|piece| !piece.is_empty())
    })
}

fn at(line: usize, problem: impl ToString) -> ParseError {
    ParseError::new(format!("line {line}"), problem)
}

fn number(word: &str, line: usize) -> Result<f64, ParseError> {
    let value: f64 = word.parse().map_err(|_| at(line, format!("'{}' is not a number", shorten(word))))?;
    if value.is_finite() { Ok(value) } else { Err(at(line, format!("'{}' is not finite", shorten(word)))) }
}

fn shorten(word: &str) -> String {
    word.chars().take(32).collect()
}

/// A block of the hierarchy that is open.
enum Open {
    Joint { index: usize, has_offset: bool, has_channels: bool, line: usize },
    EndSite { joint: usize, has_offset: bool, line: usize },
}

fn hierarchy(lines: &mut Lines<'_>) -> Result<Joints, ParseError> {
    let (line, words) = lines.expect("HIERARCHY")?;
    if !words[0].eq_ignore_ascii_case("HIERARCHY") {
        return Err(at(line, "HIERARCHY expected: this is no BVH file"));
    }
    let mut joints = Joints::default();
    let mut open: Vec<Open> = Vec::new();
    // The words of several lines are one stream: braces may share a line with anything.
    let mut queue: VecDeque<(usize, &str)> = words[1..].iter().map(|word| (line, *word)).collect();
    loop {
        if queue.is_empty() {
            let (line, words) = lines.expect("the rest of the hierarchy and MOTION")?;
            queue.extend(words.into_iter().map(|word| (line, word)));
        }
        let (line, word) = queue.pop_front().expect("just filled");
        let mut rest_of_line = || {
            let count =
                queue.iter().take_while(|(other, word)| *other == line && !"{}".contains(word)).count();
            queue.drain(..count).map(|(_, word)| word).collect::<Vec<_>>()
        };
        match word.to_ascii_uppercase().as_str() {
            "MOTION" if open.is_empty() => break,
            "MOTION" => {
                let (Open::Joint { line: opened, .. } | Open::EndSite { line: opened, .. }) =
                    open.last().expect("not empty");
                return Err(at(line, format!("MOTION, but the block of line {opened} is not closed")));
            }
            "ROOT" | "JOINT" => {
                let root = word.eq_ignore_ascii_case("ROOT");
                let name = rest_of_line().join(" ");
                let parent = match open.last() {
                    None if root => None,
                    Some(Open::Joint { index, .. }) if !root => Some(*index),
                    _ => return Err(at(line, format!("{word} does not belong here"))),
                };
                let index = joints.names.len();
                joints.names.push(if name.is_empty() { format!("joint{index}") } else { name });
                joints.parents.push(parent);
                joints.offsets.push(glam::DVec3::ZERO);
                joints.channels.push(Vec::new());
                open.push(Open::Joint { index, has_offset: false, has_channels: false, line });
                expect_brace(&mut queue, lines, line)?;
            }
            "END" => {
                rest_of_line();
                let Some(Open::Joint { index, .. }) = open.last() else {
                    return Err(at(line, "End Site does not belong here"));
                };
                open.push(Open::EndSite { joint: *index, has_offset: false, line });
                expect_brace(&mut queue, lines, line)?;
            }
            "OFFSET" => offset(&rest_of_line(), line, open.last_mut(), &mut joints)?,
            "CHANNELS" => channels(&rest_of_line(), line, open.last_mut(), &mut joints)?,
            "}" => close(open.pop(), line, &joints)?,
            _ => return Err(at(line, format!("'{}' is not known here", shorten(word)))),
        }
    }
    if joints.names.is_empty() {
        return Err(at(lines.last, "the hierarchy has no ROOT"));
    }
    Ok(joints)
}

fn expect_brace<'a>(
    queue: &mut VecDeque<(usize, &'a str)>,
    lines: &mut Lines<'a>,
    opened: usize,
) -> Result<(), ParseError> {
    if queue.is_empty() {
        let (line, words) = lines.expect("'{'")?;
        queue.extend(words.into_iter().map(|word| (line, word)));
    }
    match queue.pop_front() {
        Some((_, "{")) => Ok(()),
        Some((line, word)) => {
            Err(at(line, format!("'{{' of line {opened} expected, '{}' found", shorten(word))))
        }
        None => Err(at(opened, "'{' expected")),
    }
}

fn offset(
    words: &[&str],
    line: usize,
    block: Option<&mut Open>,
    joints: &mut Joints,
) -> Result<(), ParseError> {
    if words.len() != 3 {
        return Err(at(line, format!("OFFSET needs 3 numbers, {} found", words.len())));
    }
    let mut value = glam::DVec3::ZERO;
    for axis in 0..3 {
        value[axis] = number(words[axis], line)?;
    }
    match block {
        Some(Open::Joint { index, has_offset: seen @ false, .. }) => {
            *seen = true;
            joints.offsets[*index] = value;
        }
        Some(Open::EndSite { joint, has_offset: seen @ false, .. }) => {
            *seen = true;
            joints.end_sites.push((*joint, value));
        }
        _ => return Err(at(line, "a second OFFSET, or one outside a joint")),
    }
    Ok(())
}

fn channels(
    words: &[&str],
    line: usize,
    block: Option<&mut Open>,
    joints: &mut Joints,
) -> Result<(), ParseError> {
    let Some(Open::Joint { index, has_channels: seen @ false, .. }) = block else {
        return Err(at(line, "a second CHANNELS, or one outside a joint"));
    };
    *seen = true;
    let count: Option<usize> = words.first().and_then(|word| word.parse().ok());
    let count = count.ok_or_else(|| at(line, "CHANNELS needs a number"))?;
    if words.len() - 1 != count {
        return Err(at(line, format!("{count} channels are announced, {} named", words.len() - 1)));
    }
    let list = &mut joints.channels[*index];
    for word in &words[1..] {
        let channel = BvhChannel::from_name(word)
            .ok_or_else(|| at(line, format!("there is no channel '{}'", shorten(word))))?;
        if list.contains(&channel) {
            return Err(at(line, format!("channel {word} appears twice")));
        }
        list.push(channel);
    }
    Ok(())
}

fn close(block: Option<Open>, line: usize, joints: &Joints) -> Result<(), ParseError> {
    match block {
        None => Err(at(line, "'}' without '{'")),
        Some(Open::Joint { index, has_channels: false, line: opened, .. }) => {
            Err(at(opened, format!("joint '{}' has no CHANNELS", shorten(&joints.names[index]))))
        }
        Some(
            Open::Joint { has_offset: false, line: opened, .. }
            | Open::EndSite { has_offset: false, line: opened, .. },
        ) => Err(at(opened, "this block has no OFFSET")),
        Some(_) => Ok(()),
    }
}

/// Appends `_2`, `_3`, … to a name that appeared before.
fn make_unique(names: &mut [String], warnings: &mut Vec<String>) {
    let mut taken: HashSet<String> = names.iter().cloned().collect();
    let mut next: HashMap<String, usize> = HashMap::new();
    for name in names {
        let count = next.entry(name.clone()).or_insert(1);
        if *count == 1 {
            *count = 2;
            continue;
        }
        let unique = loop {
            let unique = format!("{name}_{count}");
            *count += 1;
            if taken.insert(unique.clone()) {
                break unique;
            }
        };
        warnings.push(format!("two joints are named '{name}': the later one is now '{unique}'"));
        *name = unique;
    }
}

fn conversion(
    joints: &Joints,
    options: BvhOptions,
    warnings: &mut Vec<String>,
) -> Result<Conversion, ParseError> {
    let up = options.up.unwrap_or(Axis::Y);
    if let Some(scale) = options.cm_per_unit {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(ParseError::new("options", format!("a scale of {scale}")));
        }
        return Ok(Conversion { scale, up, reason: "given by the caller".into() });
    }
    // Parents come before their children in the file.
    let mut points: Vec<Vec3> = Vec::with_capacity(joints.names.len());
    for joint in 0..joints.names.len() {
        let offset = joints.offsets[joint].as_vec3();
        points.push(joints.parents[joint].map_or(Vec3::ZERO, |parent| points[parent] + offset));
    }
    points.extend(
        joints.end_sites.iter().map(|(joint, offset)| points[*joint] + offset.as_vec3()).collect::<Vec<_>>(),
    );
    let (conversion, warning) = units::estimate(&points, up);
    warnings.extend(warning);
    Ok(conversion)
}

fn motion(
    lines: &mut Lines<'_>,
    joints: &Joints,
    conversion: &Conversion,
    file_size: usize,
) -> Result<JointClip, ParseError> {
    let (line, words) = lines.expect("'Frames:'")?;
    let count = match words.as_slice() {
        [key, count] if key.eq_ignore_ascii_case("Frames:") => count.parse::<usize>().ok(),
        _ => return Err(at(line, "'Frames: N' expected")),
    };
    let count =
        count.filter(|count| *count > 0).ok_or_else(|| at(line, "the number of frames must be 1 or more"))?;
    let (line, words) = lines.expect("'Frame Time:'")?;
    let time = match words.as_slice() {
        [frame, key, time] if frame.eq_ignore_ascii_case("Frame") && key.eq_ignore_ascii_case("Time:") => {
            number(time, line)?
        }
        _ => return Err(at(line, "'Frame Time: seconds' expected")),
    };
    let rate = rate(time).ok_or_else(|| at(line, format!("a frame time of {time} s")))?;

    let width: usize = joints.channels.iter().map(Vec::len).sum();
    if width == 0 {
        return Err(at(line, "no joint has a channel"));
    }
    // A frame costs memory for every joint, also for one without channels: those must not outweigh the text.
    const TRANSFORMS_PER_BYTE: usize = 4;
    if joints.names.len().saturating_mul(count) > file_size.saturating_mul(TRANSFORMS_PER_BYTE) {
        return Err(at(line, format!("{count} frames are announced, more than the file can hold")));
    }
    let turn = upright(conversion.up);
    let scale = f64::from(conversion.scale);
    let mut poses = Vec::with_capacity(count);
    let mut values = Vec::with_capacity(width);
    while let Some((line, words)) = lines.next() {
        if poses.len() == count {
            return Err(at(line, format!("more frames than the {count} announced")));
        }
        if words.len() != width {
            return Err(at(line, format!("{width} numbers expected, {} found", words.len())));
        }
        values.clear();
        for word in &words {
            values.push(number(word, line)?);
        }
        let mut rest = values.as_mut_slice();
        let mut pose = Vec::with_capacity(joints.names.len());
        for (joint, channels) in joints.channels.iter().enumerate() {
            let (own, others) = rest.split_at_mut(channels.len());
            rest = others;
            for (channel, value) in channels.iter().zip(own.iter_mut()) {
                if matches!(channel, BvhChannel::Position(_)) {
                    *value *= scale;
                }
            }
            let mut transform = transform(joints.offsets[joint].as_vec3() * conversion.scale, channels, own);
            if !transform.is_finite() {
                return Err(at(line, format!("joint '{}' is too far away", shorten(&joints.names[joint]))));
            }
            if joints.parents[joint].is_none() {
                transform = turned(transform, turn);
            }
            pose.push(transform);
        }
        poses.push(JointPose(pose));
    }
    if poses.len() < count {
        return Err(at(lines.last, format!("{count} frames are announced, {} found", poses.len())));
    }
    Ok(JointClip { name: String::new(), rate, poses, shape_weights: Vec::new() })
}

/// Frames a second. Files round the frame time (`.0083333`): a rate within 1e-4 of a whole number is one.
fn rate(time: f64) -> Option<f32> {
    let rate = 1.0 / time;
    let whole = rate.round();
    let rate = if whole > 0.0 && (rate - whole).abs() < 1e-4 * whole { whole } else { rate };
    let rate = rate as f32;
    (time > 0.0 && rate.is_finite() && rate > 0.0).then_some(rate)
}
