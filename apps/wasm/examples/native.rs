//! The native side of comparisons with browsers: `native TWIN FILE` poses a twin at random, writes poses and vertices to
//! FILE, and then times a round of them for every line that it reads: ms per pose of the best run. `native --checksum TWIN TAKE.csv`
//! prints what `apps/c/examples/play.c` must print, too. `native --made FOLDER` writes what
//! tests play: twins of film size with weights that mean nothing, and damaged files whose checksum is right.
//! `apps/wasm/js/bench` and `apps/wasm/js/test` start it.

// A program that talks to another one by its output.
#![allow(clippy::print_stdout)]

#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../../crates/runtime/tests/common/twins.rs"]
mod twins;

use std::error::Error;
use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use understudy_core::{Quat, Random};
use understudy_runtime::face::MapShape;
use understudy_runtime::ik::{
    Bend, ControlPoint, Correction, LimbBones, PlacedBones, PointDrag, PointIk, PointIkParts, Reach,
    RegionParts, Wanted,
};
use understudy_runtime::{Affine3A, DenseParts, Player, Pose, Precision, Twin, Vec3, with_right_checksum};

/// Poses that are compared and timed.
const POSES: usize = 12;
/// A round lasts about so long, seconds.
const ROUND: f64 = 0.15;
/// A run lasts about so long, ms: short between two interruptions by other programs.
const RUN: f64 = 2.0;
/// Damaged files of each kind.
const DAMAGED: usize = 400;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [made, folder] if made == "--made" => make(Path::new(folder)),
        [word, twin, take] if word == "--checksum" => {
            println!("{:016x}", checksum(&Twin::parse(&fs::read(twin)?)?, &fs::read_to_string(take)?)?);
            Ok(())
        }
        [twin, file] => compare(&Twin::parse(&fs::read(twin)?)?, Path::new(file)),
        _ => Err("native TWIN FILE, native --made FOLDER, or native --checksum TWIN TAKE.csv".into()),
    }
}

