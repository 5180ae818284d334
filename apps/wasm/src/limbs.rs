//! Hands, feet and torso of a body, in the browser: handles on the world transforms that pose it, through arrays of numbers.

use understudy_runtime::ik::two_bone::MOST_CM;
use understudy_runtime::ik::{Bend, Handles, PlacedBones, Reach};
use understudy_runtime::{Affine3A, Twin, Vec3};

/// Which bones are held, and what is asked of one of them.
pub struct Limbs {
    handles: Handles,
    parents: Vec<Option<usize>>,
    /// Where the handle shall be (x, y, z in cm), the direction in which its elbow or knee points (zero: as it does), the share
    /// of the limb's length in which it slows down before it is straight, and whether the end keeps its orientation (1) or
    /// not (0).
    pub goal: [f32; Limbs::NUMBERS],
}

impl Limbs {
    /// Numbers of a goal.
    pub const NUMBERS: usize = 8;

    /// Bones with usual names, or as `spelling` says (JSON); nothing where no bone is held.
    pub fn of(twin: &Twin, spelling: Option<&str>) -> Result<Option<Self>, String> {
        let bones = &twin.header().inputs.bones;
        let named: Vec<_> = bones.iter().map(|bone| (bone.name.as_str(), bone.parent)).collect();
        let handles = match spelling {
            None => Handles::find(named),
            Some(spelling) => {
                let spelling =
                    serde_json::from_str(spelling).map_err(|error| format!("spelling: {error}"))?;
                Handles::spelled(&named, &spelling)?
            }
        };
        let parents = bones.iter().map(|bone| bone.parent).collect();
        let some = !handles.names().is_empty();
        Ok(some.then_some(Self { handles, parents, goal: [0.0; Self::NUMBERS] }))
    }

    /// Names and the bones that are held.
    pub fn describe(&self) -> serde_json::Value {
        let names = self.handles.names().into_iter();
        names.map(|name| serde_json::json!({ "name": name, "bone": self.handles.bone(name) })).collect()
    }

    /// Brings a handle to its goal; gives how it reached it, counted from 1, and the bones back, moved or not.
    pub fn reach(&self, handle: usize, world: Vec<Affine3A>) -> (Vec<Affine3A>, Result<usize, String>) {
        let mut placed = PlacedBones::new(&self.parents, world);
        let reached = self.move_handle(handle, &mut placed);
        (placed.world, reached)
    }

    fn move_handle(&self, handle: usize, placed: &mut PlacedBones<'_>) -> Result<usize, String> {
        if let Some(entry) = placed.world.iter().position(|bone| !bone.is_finite()) {
            return Err(format!("bones of the pose: entry {entry} is not finite"));
        }
        let [x, y, z, pole @ .., soft, keep] = self.goal;
        let (target, pole) = (Vec3::new(x, y, z), Vec3::from(pole));
        if let Some(limb) = self.handles.limbs.get(handle) {
            let natural = || limb.natural_bend(&placed.world);
            let bend = Bend::Pole(if pole == Vec3::ZERO { natural() } else { pole });
            let pose = placed.reach(limb, target, bend, soft, keep != 0.0);
            return Ok(match pose.map_err(|error| error.to_string())?.reach {
                Reach::Exact => 1,
                Reach::Soft => 2,
                Reach::TooFar => 3,
                Reach::TooNear => 4,
            });
        }
        let torso = self.handles.torso.filter(|_| handle == self.handles.limbs.len());
        let bone = torso.ok_or_else(|| format!("there is no handle {handle}"))?;
        if !(target.is_finite() && target.abs().max_element() <= MOST_CM) {
            return Err(format!("the target ({target}) is not finite or farther than {MOST_CM} cm away"));
        }
        placed.offset(target - Vec3::from(placed.world[bone].translation));
        Ok(1)
    }
}
