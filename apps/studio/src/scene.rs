//! A rig as a page shows it: one packet with its mesh, the colours of its regions, how open every vertex is to the light,
//! its controls and the names of its clips.

use crate::packet::Packet;
use serde_json::json;
use understudy_core::ControlKind;
use understudy_report::raster::vertex_openness;
use understudy_rigs::{Rig, RigPose};

/// Clips that the light is baked in, beside the rest pose: what only an open mouth shows must not be black. Each costs a
/// good part of a second before a character is first seen.
const POSES: usize = 1;

/// Header and, in this order: positions `f32 [3V]`, triangles `u32 [3T]`, segments `u32 [V]`, sRGB colours `u8 [3V]`,
/// openness `u8 [V]`, each filled up to four bytes.
pub(crate) fn pack(name: &str, rig: &dyn Rig, notes: &[String]) -> Vec<u8> {
    let mesh = rig.mesh();
    let triangles: Vec<u32> = mesh.triangles().into_iter().flatten().collect();
    let controls: Vec<_> = rig
        .specs()
        .iter()
        .map(|spec| {
            let (bone, channel) = match &spec.kind {
                ControlKind::Number => (None, None),
                ControlKind::Joint { bone, channel } => (Some(bone), Some(channel)),
            };
            json!({
                "name": spec.name, "low": spec.low, "high": spec.high, "default": spec.default,
                "bone": bone, "channel": channel,
            })
        })
        .collect();
    let clips: Vec<_> = rig
        .clips()
        .iter()
        .map(|clip| {
            json!({ "name": clip.name, "duration": clip.duration, "rate": clip.own_rate(), "test": clip.is_for_test() })
        })
        .collect();
    let header = json!({
        "name": name,
        "vertices": mesh.vertex_count(),
        "triangles": triangles.len() / 3,
        "bones": rig.skeleton().map_or(0, |skeleton| skeleton.len()),
        "boneNames": rig.skeleton().map_or_else(Vec::new, |s| s.bones().iter().map(|b| b.name.clone()).collect()),
        "skinning": rig.skeleton().is_some() && rig.skin_weights().is_some(),
        "shapes": rig.blendshapes().map_or(0, |shapes| shapes.shapes().len()),
        "controls": controls,
        "clips": clips,
        "segments": mesh.segments().names,
        "coloured": rig.colours().is_some(),
        "topology": format!("{:016x}", mesh.topology_hash()),
        "notes": notes,
    });
    let mut packet = Packet::with_header(&header);
    packet.points(mesh.positions());
    packet.numbers(&triangles);
    packet.numbers(&mesh.segments().of_vertex);
    let byte = |value: f32| (value.clamp(0.0, 1.0) * 255.0 + 0.5) as u8;
    let colours: Vec<u8> = match rig.colours() {
        Some(colours) => colours.iter().flat_map(|colour| colour.to_array().map(byte)).collect(),
        None => vec![0; mesh.vertex_count() * 3],
    };
    packet.bytes(&colours);
    packet.bytes(&openness(rig).into_iter().map(byte).collect::<Vec<u8>>());
    packet.finish()
}

/// The most open that every vertex is at rest and in the middle of a clip.
fn openness(rig: &dyn Rig) -> Vec<f32> {
    let mut open = vertex_openness(rig.mesh().positions(), rig.mesh().faces());
    let mut pose = RigPose::default();
    let moments = rig.clips().iter().filter(|clip| clip.is_for_training()).take(POSES);
    for clip in moments {
        let Ok(controls) = clip.at([f64::from(clip.duration) / 2.0], rig.specs()) else { continue };
        if controls.iter().all(|controls| rig.evaluate(controls, &mut pose).is_ok()) {
            raise(&mut open, &vertex_openness(&pose.vertices, rig.mesh().faces()));
        }
    }
    smooth(rig, open)
}

fn raise(open: &mut [f32], other: &[f32]) {
    open.iter_mut().zip(other).for_each(|(open, other)| *open = open.max(*other));
}

/// So few looks leave grain: the mean with the neighbours along edges takes it away.
fn smooth(rig: &dyn Rig, open: Vec<f32>) -> Vec<f32> {
    let mut sums: Vec<[f32; 2]> = open.iter().map(|open| [*open, 1.0]).collect();
    for face in rig.mesh().faces() {
        let corners = face.corners();
        for (place, &corner) in corners.iter().enumerate() {
            let next = corners[(place + 1) % corners.len()] as usize;
            let corner = corner as usize;
            sums[corner] = [sums[corner][0] + open[next], sums[corner][1] + 1.0];
            sums[next] = [sums[next][0] + open[corner], sums[next][1] + 1.0];
        }
    }
    sums.into_iter().map(|[sum, count]| sum / count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mira_is_packed_whole() {
        let rig = understudy_jobs::rigs::open("mira", &understudy_jobs::Silent).expect("it is embedded").rig;
        let bytes = pack("mira", rig.as_ref(), &[]);
        let length = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        let header: serde_json::Value = serde_json::from_slice(&bytes[4..4 + length]).expect("JSON");
        let [vertices, triangles] =
            ["vertices", "triangles"].map(|key| header[key].as_u64().expect("a count") as usize);
        let even = |bytes: usize| bytes.next_multiple_of(4);
        let want =
            4 + length + vertices * 12 + triangles * 12 + vertices * 4 + even(vertices * 3) + even(vertices);
        assert_eq!(bytes.len(), want);
        assert_eq!(header["controls"].as_array().map(Vec::len), Some(rig.specs().len()));
        let open = &bytes[bytes.len() - even(vertices)..][..vertices];
        let mean = open.iter().map(|o| f64::from(*o)).sum::<f64>() / vertices as f64;
        assert!((60.0..250.0).contains(&mean), "a head is neither a cave nor a plain: {mean}");
    }
}
