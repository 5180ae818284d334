//! Trousers and boots: the pelvis hangs from the coat's lining, the leg has nine columns (the edge
//! between the last and the first runs through the crotch), the boot bends forward into the foot.

use super::plan;
use super::sculpt::{Row, Sculpt, UvBox};
use understudy_core::Vec3;

const PELVIS_UV: UvBox = UvBox(0.405, 0.80, 0.495, 0.90);
const LEG_UV: UvBox = UvBox(0.265, 0.53, 0.395, 0.90);
const FOOT_UV: UvBox = UvBox(0.405, 0.53, 0.495, 0.79);

/// The pelvis under the lining.
const PELVIS: [[f32; 3]; 9] = [
    [0.0, 95.5, 10.2],
    [5.6, 95.5, 10.2],
    [10.6, 95.6, 8.2],
    [14.2, 95.8, 4.6],
    [15.6, 96.0, 0.0],
    [14.6, 95.6, -5.0],
    [11.0, 95.2, -9.4],
    [5.8, 95.0, -11.4],
    [0.0, 95.0, -10.6],
];

/// Top of the leg; the first and the last vertex lie on the middle plane.
const CROTCH: [[f32; 3]; 9] = [
    [0.0, 87.0, 4.6],
    [4.8, 87.6, 9.4],
    [10.6, 88.4, 10.2],
    [15.4, 89.2, 6.6],
    [17.6, 89.8, 0.4],
    [16.2, 89.0, -6.2],
    [11.0, 88.0, -10.2],
    [5.0, 87.0, -9.8],
    [0.0, 86.2, -4.8],
];

/// Height, centre x and z, radius sideways and forward, segment of the band that ends here.
const LEG: [(f32, f32, f32, f32, f32, &str); 10] = [
    (74.0, 10.6, 0.3, 8.0, 8.9, "trousers"),
    (59.5, 10.9, 0.7, 6.7, 7.3, "trousers"),
    (53.0, 11.0, 1.0, 6.5, 7.0, "trousers"),
    (46.5, 11.1, 0.2, 6.4, 6.7, "trousers"),
    (42.5, 11.2, 0.0, 6.2, 6.5, "trousers"),
    (46.6, 11.2, 0.0, 9.6, 9.8, "boot_cuff"),
    (36.6, 11.4, -0.4, 8.2, 8.6, "boot_cuff"),
    (36.0, 11.4, -0.5, 6.7, 7.3, "boot"),
    (22.0, 11.7, -1.4, 5.9, 6.7, "boot"),
    (11.5, 11.9, -1.9, 5.5, 6.4, "boot"),
];

fn leg_weights(sculpt: &Sculpt<'_>, ring: usize) -> Row {
    let named = |weights: &[(&str, f32)]| sculpt.row(weights);
    match ring {
        0 => named(&[("hip_helper_l", 0.1), ("thigh_twist_1_l", 0.45), ("thigh_twist_2_l", 0.45)]),
        1 => named(&[("thigh_twist_2_l", 0.25), ("thigh_l", 0.65), ("knee_helper_l", 0.1)]),
        2 => named(&[("thigh_l", 0.22), ("knee_helper_l", 0.56), ("calf_l", 0.22)]),
        3 => named(&[("knee_helper_l", 0.1), ("calf_l", 0.9)]),
        4 | 5 => named(&[("calf_l", 0.9), ("calf_twist_1_l", 0.1)]),
        6 | 7 => named(&[("calf_l", 0.4), ("calf_twist_1_l", 0.6)]),
        8 => named(&[("calf_twist_1_l", 0.4), ("calf_twist_2_l", 0.6)]),
        _ => named(&[("calf_twist_2_l", 0.3), ("ankle_helper_l", 0.5), ("foot_l", 0.2)]),
    }
}

