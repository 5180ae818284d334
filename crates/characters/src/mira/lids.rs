//! The eyelids turn about the eyeball: blink, wide, squint and finer controls, all on arcs. The upper and
//! the lower edge meet on one line, so that a full blink leaves no gap.

use super::anatomy::Anatomy;
use super::cage::Patch;
use super::hair::{LASH_STATIONS, lash_place};
use super::rigging::{EYES, HEAD};
use super::sculpt::{EYE_CENTRE, EYE_RADIUS};
use understudy_core::{ControlSpecs, Vec3};
use understudy_rigs::RigError;
use understudy_rigs::deformers::{Driver, Eye, EyelidSlide, Lid, RigSize, elevation_degrees, smooth_step};

/// A vertex that turns with a lid.
struct LidVertex {
    vertex: u32,
    /// Around the opening, 0 inner corner, 6 outer; up to 6 upper, above lower.
    along: f32,
    /// Share of the edge's turn that it takes.
    share: f32,
    /// Degrees that the edge at this place turns to reach the closing line.
    closing: f32,
}

/// Share of the edge's turn a loop takes: nothing outside the socket, all of it at the edge.
fn share(across: f32, upper: bool) -> f32 {
    let outside = if upper { 0.16 } else { 0.2 };
    match across {
        a if a < 2.0 => outside * smooth_step(0.6, 2.0, a),
        a if a < 4.0 => outside + (1.0 - outside) * smooth_step(1.4, 4.0, a),
        a if a < 5.0 => 1.0,
        a => 1.0 - 0.25 * (a - 5.0),
    }
}

/// Elevation at which the lids meet, for a place `x` across the eye.
fn closing_line(x: f32, inner: Vec3, outer: Vec3) -> f32 {
    let level = |p: Vec3| elevation_degrees(p, EYE_CENTRE, Vec3::X, Vec3::Z);
    let t = ((x - inner.x) / (outer.x - inner.x)).clamp(0.0, 1.0);
    level(inner) + (level(outer) - level(inner)) * t - 15.0 * (std::f32::consts::PI * t).sin()
}

/// Lid vertices of one side, lashes included. Angles are those of her left eye; the right mirrors them.
fn lid_vertices(anatomy: &Anatomy, side: f32) -> Vec<LidVertex> {
    let positions = anatomy.model.mesh.positions();
    let to_left = Vec3::new(side, 1.0, 1.0);
    let edge: Vec<(f32, Vec3)> = anatomy
        .select(Patch::Eye, side, |_, across| across == 5.0)
        .into_iter()
        .map(|v| (anatomy.model.places[v as usize].along, positions[v as usize] * to_left))
        .collect();
    let find = |along: f32| {
        let wrapped = along.rem_euclid(12.0);
        let nearest = edge.iter().min_by(|a, b| {
            let distance = |e: &(f32, Vec3)| (e.0.rem_euclid(12.0) - wrapped).abs();
            distance(a).total_cmp(&distance(b))
        });
        nearest.map_or(Vec3::ZERO, |e| e.1)
    };
    let (inner, outer) = (find(0.0), find(6.0));
    let closing = |along: f32| {
        let p = find(along);
        elevation_degrees(p, EYE_CENTRE, Vec3::X, Vec3::Z) - closing_line(p.x, inner, outer)
    };
    let mut out = Vec::new();
    for vertex in anatomy.select(Patch::Eye, side, |_, across| across > 0.5) {
        let place = anatomy.model.places[vertex as usize];
        let along = place.along.rem_euclid(12.0);
        let share = share(place.across, along <= 6.0);
        out.push(LidVertex { vertex, along, share, closing: closing(along) });
    }
    let name = if side > 0.0 { "lashes_L" } else { "lashes_R" };
    for (index, vertex) in anatomy.model.segment(name).into_iter().enumerate() {
        // Vertices were made station by station, three rows each.
        let along = lash_place((index / 3).min(LASH_STATIONS));
        out.push(LidVertex { vertex, along, share: 1.0, closing: closing((along * 4.0).round() / 4.0) });
    }
    out
}

