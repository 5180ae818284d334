//! Everything about the parts of a face twin that could be wrong, checked once.

use super::{DenseParts, FaceError, FaceParts, MotionParts, NetParts, Stage};

/// Fails with the first thing that is wrong.
pub(super) fn parts(parts: &FaceParts) -> Result<(), FaceError> {
    let vertices = parts.mesh.vertex_count();
    let controls = parts.header.controls.len();
    let mut covers = [vec![false; vertices], vec![false; vertices]];
    let mut normals = None;
    for net in &parts.nets {
        check_net(net, controls)?;
        let cover = &mut covers[usize::from(net.stage == Stage::Refinement)];
        claim(cover, &net.vertices, &net.name, "networks of one stage")?;
        let outputs = net.map.as_ref().map_or(3, |map| map.shape.outputs);
        if normals.is_some_and(|before| before != outputs) {
            return Err(FaceError::Normals { network: net.name.clone() });
        }
        normals = Some(outputs);
    }
    let mut rigid = vec![false; vertices];
    for segment in &parts.rigid {
        claim(&mut rigid, &segment.vertices, &segment.name, "rigid segments")?;
    }
    let mut bodies = vec![false; vertices];
    for body in &parts.bodies {
        claim(&mut bodies, &body.vertices, &body.name, "bodies")?;
        check_motion(&body.name, &body.motion, controls)?;
    }
    for vertex in 0..vertices {
        let drawn = covers[0][vertex] || covers[1][vertex];
        let what = match (drawn, rigid[vertex], bodies[vertex]) {
            (true, true, _) => "parts: a rigid segment and a network",
            (true, _, true) => "parts: a body and a network",
            (_, true, true) => "parts: a rigid segment and a body",
            _ => continue,
        };
        return Err(FaceError::Cover { vertex, what });
    }
    for (index, segment) in parts.rigid.iter().enumerate() {
        for &vertex in &segment.follows {
            let vertex = vertex as usize;
            let free = rigid.get(vertex).map(|rigid| !rigid);
            match free {
                Some(true) => {}
                Some(false) => return Err(FaceError::FollowsRigid { segment: index, vertex }),
                None => {
                    let what = format!("{}: followed vertex", segment.name);
                    return Err(FaceError::Index { what, index: vertex, count: vertices });
                }
            }
        }
    }
    if let Some(frame) = &parts.frame {
        check_motion("frame", frame, controls)?;
    }
    Ok(())
}

fn check_motion(name: &str, motion: &MotionParts, controls: usize) -> Result<(), FaceError> {
    check_inputs(name, &motion.inputs, &motion.mean, &motion.scale, controls)?;
    check_chain(name, &motion.layers, motion.inputs.len(), 6)?;
    check_finite(&format!("{name}: pivot"), &motion.pivot.to_array())
}

fn count(what: String, got: usize, want: usize) -> Result<(), FaceError> {
    if got == want { Ok(()) } else { Err(FaceError::Count { what, got, want }) }
}

fn check_finite(what: &str, numbers: &[f32]) -> Result<(), FaceError> {
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(index) => Err(FaceError::NonFinite { what: what.into(), index }),
        None => Ok(()),
    }
}

fn claim(cover: &mut [bool], vertices: &[u32], name: &str, what: &'static str) -> Result<(), FaceError> {
    let all = cover.len();
    for &vertex in vertices {
        let index = vertex as usize;
        let slot = cover.get_mut(index).ok_or_else(|| FaceError::Index {
            what: format!("{name}: vertex"),
            index,
            count: all,
        })?;
        if std::mem::replace(slot, true) {
            return Err(FaceError::Cover { vertex: index, what });
        }
    }
    Ok(())
}

fn check_inputs(
    name: &str,
    inputs: &[u32],
    mean: &[f32],
    scale: &[f32],
    controls: usize,
) -> Result<(), FaceError> {
    if let Some(&index) = inputs.iter().find(|input| **input as usize >= controls) {
        let what = format!("{name}: input");
        return Err(FaceError::Index { what, index: index as usize, count: controls });
    }
    for (what, numbers) in [("mean", mean), ("scale", scale)] {
        let what = format!("{name}: {what}");
        check_finite(&what, numbers)?;
        count(what, numbers.len(), inputs.len())?;
    }
    Ok(())
}

/// Layers fit each other and end in so many numbers; their content is checked when they are packed.
fn check_chain(name: &str, layers: &[DenseParts], inputs: usize, outputs: usize) -> Result<(), FaceError> {
    let mut columns = inputs;
    for (layer, data) in layers.iter().enumerate() {
        let rows = data.bias.len();
        count(format!("{name}: weights of layer {layer}"), data.weights.len(), rows * columns)?;
        columns = rows;
    }
    let last = if layers.is_empty() { 0 } else { columns };
    count(format!("{name}: outputs of the last layer"), last, outputs)
}

fn check_net(net: &NetParts, controls: usize) -> Result<(), FaceError> {
    let name = &net.name;
    check_inputs(name, &net.inputs, &net.mean, &net.scale, controls)?;
    let Some(map) = &net.map else {
        return check_chain(name, &net.dense, net.inputs.len(), 3 * net.vertices.len());
    };
    if !map.shape.is_sane() {
        return Err(FaceError::Shape { network: name.clone(), shape: map.shape });
    }
    check_chain(name, &net.dense, net.inputs.len(), map.shape.dense_numbers())?;
    count(format!("{name}: parameters of the map"), map.parameters.len(), map.shape.parameter_count())?;
    check_finite(&format!("{name}: parameters of the map"), &map.parameters)?;
    count(format!("{name}: coordinates"), map.coordinates.len(), net.vertices.len())?;
    let flat: Vec<f32> = map.coordinates.iter().flat_map(|c| c.to_array()).collect();
    check_finite(&format!("{name}: coordinates"), &flat)
}