/// Adds pelvis, leg and boot below the coat's lining.
pub fn build(sculpt: &mut Sculpt<'_>, waist: &[u32]) {
    let hips = sculpt.row(&[("hips", 0.9), ("hip_helper_l", 0.1)]);
    let pelvis: Vec<u32> = PELVIS.map(|point| sculpt.vertex(point.into(), hips.clone())).to_vec();
    let mut crotch = Vec::new();
    for (column, point) in CROTCH.into_iter().enumerate() {
        let row = if column == 0 || column == 8 {
            sculpt.row(&[("hips", 0.85), ("hip_helper_l", 0.15)])
        } else {
            sculpt.row(&[("hips", 0.3), ("hip_helper_l", 0.45), ("thigh_twist_1_l", 0.25)])
        };
        crotch.push(sculpt.vertex(point.into(), row));
    }
    sculpt.band(waist, &pelvis, false, "trousers", PELVIS_UV, (1.0, 0.5));
    sculpt.band(&pelvis, &crotch, false, "trousers", PELVIS_UV, (0.5, 0.0));
    let mut last = crotch;
    for (index, (y, x, z, wide, deep, segment)) in LEG.into_iter().enumerate() {
        let mut ring = Vec::new();
        for column in 0..9 {
            let (sin, cos) = column_angle(column).sin_cos();
            let mut point = Vec3::new(x + wide * sin, y, z + deep * cos);
            if index == 5 {
                // The cuff of the boot dips behind the knee.
                point.y += 2.2 * cos;
            }
            let weights = leg_weights(sculpt, index);
            ring.push(sculpt.vertex(point, weights));
        }
        let rows = (1.0 - index as f32 / 10.0, 1.0 - (index + 1) as f32 / 10.0);
        sculpt.band(&last, &ring, true, segment, LEG_UV, rows);
        last = ring;
    }
    foot(sculpt, &last);
}

/// Columns start inside the front and go outward around the leg.
fn column_angle(column: usize) -> f32 {
    (90.0 + (column as f32 - 4.0) * 40.0).to_radians()
}

/// A ring of the foot: centre height and depth, tilt of its plane (0 as the leg, 90 upright), half
/// width, reach to the top, reach to the sole.
const FOOT: [(f32, f32, f32, f32, f32, f32); 4] = [
    (7.2, 0.6, 40.0, 5.9, 7.4, 10.8),
    (5.6, 7.2, 78.0, 5.9, 5.6, 6.0),
    (4.0, 14.0, 90.0, 6.6, 4.2, 4.3),
    (3.2, 21.0, 90.0, 5.7, 3.2, 3.4),
];

fn foot(sculpt: &mut Sculpt<'_>, ankle: &[u32]) {
    let mut last = ankle.to_vec();
    for (index, (y, z, tilt, wide, top, sole)) in FOOT.into_iter().enumerate() {
        let row = match index {
            0 => sculpt.row(&[("ankle_helper_l", 0.2), ("foot_l", 0.8)]),
            1 => sculpt.row(&[("foot_l", 1.0)]),
            2 => sculpt.row(&[("foot_l", 0.5), ("toe_l", 0.5)]),
            _ => sculpt.row(&[("toe_l", 1.0)]),
        };
        let tilt = tilt.to_radians();
        let forward = Vec3::new(0.0, tilt.sin(), tilt.cos());
        let mut ring = Vec::new();
        for column in 0..9 {
            let (sin, cos) = column_angle(column).sin_cos();
            let square = |value: f32| value.abs().powf(0.8).copysign(value);
            let reach = if cos > 0.0 { top } else { sole };
            let x = plan::ANKLE.x + 0.05 * z + wide * square(sin);
            let mut point = Vec3::new(x, y, z) + forward * (reach * square(cos));
            point.y = point.y.max(-0.35);
            ring.push(sculpt.vertex(point, row.clone()));
        }
        let rows = (1.0 - index as f32 * 0.22, 1.0 - (index + 1) as f32 * 0.22);
        sculpt.band(&last, &ring, true, "boot", FOOT_UV, rows);
        last = ring;
    }
    let row = sculpt.row(&[("toe_l", 1.0)]);
    let tip = sculpt.vertex(Vec3::new(plan::ANKLE.x + 1.2, 2.8, 25.5), row);
    sculpt.fan(&last, tip, true, "boot", FOOT_UV, (0.12, 0.0));
}
