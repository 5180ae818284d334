//! Folds that come and go with the joints: inside the elbow, behind the knee, over the belt and under
//! the arm.

use super::plan;
use understudy_core::{ControlSpecs, Mesh, Vec3};
use understudy_rigs::deformers::{Activation, Driver, Response, Wrinkle, WrinkleGroup};

/// An arc around `axis` from `from` to `to` degrees; 0 is `start`.
fn arc(centre: Vec3, axis: Vec3, start: Vec3, radius: f32, from: f32, to: f32) -> Vec<Vec3> {
    let start = (start - axis * axis.dot(start)).normalize();
    let side = axis.cross(start);
    let point = |step: usize| {
        let (sin, cos) = (from + (to - from) * step as f32 / 10.0).to_radians().sin_cos();
        centre + (start * cos + side * sin) * radius
    };
    (0..=10).map(point).collect()
}

/// Vertices of the segments on one side, or on both for a `sign` of 0.
fn region(mesh: &Mesh, segments: &[&str], sign: f32) -> Vec<u32> {
    let names = &mesh.segments().names;
    let wanted = |vertex: &u32| {
        let vertex = *vertex as usize;
        let name = names[mesh.segments().of_vertex[vertex] as usize].as_str();
        segments.contains(&name) && (sign == 0.0 || mesh.positions()[vertex].x * sign > 0.0)
    };
    (0..mesh.vertex_count() as u32).filter(wanted).collect()
}

/// All groups of folds.
pub fn folds(mesh: &Mesh, specs: &ControlSpecs) -> Vec<WrinkleGroup> {
    let control = |name: &str| specs.find(name).expect("a control of Rook's own list");
    let driven = |terms: &[(&str, f32)], from: f32, to: f32| {
        let terms = terms.iter().map(|(name, gain)| (control(name), *gain)).collect();
        Activation::Driver(Driver::sum(terms).through(Response::Smooth { from, to }))
    };
    let mut groups = Vec::new();
    for (side, sign) in [("l", 1.0f32), ("r", -1.0)] {
        let mirror = Vec3::new(sign, 1.0, 1.0);
        let mirrored = |path: Vec<Vec3>| path.into_iter().map(|p| p * mirror).collect::<Vec<_>>();
        let upper = plan::upper_arm_direction();
        let crease = |along: f32, depth: f32| Wrinkle {
            path: mirrored(arc(plan::SHOULDER + upper * along, upper, Vec3::Z, 5.8, -85.0, 85.0)),
            width: 1.9,
            depth,
        };
        groups.push(WrinkleGroup {
            name: format!("elbow {side}"),
            wrinkles: vec![crease(20.5, 0.9), crease(25.0, 1.5), crease(29.5, 1.9), crease(34.0, 1.4)],
            activation: driven(&[(&format!("elbow_{side}.bend"), 1.0)], 10.0, 120.0),
            region: region(mesh, &["coat"], sign),
        });
        // The sleeve's head and the flank fold when the arm is lifted.
        let armpit = |along: f32, depth: f32| Wrinkle {
            path: mirrored(arc(plan::SHOULDER + upper * along, upper, Vec3::Y, 7.4, -70.0, 70.0)),
            width: 2.2,
            depth,
        };
        groups.push(WrinkleGroup {
            name: format!("shoulder {side}"),
            wrinkles: vec![armpit(7.0, 1.2), armpit(12.0, 1.4)],
            activation: driven(&[(&format!("shoulder_{side}.up"), 1.0)], 10.0, 95.0),
            region: region(mesh, &["coat"], sign),
        });
        let down = (plan::ANKLE - plan::KNEE).normalize();
        let hollow = |height: f32, depth: f32| Wrinkle {
            path: mirrored(arc(plan::KNEE - down * height, down, Vec3::NEG_Z, 6.6, -75.0, 75.0)),
            width: 1.9,
            depth,
        };
        groups.push(WrinkleGroup {
            name: format!("knee {side}"),
            wrinkles: vec![hollow(9.0, 1.0), hollow(4.5, 1.6), hollow(0.0, 1.8)],
            activation: driven(&[(&format!("knee_{side}.bend"), 1.0)], 15.0, 120.0),
            region: region(mesh, &["trousers"], sign),
        });
    }
    let belly = |y: f32, radius: f32, depth: f32| Wrinkle {
        path: arc(Vec3::new(0.0, y, 0.0), Vec3::Y, Vec3::Z, radius, -75.0, 75.0),
        width: 2.0,
        depth,
    };
    let bends = [("spine_1.bend", 1.0), ("spine_3.bend", 0.8), ("chest.bend", 0.4)];
    groups.push(WrinkleGroup {
        name: "waist".into(),
        wrinkles: vec![belly(114.0, 12.0, 1.2), belly(119.5, 13.0, 1.0)],
        activation: driven(&bends, 4.0, 42.0),
        region: region(mesh, &["coat"], 0.0),
    });
    groups
}
