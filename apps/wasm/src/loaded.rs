//! What stands behind a handle: a twin, its player, and the arrays through which poses and vertices go in and out.

use crate::following::Following;
use crate::limbs::Limbs;
use crate::live::Live;
use understudy_core::{ControlSpecs, Face};
use understudy_runtime::{Affine3A, Player, Pose, Twin, Vec3};

/// Numbers of a bone from outside: a 4×4 matrix by columns, as glTF and three.js have it. Its last row is not read.
const MATRIX: usize = 16;

/// The arrays of a twin, by the numbers that callers know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// 0: values of the controls that pose the twin, in.
    Controls,
    /// 1: world transforms of bones by columns, 16 numbers each, in.
    Bones,
    /// 2: places of vertices, cm, out.
    Vertices,
    /// 3: unit normals, out.
    Normals,
    /// 4: derivatives of a loss by vertices, in.
    ByVertices,
    /// 5: derivatives of a loss by controls, out.
    ByControls,
    /// 6: four corners per face (u32), the last of a triangle 2³² − 1, out.
    Faces,
    /// 7: world transforms of the bones at rest, 16 numbers each, out.
    RestBones,
    /// 8: values of the controls that matter beside bones, in.
    Extras,
    /// 9: places of the points that can be dragged, cm, out.
    Points,
    /// 10: where points shall be, 7 numbers each, in: see `following.rs`.
    Targets,
    /// 11: a face that was seen, in: see `live.rs`.
    Face,
    /// 12: what the actor does, out: see `live.rs`.
    Performance,
    /// 13: what is asked of a hand, a foot or the torso, 8 numbers, in: see `limbs.rs`.
    Goal,
}

impl Buffer {
    pub fn of(number: usize) -> Result<Self, String> {
        const ALL: [Buffer; 14] = [
            Buffer::Controls,
            Buffer::Bones,
            Buffer::Vertices,
            Buffer::Normals,
            Buffer::ByVertices,
            Buffer::ByControls,
            Buffer::Faces,
            Buffer::RestBones,
            Buffer::Extras,
            Buffer::Points,
            Buffer::Targets,
            Buffer::Face,
            Buffer::Performance,
            Buffer::Goal,
        ];
        ALL.get(number).copied().ok_or_else(|| format!("there is no array of number {number}"))
    }
}

/// Why a twin's hands cannot be moved.
const NO_LIMBS: &str = "no bones of this twin have usual names of limbs: a spelling says which they are";

/// What a pose is given by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Controls,
    Bones,
}

impl By {
    pub fn of(number: usize) -> Result<Self, String> {
        match number {
            0 => Ok(Self::Controls),
            1 => Ok(Self::Bones),
            _ => Err(format!("a pose is given by controls (0) or by bones (1), not by {number}")),
        }
    }
}

/// Makes an array at least so long; what is new in it is `zero`.
pub fn grow<T: Clone>(array: &mut Vec<T>, length: usize, zero: T, what: &str) -> Result<(), String> {
    if let Some(more) = length.checked_sub(array.len()) {
        array.try_reserve_exact(more).map_err(|_| format!("there is no memory for {what}"))?;
        array.resize(length, zero);
    }
    Ok(())
}

/// A twin that is played.
pub struct Loaded {
    twin: Twin,
    player: Player,
    controls: Vec<f32>,
    extras: Vec<f32>,
    matrices: Vec<[f32; MATRIX]>,
    bones: Vec<Affine3A>,
    vertices: Vec<Vec3>,
    normals: Vec<Vec3>,
    by_vertices: Vec<Vec3>,
    by_controls: Vec<f32>,
    faces: Vec<[u32; 4]>,
    rest_bones: Vec<[f32; MATRIX]>,
    following: Option<Following>,
    limbs: Option<Limbs>,
    live: Option<Live>,
}

fn affine(matrix: &[f32; MATRIX]) -> Affine3A {
    let column = |first: usize| Vec3::new(matrix[first], matrix[first + 1], matrix[first + 2]);
    Affine3A {
        matrix3: understudy_core::Mat3A::from_cols(column(0).into(), column(4).into(), column(8).into()),
        translation: column(12).into(),
    }
}