/// FNV-1a over the vertices of every frame of a take that names all controls of a twin.
fn checksum(twin: &Twin, take: &str) -> Result<u64, Box<dyn Error>> {
    let specs = twin.posing_controls().ok_or("this twin is posed by bones")?;
    let mut rows = take.lines();
    let names = rows.next().ok_or("a take without names")?.split(',');
    let places: Vec<usize> = names.map(|name| specs.find(name).ok_or(name)).collect::<Result<_, _>>()?;
    let mut controls: Vec<f32> = specs.iter().map(|spec| spec.default).collect();
    let (mut player, mut out) = (twin.player(1), vec![Vec3::ZERO; twin.vertex_count()]);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for row in rows {
        for (place, value) in places.iter().zip(row.split(',')) {
            controls[*place] = value.parse()?;
        }
        player.pose(Pose::Controls(&controls), &mut out)?;
        for byte in out.iter().flat_map(|place| place.to_array()).flat_map(f32::to_le_bytes) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(hash)
}

fn make(folder: &Path) -> Result<(), Box<dyn Error>> {
    for (name, twin) in
        [("body", twins::body()), ("face", twins::face()), ("diff", twins::diff()), ("skin", twins::skin())]
    {
        fs::write(folder.join(format!("{name}.twin")), twin.to_bytes()?)?;
    }
    follows(folder)?;
    reaches(folder)?;
    // Small ones, so that many damages hit something: each with its length before it.
    let (body, diff, skin) = (
        twins::sized_body(3, 5, [13, 4, 2]),
        twins::sized_diff(3, 2, 11, [5, 4], 2),
        twins::sized_skin(6, 11, 3, 2),
    );
    let shape = MapShape {
        side: 2,
        channels: 2,
        hidden: 3,
        doublings: 1,
        untied: true,
        shared_features: 2,
        outputs: 3,
    };
    let face = twins::sized_face(6, [7, 2], [4, 1], shape, 5);
    let mut out = Vec::new();
    for (kind, twin) in [body, face, diff, skin].iter().enumerate() {
        let bytes = twin.to_bytes()?;
        for mutation in 0..DAMAGED {
            let mut random = Random::stream(mutation as u64, kind as u64);
            let mutant = with_right_checksum(&mutate::mutate(&bytes, &bytes, &mut random));
            out.extend((mutant.len() as u32).to_le_bytes());
            out.extend(mutant);
        }
    }
    Ok(fs::write(folder.join("damaged.bin"), out)?)
}

/// A skin that follows points, and what a drag of it gives here: from a pose, two points moved, one pinned.
fn follows(folder: &Path) -> Result<(), Box<dyn Error>> {
    let twin = twins::skin();
    let (controls, mut random) = (&twin.header().inputs.controls, Random::new(5));
    let count = controls.len() as u32;
    let mut layer = |rows: usize, columns: usize| DenseParts {
        weights: (0..rows * columns).map(|_| random.uniform(-0.1, 0.1)).collect(),
        bias: vec![0.0; rows],
    };
    let mut region = |name: &str, points: Vec<u32>, controls: Vec<u32>| RegionParts {
        layers: vec![layer(16, 3 * points.len()), layer(controls.len(), 16)],
        name: name.into(),
        points,
        controls,
    };
    let regions = vec![
        region("eye", vec![0, 1], (0..count / 2).collect()),
        region("mouth", vec![2, 3, 4], (count / 3..count).collect()),
    ];
    let vertices = [3, 900, 1700, 2500, 3300];
    let neutral: Vec<f32> = controls.iter().map(|spec| spec.default).collect();
    let mut places = vec![Vec3::ZERO; twin.vertex_count()];
    twin.player(1).pose(Pose::Controls(&neutral), &mut places)?;
    let parts = PointIkParts {
        topology_hash: twin.header().topology_hash,
        dimensions: 3,
        points: vertices.map(|vertex| ControlPoint { name: format!("p{vertex}"), vertex }).to_vec(),
        rest: vertices.map(|vertex| places[vertex as usize]).to_vec(),
        regions,
        training: serde_json::Value::Null,
    };
    let ik = Arc::new(PointIk::new(parts, Precision::Half, &twin)?);
    fs::write(folder.join("follows.twin"), ik.file_with(&twin)?)?;
    let mut solver = ik.solver();
    let start: Vec<f32> = controls.iter().map(|spec| spec.default + 0.05 * (spec.high - spec.low)).collect();
    let mut drag = PointDrag::begin(&mut solver, &start)?;
    let sight = Vec3::new(0.0, 0.6, -0.8);
    let moved =
        |point: usize, by: Vec3, sight: Vec3| Wanted { point, place: drag.places().0[point] + by, sight };
    let wanted = [moved(0, Vec3::new(0.2, 0.1, 0.0), Vec3::ZERO), moved(3, Vec3::new(-0.1, 0.2, 0.1), sight)];
    let mut out = vec![0.0; controls.len()];
    drag.to(&mut solver, &wanted, &[2], &Correction::default(), &mut out)?;
    let mut points = vec![Vec3::ZERO; ik.points().len()];
    solver.points(&out, &mut points)?;
    let told = serde_json::json!({
        "start": start,
        "move": wanted.map(|w| (w.point, w.place.to_array(), w.sight.to_array())),
        "pinned": [2],
        "controls": out,
        "points": points.iter().map(|point| point.to_array()).collect::<Vec<_>>(),
    });
    Ok(fs::write(folder.join("follows.json"), told.to_string())?)
}

/// Bones of the film-size body that are called as limbs are.
const SPELLING: [(&str, [usize; 3]); 2] = [("hand_L", [2, 9, 17]), ("foot_R", [20, 27, 33])];

/// What hands and feet of a body do here: goals, how they were reached, and all bones after each.
fn reaches(folder: &Path) -> Result<(), Box<dyn Error>> {
    let twin = twins::body();
    let header = &twin.header().inputs.bones;
    let parents: Vec<Option<usize>> = header.iter().map(|bone| bone.parent).collect();
    // Its bones all rest at one place: a chain that winds stands for them.
    let turned = |bone: usize| {
        let angle = bone as f32;
        let place = Vec3::new(3.0 * angle, 8.0 * angle.sin(), 8.0 * (0.7 * angle).cos());
        Affine3A::from_rotation_translation(Quat::from_rotation_y(0.1 * angle), place)
    };
    let start: Vec<Affine3A> = (0..header.len()).map(turned).collect();
    let mut placed = PlacedBones::new(&parents, start.clone());
    let (mut goals, mut random) = (Vec::new(), Random::new(11));
    for goal in 0..24 {
        let (name, bones) = SPELLING[goal % SPELLING.len()];
        let [start, middle, end] = bones.map(|bone| Vec3::from(placed.world[bone].translation));
        let length = start.distance(middle) + middle.distance(end);
        let mut direction =
            || Vec3::from_array([0; 3].map(|_| random.uniform(-1.0, 1.0))).normalize_or(Vec3::X);
        let (toward, pole) = (direction(), direction());
        let (target, soft) = (start + toward * length * (0.3 + 0.04 * goal as f32), 0.05 * (goal % 3) as f32);
        let limb = LimbBones { name: name.into(), bones };
        let pose = placed.reach(&limb, target, Bend::Pole(pole), soft, goal % 2 == 0)?;
        let places: Vec<[f32; 3]> = placed.world.iter().map(|bone| bone.translation.into()).collect();
        goals.push(serde_json::json!({
            "handle": name,
            "target": target.to_array(),
            "pole": pole.to_array(),
            "soft": soft,
            "keep": goal % 2 == 0,
            "reach": match pose.reach {
                Reach::Exact => "exact",
                Reach::Soft => "soft",
                Reach::TooFar => "too far",
                Reach::TooNear => "too near",
            },
            "places": places,
        }));
    }
    let spelling: serde_json::Map<String, serde_json::Value> = SPELLING
        .iter()
        .map(|(name, bones)| (name.to_string(), bones.map(|bone| header[bone].name.clone()).to_vec().into()))
        .collect();
    let start: Vec<[f32; 16]> = start.iter().map(matrix).collect();
    let told = serde_json::json!({ "spelling": spelling, "start": start, "goals": goals });
    Ok(fs::write(folder.join("reaches.json"), told.to_string())?)
}

/// Random poses of a twin, one after another in every array.
struct Poses {
    bones: Vec<Affine3A>,
    controls: Vec<f32>,
}

impl Poses {
    /// Controls in their ranges, half of them at rest; bones turned against their parents.
    fn new(twin: &Twin) -> Self {
        let (inputs, rest, mut random) = (&twin.header().inputs, twin.rest_bones(), Random::new(7));
        let (mut bones, mut controls) = (Vec::new(), Vec::new());
        for _ in 0..POSES {
            for spec in (0..inputs.controls.len()).map(|control| inputs.controls.get(control)) {
                let (low, high) = (spec.low.max(-1e3), spec.high.min(1e3));
                controls.push(if random.unit() < 0.5 { spec.default } else { random.uniform(low, high) });
            }
            let turns: Vec<Quat> = inputs
                .bones
                .iter()
                .map(|_| Quat::from_scaled_axis(Vec3::from_array([0; 3].map(|_| random.uniform(-0.2, 0.2)))))
                .collect();
            let turned = |bone: usize| -> Affine3A {
                // Up the tree: parents may stand behind their children.
                let mut out = Affine3A::from_quat(turns[bone]);
                let mut at = bone;
                while let Some(parent) = inputs.bones[at].parent {
                    let local = rest[parent].inverse() * rest[at];
                    out = Affine3A::from_quat(turns[parent]) * local * out;
                    at = parent;
                }
                rest[at] * out
            };
            bones.extend((0..inputs.bones.len()).map(turned));
        }
        Self { bones, controls }
    }

    fn play(&self, player: &mut Player, pose: usize, out: &mut [Vec3]) -> Result<(), Box<dyn Error>> {
        let (joints, width) = (self.bones.len() / POSES, self.controls.len() / POSES);
        let controls = &self.controls[pose * width..(pose + 1) * width];
        let bones = &self.bones[pose * joints..(pose + 1) * joints];
        let pose =
            if joints > 0 { Pose::Bones { bones, extras: controls } } else { Pose::Controls(controls) };
        Ok(player.pose(pose, out)?)
    }
}

/// Four by four, by columns.
fn matrix(bone: &Affine3A) -> [f32; 16] {
    let c = bone.to_cols_array();
    [c[0], c[1], c[2], 0.0, c[3], c[4], c[5], 0.0, c[6], c[7], c[8], 0.0, c[9], c[10], c[11], 1.0]
}

fn compare(twin: &Twin, file: &Path) -> Result<(), Box<dyn Error>> {
    let poses = Poses::new(twin);
    let mut player = twin.player(1);
    let mut out = vec![Vec3::ZERO; twin.vertex_count()];
    let joints = poses.bones.len() / POSES;
    let sizes = [POSES, poses.controls.len() / POSES, joints, out.len()];
    let mut bytes: Vec<u8> = sizes.iter().flat_map(|size| (*size as u32).to_le_bytes()).collect();
    let mut put = |numbers: &[f32]| bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    put(&poses.controls);
    for bone in &poses.bones {
        put(&matrix(bone));
    }
    for pose in 0..POSES {
        poses.play(&mut player, pose, &mut out)?;
        out.iter().for_each(|place| put(&place.to_array()));
    }
    fs::write(file, bytes)?;
    println!("ready");
    std::io::stdout().flush()?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let (start, mut best, mut pose, mut count) = (Instant::now(), f64::INFINITY, 0, 1);
        while start.elapsed().as_secs_f64() < ROUND {
            let run = Instant::now();
            for _ in 0..count {
                poses.play(&mut player, pose % POSES, &mut out)?;
                pose += 1;
            }
            match run.elapsed().as_secs_f64() * 1e3 {
                short if short < RUN => count *= 2,
                took => best = best.min(took / count as f64),
            }
        }
        println!("{best}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
