//! Everything about the parts of a face twin that could be wrong, checked once.

use crate::TwinError;

use super::{DenseParts, FaceParts, MotionParts, NetParts, Stage};

/// Fails with the first thing that is wrong.
pub(super) fn parts(parts: &FaceParts) -> Result<(), TwinError> {
    let vertices = parts.mesh.vertex_count();
    let controls = parts.header.inputs.controls.len();
    let mut covers = [vec![false; vertices], vec![false; vertices]];
    let mut normals = None;
    for net in &parts.nets {
        check_net(net, controls)?;
        let cover = &mut covers[usize::from(net.stage == Stage::Refinement)];
        claim(cover, &net.vertices, &net.name, "two networks of one stage")?;
        let outputs = net.map.as_ref().map_or(3, |map| map.shape.outputs);
        if normals.is_some_and(|before| before != outputs) {
            let problem = "some networks carry normals and some do not".into();
            return Err(TwinError::Part { what: net.name.clone(), problem });
        }
        normals = Some(outputs);
    }
    let mut rigid = vec![false; vertices];
    for segment in &parts.rigid {
        claim(&mut rigid, &segment.vertices, &segment.name, "two rigid segments")?;
    }
    let mut bodies = vec![false; vertices];
    for body in &parts.bodies {
        claim(&mut bodies, &body.vertices, &body.name, "two rigid bodies")?;
        check_motion(&body.name, &body.motion, controls)?;
    }
    for vertex in 0..vertices {
        let drawn = covers[0][vertex] || covers[1][vertex];
        let what = match (drawn, rigid[vertex], bodies[vertex]) {
            (true, true, _) => "a rigid segment and a network",
            (true, _, true) => "a rigid body and a network",
            (_, true, true) => "a rigid segment and a rigid body",
            _ => continue,
        };
        return Err(TwinError::Cover { vertex, what: what.into() });
    }
    for (index, segment) in parts.rigid.iter().enumerate() {
        for &vertex in &segment.follows {
            let vertex = vertex as usize;
            let free = rigid.get(vertex).map(|rigid| !rigid);
            match free {
                Some(true) => {}
                Some(false) => {
                    let problem = format!("follows vertex {vertex}, which is rigid itself");
                    return Err(TwinError::Part { what: format!("rigid segment {index}"), problem });
                }
                None => {
                    let what = format!("{}: followed vertex", segment.name);
                    return Err(TwinError::Index { what, index: vertex, count: vertices });
                }
            }
        }
    }
    if let Some(frame) = &parts.frame {
        check_motion("frame", frame, controls)?;
    }
    Ok(())
}

pub(crate) fn check_motion(name: &str, motion: &MotionParts, controls: usize) -> Result<(), TwinError> {
    check_inputs(name, &motion.inputs, &motion.mean, &motion.scale, controls)?;
    check_chain(name, &motion.layers, motion.inputs.len(), 6)?;
    check_finite(&format!("{name}: pivot"), &motion.pivot.to_array())
}

pub(crate) fn count(what: String, got: usize, want: usize) -> Result<(), TwinError> {
    if got == want { Ok(()) } else { Err(TwinError::Count { what, got, want }) }
}

pub(crate) fn check_finite(what: &str, numbers: &[f32]) -> Result<(), TwinError> {
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(index) => Err(TwinError::NonFinite { what: what.into(), index }),
        None => Ok(()),
    }
}

fn claim(cover: &mut [bool], vertices: &[u32], name: &str, what: &'static str) -> Result<(), TwinError> {
    let all = cover.len();
    for &vertex in vertices {
        let index = vertex as usize;
        let slot = cover.get_mut(index).ok_or_else(|| TwinError::Index {
            what: format!("{name}: vertex"),
            index,
            count: all,
        })?;
        if std::mem::replace(slot, true) {
            return Err(TwinError::Cover { vertex: index, what: what.into() });
        }
    }
    Ok(())
}

pub(crate) fn check_inputs(
    name: &str,
    inputs: &[u32],
    mean: &[f32],
    scale: &[f32],
    controls: usize,
) -> Result<(), TwinError> {
    if let Some(&index) = inputs.iter().find(|input| **input as usize >= controls) {
        let what = format!("{name}: input");
        return Err(TwinError::Index { what, index: index as usize, count: controls });
    }
    for (what, numbers) in [("mean", mean), ("scale", scale)] {
        let what = format!("{name}: {what}");
        check_finite(&what, numbers)?;
        count(what, numbers.len(), inputs.len())?;
    }
    Ok(())
}

/// Layers fit each other and end in so many numbers; their content is checked when they are packed.
fn check_chain(name: &str, layers: &[DenseParts], inputs: usize, outputs: usize) -> Result<(), TwinError> {
    let mut columns = inputs;
    for (layer, data) in layers.iter().enumerate() {
        let rows = data.bias.len();
        count(format!("{name}: weights of layer {layer}"), data.weights.len(), rows * columns)?;
        columns = rows;
    }
    let last = if layers.is_empty() { 0 } else { columns };
    count(format!("{name}: outputs of the last layer"), last, outputs)
}

fn check_net(net: &NetParts, controls: usize) -> Result<(), TwinError> {
    let name = &net.name;
    check_inputs(name, &net.inputs, &net.mean, &net.scale, controls)?;
    let Some(map) = &net.map else {
        return check_chain(name, &net.dense, net.inputs.len(), 3 * net.vertices.len());
    };
    if !map.shape.is_sane() {
        let problem = format!("a map of {:?}", map.shape);
        return Err(TwinError::Part { what: name.clone(), problem });
    }
    check_chain(name, &net.dense, net.inputs.len(), map.shape.dense_numbers())?;
    count(format!("{name}: parameters of the map"), map.parameters.len(), map.shape.parameter_count())?;
    check_finite(&format!("{name}: parameters of the map"), &map.parameters)?;
    count(format!("{name}: coordinates"), map.coordinates.len(), net.vertices.len())?;
    let flat: Vec<f32> = map.coordinates.iter().flat_map(|c| c.to_array()).collect();
    check_finite(&format!("{name}: coordinates"), &flat)
}