fn matrix(affine: &Affine3A) -> [f32; MATRIX] {
    let c = affine.to_cols_array();
    [c[0], c[1], c[2], 0.0, c[3], c[4], c[5], 0.0, c[6], c[7], c[8], 0.0, c[9], c[10], c[11], 1.0]
}

impl Loaded {
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let twin = Twin::parse(bytes).map_err(|error| error.to_string())?;
        let faces: Vec<[u32; 4]> = twin.faces().iter().map(Face::raw).collect();
        let rest_bones: Vec<[f32; MATRIX]> = twin.rest_bones().iter().map(matrix).collect();
        let following = Following::read(bytes, &twin)?;
        let limbs = Limbs::of(&twin, None)?;
        Ok(Self {
            following,
            limbs,
            live: None,
            player: twin.player(1),
            controls: Vec::new(),
            extras: Vec::new(),
            matrices: Vec::new(),
            bones: Vec::new(),
            vertices: Vec::new(),
            normals: Vec::new(),
            by_vertices: Vec::new(),
            by_controls: Vec::new(),
            faces,
            rest_bones,
            twin,
        })
    }

    pub fn describe(&self) -> Result<String, String> {
        let twin = &self.twin;
        let mut header = serde_json::to_value(twin.header()).map_err(|error| error.to_string())?;
        // JavaScript's numbers have 53 bits.
        header["topology_hash"] = twin.header().topology_hash.to_string().into();
        let text = serde_json::json!({
            "method": twin.method(),
            "vertices": twin.vertex_count(),
            "faces": twin.faces().len(),
            "networkBytes": twin.network_bytes(),
            "multiplyAdds": twin.multiply_adds(),
            "controls": self.posing_controls(),
            "points": self.following.as_ref().map(Following::describe),
            "handles": self.limbs.as_ref().map(Limbs::describe),
            "header": header,
        });
        serde_json::to_string(&text).map_err(|error| error.to_string())
    }

    /// The controls that pose it without bones.
    fn posing_controls(&self) -> Option<&ControlSpecs> {
        self.twin.posing_controls()
    }

    fn control_count(&self) -> usize {
        self.posing_controls().map_or(0, ControlSpecs::len)
    }

    fn extra_count(&self) -> usize {
        self.twin.header().inputs.controls.len()
    }

    fn bone_count(&self) -> usize {
        self.twin.header().inputs.bones.len()
    }

    /// Numbers of an array for one pose.
    pub fn size(&self, buffer: Buffer) -> usize {
        match buffer {
            Buffer::Controls => self.control_count(),
            Buffer::Extras => self.extra_count(),
            // By those that the pose is given by.
            Buffer::ByControls => self.control_count().max(self.extra_count()),
            Buffer::Bones => MATRIX * self.bone_count(),
            Buffer::Vertices | Buffer::Normals | Buffer::ByVertices => 3 * self.twin.vertex_count(),
            Buffer::Faces => 4 * self.faces.len(),
            Buffer::RestBones => MATRIX * self.rest_bones.len(),
            Buffer::Points => 3 * self.following.as_ref().map_or(0, Following::count),
            Buffer::Targets => Following::NUMBERS * self.following.as_ref().map_or(0, Following::count),
            Buffer::Face => Live::INPUT,
            Buffer::Performance => Live::OUTPUT,
            Buffer::Goal => Limbs::NUMBERS,
        }
    }

    /// Where an array lies, at least as long as so many poses want it.
    pub fn address(&mut self, buffer: Buffer, poses: usize) -> Result<usize, String> {
        let (controls, bones, vertices) = (self.control_count(), self.bone_count(), self.twin.vertex_count());
        let extras = self.extra_count();
        let of = |count: usize| {
            let count = poses.checked_mul(count).filter(|count| *count <= isize::MAX as usize / MATRIX / 4);
            count.ok_or_else(|| format!("there is no memory for {poses} poses"))
        };
        Ok(match buffer {
            Buffer::Controls => {
                grow(&mut self.controls, of(controls)?, 0.0, "controls")?;
                self.controls.as_ptr() as usize
            }
            Buffer::Extras => {
                grow(&mut self.extras, of(extras)?, 0.0, "controls")?;
                self.extras.as_ptr() as usize
            }
            Buffer::Bones => {
                grow(&mut self.matrices, of(bones)?, [0.0; MATRIX], "bones")?;
                grow(&mut self.bones, of(bones)?, Affine3A::IDENTITY, "bones")?;
                self.matrices.as_ptr() as usize
            }
            Buffer::Vertices => {
                grow(&mut self.vertices, of(vertices)?, Vec3::ZERO, "vertices")?;
                self.vertices.as_ptr() as usize
            }
            Buffer::Normals => {
                grow(&mut self.normals, vertices, Vec3::ZERO, "normals")?;
                self.normals.as_ptr() as usize
            }
            Buffer::ByVertices => {
                grow(&mut self.by_vertices, vertices, Vec3::ZERO, "derivatives")?;
                self.by_vertices.as_ptr() as usize
            }
            Buffer::ByControls => {
                grow(&mut self.by_controls, controls.max(extras), 0.0, "derivatives")?;
                self.by_controls.as_ptr() as usize
            }
            Buffer::Faces => self.faces.as_ptr() as usize,
            Buffer::RestBones => self.rest_bones.as_ptr() as usize,
            Buffer::Points => self.following()?.points.as_ptr() as usize,
            Buffer::Targets => self.following()?.targets.as_ptr() as usize,
            Buffer::Face => self.live()?.input.as_ptr() as usize,
            Buffer::Performance => self.live()?.output.as_ptr() as usize,
            Buffer::Goal => self.limbs.as_ref().ok_or(NO_LIMBS)?.goal.as_ptr() as usize,
        })
    }

    fn live(&mut self) -> Result<&mut Live, String> {
        self.live.as_mut().ok_or_else(|| "nobody drives this twin yet".into())
    }

    /// An actor drives it from now on: `geometry` is the canonical face of a `.task` file.
    pub fn begin_live(&mut self, geometry: &[u8]) -> Result<usize, String> {
        let specs = self.posing_controls().ok_or("this twin is posed by bones: an actor drives controls")?;
        let live = Live::new(geometry, specs, self.following.as_ref().map(Following::ik))?;
        self.live = Some(live);
        Ok(1)
    }

    /// Takes the face in the array as the actor at rest.
    pub fn live_rest(&mut self) -> Result<usize, String> {
        self.live()?.rest()
    }

    /// The next frame; writes controls and what the actor does.
    pub fn live_follow(&mut self, seen: bool, seconds: f32) -> Result<usize, String> {
        self.address(Buffer::Controls, 1)?;
        let count = self.control_count();
        let Self { live, controls, .. } = self;
        let live = live.as_mut().ok_or("nobody drives this twin yet")?;
        live.follow(seen, seconds, &mut controls[..count])
    }

    fn following(&mut self) -> Result<&mut Following, String> {
        self.following.as_mut().ok_or_else(|| "this twin has not learned to follow points".into())
    }

    /// Writes where the points are with the controls that were written to the arrays; a drag begins there.
    pub fn hold(&mut self) -> Result<usize, String> {
        self.address(Buffer::Controls, 1)?;
        let count = self.control_count();
        let Self { following, controls, .. } = self;
        let following = following.as_mut().ok_or("this twin has not learned to follow points")?;
        following.hold(&controls[..count])
    }

    /// Brings points to where the arrays say, from the pose that was held last; writes controls and places of points.
    pub fn drag(&mut self, steps: usize) -> Result<usize, String> {
        self.address(Buffer::Controls, 1)?;
        let count = self.control_count();
        let Self { following, controls, .. } = self;
        let following = following.as_mut().ok_or("this twin has not learned to follow points")?;
        following.drag(steps, &mut controls[..count])
    }

    /// Names the bones of hands, feet and torso as a text says.
    pub fn spell_limbs(&mut self, spelling: &str) -> Result<usize, String> {
        self.limbs = Some(Limbs::of(&self.twin, Some(spelling))?.ok_or(NO_LIMBS)?);
        Ok(1)
    }

    /// Brings a handle to the goal in its array, and writes the bones of the pose as they are then.
    pub fn reach(&mut self, handle: usize) -> Result<usize, String> {
        self.take_over(By::Bones, 1)?;
        let count = self.bone_count();
        let limbs = self.limbs.as_ref().ok_or(NO_LIMBS)?;
        // The array for a crowd is longer than a pose.
        self.bones.truncate(count);
        let (bones, reached) = limbs.reach(handle, std::mem::take(&mut self.bones));
        self.bones = bones;
        let reached = reached?;
        self.matrices.iter_mut().zip(&self.bones).for_each(|(out, bone)| *out = matrix(bone));
        Ok(reached)
    }

    /// Arrays for so many poses, and the bones as the run time has them.
    fn take_over(&mut self, by: By, poses: usize) -> Result<(), String> {
        for buffer in [Buffer::Controls, Buffer::Extras, Buffer::Bones, Buffer::Vertices] {
            self.address(buffer, poses)?;
        }
        if by == By::Bones {
            let count = poses * self.bone_count();
            let pairs = self.bones[..count].iter_mut().zip(&self.matrices);
            pairs.for_each(|(bone, matrix)| *bone = affine(matrix));
        }
        Ok(())
    }

    pub fn pose(&mut self, by: By, poses: usize) -> Result<usize, String> {
        self.take_over(by, poses)?;
        let (controls, extras, bones) = (self.control_count(), self.extra_count(), self.bone_count());
        let pose = match by {
            By::Controls => Pose::Controls(&self.controls[..poses * controls]),
            By::Bones => {
                Pose::Bones { bones: &self.bones[..poses * bones], extras: &self.extras[..poses * extras] }
            }
        };
        let out = &mut self.vertices[..poses * self.twin.vertex_count()];
        let done = if poses == 1 { self.player.pose(pose, out) } else { self.player.crowd(pose, out) };
        done.map(|()| 1).map_err(|error| error.to_string())
    }

    #[cfg(test)]
    pub fn points(&self) -> &[Vec3] {
        &self.following.as_ref().expect("it follows points").points
    }

    #[cfg(test)]
    pub fn ask(&mut self, point: usize, what: [f32; Following::NUMBERS]) {
        self.following.as_mut().expect("it follows points").targets[point] = what;
    }

    #[cfg(test)]
    pub fn rest_again(&mut self) {
        self.address(Buffer::Bones, 1).expect("there is memory");
        self.matrices[..self.rest_bones.len()].copy_from_slice(&self.rest_bones);
    }

    #[cfg(test)]
    pub fn bone_place(&self, bone: usize) -> Vec3 {
        affine(&self.matrices[bone]).translation.into()
    }

    #[cfg(test)]
    pub fn aim(&mut self, goal: [f32; Limbs::NUMBERS]) {
        self.limbs.as_mut().expect("it has limbs").goal = goal;
    }

    #[cfg(test)]
    pub fn set_first_control(&mut self, value: f32) {
        self.controls[0] = value;
    }

    pub fn normals(&mut self) -> Result<usize, String> {
        self.address(Buffer::Normals, 1)?;
        self.address(Buffer::Vertices, 1)?;
        let count = self.twin.vertex_count();
        let done = self.player.normals(&self.vertices[..count], &mut self.normals[..count]);
        done.map(|()| 1).map_err(|error| error.to_string())
    }

    pub fn gradient(&mut self, by: By) -> Result<usize, String> {
        self.take_over(by, 1)?;
        self.address(Buffer::ByVertices, 1)?;
        self.address(Buffer::ByControls, 1)?;
        let (controls, extras, bones) = (self.control_count(), self.extra_count(), self.bone_count());
        let pose = match by {
            By::Controls => Pose::Controls(&self.controls[..controls]),
            By::Bones => Pose::Bones { bones: &self.bones[..bones], extras: &self.extras[..extras] },
        };
        let by_vertices = &self.by_vertices;
        let given = |_: &[Vec3], slopes: &mut [Vec3]| slopes.copy_from_slice(&by_vertices[..slopes.len()]);
        let count = if by == By::Controls { controls } else { extras };
        let done = self.player.gradient(pose, given, &mut self.by_controls[..count]);
        done.map(|()| 1).map_err(|error| error.to_string())
    }
}