/// The eyelid layer; runs after skinning.
pub(super) fn layer(
    anatomy: &Anatomy,
    specs: &ControlSpecs,
    size: &RigSize,
) -> Result<EyelidSlide, RigError> {
    let positions = anatomy.model.mesh.positions();
    let mut eyes = Vec::new();
    for (place, side) in [1.0f32, -1.0].into_iter().enumerate() {
        let suffix = ["L", "R"][place];
        let centre = EYE_CENTRE * Vec3::new(side, 1.0, 1.0);
        let vertices = lid_vertices(anatomy, side);
        let driver = |name: &str| {
            let name = format!("{name}_{suffix}");
            let missing = RigError::Unknown { part: "the eyelids of Mira".into(), name: name.clone() };
            specs.find(&name).map(Driver::control).ok_or(missing)
        };
        // Each control: what share of the way to the closing line upper and lower lid go, and where.
        let inner = |along: f32| bump(along, 1.6);
        let outer = |along: f32| bump(along, 4.5);
        let all = |_: f32| 1.0;
        type Place = fn(f32) -> f32;
        let rows: [(&str, f32, f32, Place); 10] = [
            ("eyeBlink", 1.0, 1.0, all),
            ("eyeWide", -0.22, -0.12, all),
            ("eyeSquint", 0.24, 0.62, all),
            ("lidUpperUp", -0.24, 0.0, all),
            ("lidUpperDown", 0.42, 0.0, all),
            ("lidLowerUp", 0.0, 0.7, all),
            ("lidLowerDown", 0.0, -0.35, all),
            ("lidUpperInner", -0.25, 0.0, inner),
            ("lidUpperOuter", -0.25, 0.0, outer),
            ("lidLowerInner", 0.0, -0.35, inner),
        ];
        let mut lids = Vec::new();
        let more: [(&str, f32, f32, Place); 2] =
            [("lidLowerOuter", 0.0, -0.35, outer), ("cheekSquint", 0.0, 0.4, all)];
        for (name, upper, lower, local) in rows.into_iter().chain(more) {
            let turn = |v: &LidVertex| {
                let (upper_lid, s) = (v.along <= 6.0, if v.along <= 6.0 { v.along } else { 12.0 - v.along });
                let way = if upper_lid { upper } else { lower };
                (v.vertex, v.closing * v.share * way * local(s))
            };
            let turn = vertices.iter().map(turn).filter(|t| t.1 != 0.0).collect();
            lids.push(Lid { driver: driver(name)?, turn });
        }
        let follow = |upper: f32, lower: f32| {
            let corner = |v: &LidVertex| (std::f32::consts::PI * v.along / 6.0).sin().abs().sqrt();
            let weight = |v: &LidVertex| v.share * corner(v) * if v.along <= 6.0 { upper } else { lower };
            vertices.iter().map(|v| (v.vertex, weight(v))).collect::<Vec<_>>()
        };
        let contact = vertices.iter().map(|v| {
            let height = (positions[v.vertex as usize] - centre).length() - EYE_RADIUS;
            (v.vertex, height.clamp(0.0, 0.14))
        });
        eyes.push(Eye {
            name: format!("eye_{suffix}"),
            eye_bone: Some(EYES[place]),
            head_bone: Some(HEAD),
            posed: true,
            centre,
            axis: Vec3::X,
            up: Vec3::Y,
            radius: EYE_RADIUS,
            contact: contact.collect(),
            softness: 0.05,
            follow_pitch: follow(0.5, 0.35),
            follow_yaw: follow(0.05, 0.05),
            lids,
        });
    }
    EyelidSlide::new(eyes, positions, size)
}

/// 1 at `centre` of the lid, falling to 0 over 2.6 places.
fn bump(along: f32, centre: f32) -> f32 {
    smooth_step(2.6, 0.0, (along - centre).abs())
}
