//! The points that trackers of faces know, on Mira: 54 of the 68 of Multi-PIE (Gross et al. 2010), the contour of the jaw
//! left out but for three. Lids and lips are found in the topology, the rest on the form.

use super::anatomy::Anatomy;
use super::cage::Patch;
use super::model::Model;
use super::shapes::on_face;
use understudy_rigs::RigError;

/// Around an eye: place along its edge, 0 inner corner, 6 outer, upper lid between.
const EYE: [(&str, f32); 6] = [
    ("inner", 0.0),
    ("upper_inner", 2.0),
    ("upper_outer", 4.0),
    ("outer", 6.0),
    ("lower_outer", 8.0),
    ("lower_inner", 10.0),
];

/// Around half the mouth: name, place along it (0 middle below, 4 corner, 8 middle above), loop (2 the vermilion border,
/// 4 the line of contact). Those without a side stand in the middle.
const MOUTH: [(&str, f32, f32, bool); 12] = [
    ("mouth_corner", 4.0, 2.0, true),
    ("lip_upper_2", 5.5, 2.0, true),
    ("lip_upper_1", 7.0, 2.0, true),
    ("lip_upper", 8.0, 2.0, false),
    ("lip_lower_1", 1.25, 2.0, true),
    ("lip_lower_2", 2.5, 2.0, true),
    ("lip_lower", 0.0, 2.0, false),
    ("mouth_inner", 4.0, 4.0, true),
    ("lip_upper_inner_1", 6.5, 4.0, true),
    ("lip_upper_inner", 8.0, 4.0, false),
    ("lip_lower_inner_1", 1.5, 4.0, true),
    ("lip_lower_inner", 0.0, 4.0, false),
];

/// Along a brow, inner end first, as [`FACE`].
const BROW: [(f32, f32); 5] = [(1.3, 2.5), (2.2, 2.75), (3.2, 3.0), (4.1, 3.05), (4.9, 2.8)];

/// On the form, seen from the front: x to her left, y up, cm.
const FACE: [(&str, f32, f32, bool); 8] = [
    ("nose_bridge_1", 0.0, 0.7, false),
    ("nose_bridge_2", 0.0, -0.5, false),
    ("nose_bridge_3", 0.0, -1.7, false),
    ("nose_tip", 0.0, -2.75, false),
    ("nose_base", 0.0, -3.55, false),
    ("nose_base_1", 0.55, -3.45, true),
    ("nose_base_2", 1.1, -3.2, true),
    ("jaw", 2.3, -8.0, true),
];

/// Names and vertices, in the regions `brow_L`, `eye_L`, `nose`, `mouth` and those of the other side.
pub fn landmarks() -> Result<Vec<(String, &'static str, u32)>, RigError> {
    let model = Model::new()?;
    let anatomy = Anatomy::new(&model);
    let mut out = Vec::new();
    let sides = [("L", 1.0f32), ("R", -1.0)];
    for (side, sign) in sides {
        for (place, (x, y)) in BROW.into_iter().enumerate() {
            let region = if sign > 0.0 { "brow_L" } else { "brow_R" };
            out.push((format!("brow_{side}_{}", place + 1), region, anatomy.landmark(on_face(sign * x, y))));
        }
        for (name, along) in EYE {
            let region = if sign > 0.0 { "eye_L" } else { "eye_R" };
            let found =
                anatomy.select(Patch::Eye, sign, |at, across| at.rem_euclid(12.0) == along && across == 4.0);
            out.extend(found.first().map(|vertex| (format!("eye_{side}_{name}"), region, *vertex)));
        }
        for (name, along, across, sided) in MOUTH {
            if !sided && sign < 0.0 {
                continue;
            }
            let found = anatomy
                .select(Patch::Mouth, sign, |a, b| (a - along).abs() < 1e-3 && (b - across).abs() < 1e-3);
            let name = if sided { format!("{name}_{side}") } else { name.into() };
            out.extend(found.first().map(|vertex| (name, "mouth", *vertex)));
        }
        for (name, x, y, sided) in FACE {
            if !sided && sign < 0.0 {
                continue;
            }
            let region = if name.starts_with("nose") { "nose" } else { "mouth" };
            let name = if sided { format!("{name}_{side}") } else { name.into() };
            out.push((name, region, anatomy.landmark(on_face(sign * x, y))));
        }
    }
    out.push(("chin".into(), "mouth", anatomy.landmark(on_face(0.0, -8.0))));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Vec3;

    #[test]
    fn there_are_54_on_different_vertices_and_in_mirrored_places() {
        let points = landmarks().expect("a model");
        let model = Model::new().expect("a model");
        assert_eq!(points.len(), 54);
        let mut vertices: Vec<u32> = points.iter().map(|(_, _, vertex)| *vertex).collect();
        vertices.sort_unstable();
        vertices.dedup();
        assert_eq!(vertices.len(), 54);
        let place = |name: &str| {
            let (_, _, vertex) = points.iter().find(|(other, ..)| other == name).expect("a point");
            model.mesh.positions()[*vertex as usize]
        };
        for (name, ..) in points.iter().filter(|(name, ..)| name.contains("_L")) {
            let (left, right) = (place(name), place(&name.replace("_L", "_R")));
            assert!(left.distance(right * Vec3::new(-1.0, 1.0, 1.0)) < 0.3, "{name}: {left} {right}");
            assert!(left.x > 0.0, "{name}");
        }
        assert!(place("lip_upper").y > place("lip_lower").y && place("chin").y < place("lip_lower").y);
        assert!(place("eye_L_upper_outer").y > place("eye_L_lower_outer").y);
        assert!(place("eye_L_outer").x > place("eye_L_inner").x);
        assert!(place("nose_tip").z > place("nose_base").z);
    }
}
