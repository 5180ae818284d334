//! Everything about the parts of a face twin that could be wrong, checked once.

use super::{FaceParts, NetParts, Stage};
use crate::TwinError;
use crate::twin::network::{check_chain, check_inputs};
use crate::twin::shared::{check_finite, check_length};

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
        body.motion.check(&body.name, controls)?;
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
        frame.check("frame", controls)?;
    }
    Ok(())
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
    let what = format!("{name}: parameters of the map");
    check_length(&what, map.parameters.len(), map.shape.parameter_count())?;
    check_finite(&what, map.parameters.iter().map(|p| p.is_finite()))?;
    let what = format!("{name}: coordinates");
    check_length(&what, map.coordinates.len(), net.vertices.len())?;
    check_finite(&what, map.coordinates.iter().map(|c| c.is_finite()))
}
