//! Rook's stack: constraints that move twist, helper and hem bones, and the deformers in their order.

use super::gather::Gather;
use super::hem::{Cloth, Collide, Limb, hem_follow};
use super::plan;
use super::sculpt::{FineBody, Mask};
use super::wear;
use understudy_core::mechanism::{Constraint, Drive, Helper, Twist};
use understudy_core::{Channel, ControlSpecs, Mesh, Skeleton, SkinWeights, Vec3};
use understudy_rigs::Deformer;
use understudy_rigs::RigError;
use understudy_rigs::deformers::{
    Attachment, DeltaMush, DeltaMushConfig, Driver, Muscle, MuscleBulge, RigSize, SkinSlide, Skinning, Slide,
    VertexWeights, Wrinkles, smooth_step, spindle_mask,
};

/// Bones that no animator touches.
pub fn constraints(skeleton: &Skeleton, specs: &ControlSpecs) -> Vec<Constraint> {
    let bone = |name: &str| skeleton.find(name).expect("a bone of Rook's own skeleton");
    let control = |name: &str| specs.find(name).expect("a control of Rook's own list");
    let mut list: Vec<Constraint> = Vec::new();
    let mut helper = |source: &str, target: &str, share: f32, push: Vec3| {
        list.push(Constraint::Helper(Helper::new(skeleton, bone(source), bone(target), share, push)));
    };
    helper("spine_1", "spine_2", 0.7, Vec3::ZERO);
    helper("neck_1", "neck_2", 0.5, Vec3::ZERO);
    for (side, sign) in [("l", 1.0), ("r", -1.0)] {
        let name = |stem: &str| format!("{stem}_{side}");
        // Pushes are given in the parent's frame, whose axes are negated on the right.
        let push = |x: f32, y: f32, z: f32| Vec3::new(x, y, z) * sign;
        helper(&name("clavicle"), &name("scapula"), 0.6, Vec3::ZERO);
        helper(&name("upper_arm"), &name("shoulder_helper"), 0.5, push(-0.8, -0.6, 0.0));
        helper(&name("upper_arm"), &name("mantle"), 0.62, push(-1.6, 0.0, 0.0));
        helper(&name("forearm"), &name("elbow_helper"), 0.5, push(0.0, 0.6, -1.1));
        helper(&name("hand"), &name("wrist_helper"), 0.72, Vec3::ZERO);
        helper(&name("calf"), &name("knee_helper"), 0.5, push(0.0, 0.4, 1.5));
        helper(&name("foot"), &name("ankle_helper"), 0.5, Vec3::ZERO);
        // The hips' frame is upright on both sides.
        helper(&name("thigh"), &name("hip_helper"), 0.5, Vec3::new(0.5 * sign, 0.5, 0.8));
    }
    for side in ["l", "r"] {
        let mut twist = |source: &str, target: &str, axis: Vec3, share: f32| {
            let (source, target) = (bone(&format!("{source}_{side}")), bone(&format!("{target}_{side}")));
            list.push(Constraint::Twist(Twist::new(skeleton, source, target, axis, share)));
        };
        twist("upper_arm", "upper_arm_twist_1", Vec3::Y, -0.85);
        twist("upper_arm", "upper_arm_twist_2", Vec3::Y, -0.45);
        twist("hand", "forearm_twist_1", Vec3::Y, 0.3);
        twist("hand", "forearm_twist_2", Vec3::Y, 0.68);
        twist("thigh", "thigh_twist_1", Vec3::Y, -0.8);
        twist("thigh", "thigh_twist_2", Vec3::Y, -0.4);
        twist("foot", "calf_twist_1", Vec3::Z, 0.3);
        twist("foot", "calf_twist_2", Vec3::Z, 0.65);
    }
    for (name, target, channel, gain) in [
        ("breathe", "breathe", Channel::TranslateZ, 1.6),
        ("breathe", "breathe", Channel::TranslateY, 0.9),
        ("breathe", "breathe", Channel::ScaleX, 0.06),
        ("hood_forward", "hood_front", Channel::TranslateZ, 2.2),
        ("hood_forward", "hood_front", Channel::RotateX, 9.0),
        ("hood_forward", "hood_back", Channel::RotateX, 7.0),
        ("hood_open", "hood_l", Channel::TranslateX, 1.6),
        ("hood_open", "hood_r", Channel::TranslateX, -1.6),
        ("hood_open", "hood_front", Channel::TranslateY, 0.8),
        ("mantle_lift_l", "mantle_l", Channel::RotateZ, 22.0),
        ("mantle_lift_r", "mantle_r", Channel::RotateZ, 22.0),
    ] {
        list.push(Constraint::Drive(Drive { control: control(name), bone: bone(target), channel, gain }));
    }
    let hem = hem_follow(skeleton, ["hem_flare", "coat_wind_x", "coat_wind_z"].map(control));
    list.push(Constraint::Skirt(hem));
    list
}

/// What the layers look at.
pub struct Stage<'a> {
    /// The rest mesh with everything on it.
    pub mesh: &'a Mesh,
    /// The bones.
    pub skeleton: &'a Skeleton,
    /// The controls.
    pub specs: &'a ControlSpecs,
    /// The body: its vertices come first in the mesh.
    pub body: &'a FineBody,
}

impl Stage<'_> {
    fn bone(&self, name: &str) -> usize {
        self.skeleton.find(name).expect("a bone of Rook's own skeleton")
    }

    fn segment_of(&self, vertex: usize) -> &str {
        let segments = self.mesh.segments();
        &segments.names[segments.of_vertex[vertex] as usize]
    }

    fn body_positions(&self) -> &[Vec3] {
        &self.mesh.positions()[..self.body.cage.positions.len()]
    }

    /// Limbs keep their volume when they twist; the torso and the skirt blend linearly.
    fn dual_zones(&self, weights: &SkinWeights) -> Vec<f32> {
        let limb: Vec<bool> = self
            .skeleton
            .bones()
            .iter()
            .map(|bone| {
                let limbs =
                    ["arm", "elbow", "wrist", "hand_", "thigh", "knee", "calf", "ankle", "foot", "neck"];
                limbs.iter().any(|name| bone.name.contains(name))
            })
            .collect();
        let share = |vertex: usize| -> f32 {
            let sum: f32 =
                weights.row(vertex).filter(|(bone, _)| limb[*bone]).map(|(_, weight)| weight).sum();
            smooth_step(0.2, 0.9, sum)
        };
        (0..self.mesh.vertex_count()).map(share).collect()
    }

    fn muscles(&self) -> Vec<Muscle> {
        let mut muscles = Vec::new();
        for (side, sign) in [("l", 1.0), ("r", -1.0)] {
            let at = |point: Vec3| point * Vec3::new(sign, 1.0, 1.0);
            let flex = self.specs.find(&format!("flex_{side}")).expect("a control of Rook's own list");
            let mut muscle = |name: &str, ends: [(&str, Vec3); 2], radius: f32, volume: f32, flexing: f32| {
                let [origin, insertion] = ends.map(|(stem, point)| Attachment {
                    bone: self.bone(&format!("{stem}_{side}")),
                    point: at(point),
                });
                let mut mask = spindle_mask(self.body_positions(), origin.point, insertion.point, radius);
                let limb = |vertex: &u32| {
                    !matches!(self.segment_of(*vertex as usize), "mantle" | "lining" | "belt" | "gauntlet")
                };
                mask.retain(|(vertex, _)| limb(vertex) && self.on_side(*vertex as usize, sign));
                muscles.push(Muscle {
                    name: format!("{name} {side}"),
                    origin,
                    insertion,
                    mask,
                    volume,
                    flex_swelling: flexing,
                    flex: Driver::control(flex),
                    limit: 0.4,
                });
            };
            let (upper, lower) = (plan::upper_arm_direction(), plan::forearm_direction());
            let (shoulder, elbow) = (plan::SHOULDER, plan::elbow());
            let biceps = [
                ("upper_arm", shoulder + upper * 4.0 + Vec3::Z * 3.0),
                ("forearm", elbow + lower * 5.0 + Vec3::Z * 3.0),
            ];
            muscle("biceps", biceps, 9.0, 1.5, 0.22);
            let triceps = [
                ("upper_arm", shoulder + upper * 3.0 - Vec3::Z * 2.5),
                ("forearm", elbow + lower * 1.0 - Vec3::Z * 4.0),
            ];
            muscle("triceps", triceps, 8.0, 1.2, 0.15);
            let forearm = [
                ("upper_arm", elbow - upper * 4.0 + Vec3::Z * 1.5),
                ("hand", elbow + lower * 24.0 + Vec3::Z * 1.0),
            ];
            muscle("forearm", forearm, 9.0, 2.0, 0.18);
            let (hip, knee, ankle) = (plan::HIP, plan::KNEE, plan::ANKLE);
            let thigh =
                [("thigh", hip + Vec3::new(0.0, 2.0, 5.0)), ("calf", knee + Vec3::new(0.0, -4.0, 5.0))];
            muscle("quadriceps", thigh, 12.0, 1.4, 0.12);
            let calf =
                [("thigh", knee + Vec3::new(0.0, 4.0, -3.0)), ("foot", ankle + Vec3::new(0.0, -3.0, -5.0))];
            muscle("calf", calf, 10.0, 1.8, 0.15);
        }
        muscles
    }

    fn on_side(&self, vertex: usize, sign: f32) -> bool {
        self.mesh.positions()[vertex].x * sign > 0.0
    }

    /// The coat slides over shoulders, elbows and hips.
    fn slides(&self) -> Vec<Slide> {
        let mut slides = Vec::new();
        let area = |centre: Vec3, radius: f32, segments: &[&str]| -> VertexWeights {
            let weight = |vertex: usize| {
                let away = (self.mesh.positions()[vertex] - centre).length();
                if segments.contains(&self.segment_of(vertex)) {
                    smooth_step(radius, radius * 0.35, away)
                } else {
                    0.0
                }
            };
            let all = (0..self.body.cage.positions.len()).map(|vertex| (vertex as u32, weight(vertex)));
            all.filter(|(_, weight)| *weight > 0.0).collect()
        };
        for (side, sign) in [("l", 1.0), ("r", -1.0)] {
            let at = |point: Vec3| point * Vec3::new(sign, 1.0, 1.0);
            let mut slide =
                |name: &str, centre: Vec3, radius: f32, segments: &[&str], bones: [&str; 2], amount: f32| {
                    slides.push(Slide {
                        name: format!("{name} {side}"),
                        bone: self.bone(&format!("{}_{side}", bones[0])),
                        reference: self.bone(&if bones[1] == "chest" || bones[1] == "hips" {
                            bones[1].to_string()
                        } else {
                            format!("{}_{side}", bones[1])
                        }),
                        mask: area(at(centre), radius, segments),
                        amount,
                        limit: 4.0,
                    });
                };
            let shoulder = plan::SHOULDER;
            slide(
                "chest",
                shoulder + Vec3::new(-4.0, -10.0, 6.0),
                17.0,
                &["coat"],
                ["upper_arm", "chest"],
                0.22,
            );
            slide(
                "back",
                shoulder + Vec3::new(-4.0, -10.0, -8.0),
                18.0,
                &["coat"],
                ["upper_arm", "chest"],
                0.22,
            );
            slide("sleeve", plan::elbow(), 15.0, &["coat"], ["forearm", "upper_arm"], 0.24);
            slide(
                "seat",
                plan::HIP + Vec3::new(1.0, -2.0, -9.0),
                16.0,
                &["trousers"],
                ["thigh", "hips"],
                0.2,
            );
            slide("hip", plan::HIP + Vec3::new(6.0, 3.0, 4.0), 14.0, &["coat"], ["thigh", "hips"], 0.18);
            slide(
                "knee",
                plan::KNEE + Vec3::new(0.0, 2.0, 2.0),
                13.0,
                &["trousers"],
                ["calf", "thigh"],
                0.24,
            );
        }
        slides
    }

    fn limb(&self, bone: &str, side: (&str, f32), ends: [Vec3; 2], radii: [f32; 2]) -> Limb {
        let mirror = Vec3::new(side.1, 1.0, 1.0);
        Limb { bone: self.bone(&format!("{bone}_{}", side.0)), ends: ends.map(|end| end * mirror), radii }
    }

    /// The skirt against both legs.
    fn skirt(&self) -> Collide {
        let mut limbs = Vec::new();
        for side in [("l", 1.0), ("r", -1.0)] {
            limbs.push(self.limb("thigh", side, [plan::HIP, plan::KNEE], [8.6, 7.0]));
            limbs.push(self.limb("calf", side, [plan::KNEE, plan::ANKLE], [8.2, 6.2]));
            limbs.push(self.limb("foot", side, [plan::ANKLE, plan::BALL], [6.2, 5.2]));
        }
        let mut cloth = Vec::new();
        for (vertex, &share) in self.body.mask(Mask::Skirt).iter().enumerate() {
            if share < 0.02 || self.segment_of(vertex) == "trousers" {
                continue;
            }
            let position = self.mesh.positions()[vertex];
            let outward = Vec3::new(position.x, 0.0, position.z).normalize_or(Vec3::Z);
            let gap = if self.segment_of(vertex) == "lining" { 1.0 } else { 1.9 };
            cloth.push(Cloth { vertex: vertex as u32, outward, share: smooth_step(0.0, 0.8, share), gap });
        }
        Collide::new(self.bone("hips"), limbs, cloth, self.mesh.positions())
    }

    /// The mantle against one arm.
    fn mantle(&self, side: (&str, f32)) -> Collide {
        let arm = self.limb("upper_arm", side, [plan::SHOULDER, plan::elbow()], [6.6, 5.8]);
        let normals = understudy_core::normals::vertex_normals(self.mesh.faces(), self.mesh.positions());
        let mut cloth = Vec::new();
        for (vertex, position) in self.body_positions().iter().enumerate() {
            let lining = self.segment_of(vertex) == "lining" && position.y > 120.0;
            if !(self.segment_of(vertex) == "mantle" || lining) || !self.on_side(vertex, side.1) {
                continue;
            }
            let outward = if lining { -normals[vertex] } else { normals[vertex] };
            let share = smooth_step(7.0, 15.0, position.x.abs());
            let gap = if lining { 0.8 } else { 1.9 };
            cloth.push(Cloth { vertex: vertex as u32, outward, share, gap });
        }
        Collide::new(self.bone(&format!("mantle_{}", side.0)), vec![arm], cloth, self.mesh.positions())
    }

    /// The stack in its order.
    pub fn deformers(&self, weights: &SkinWeights) -> Result<Vec<Box<dyn Deformer>>, RigError> {
        let size = RigSize::new(self.mesh, Some(self.skeleton), self.specs);
        let mush = DeltaMushConfig {
            iterations: 12,
            step: 0.6,
            mask: self.mush_mask(),
            smallest_island: 3000,
            ..DeltaMushConfig::default()
        };
        Ok(vec![
            Box::new(Skinning::new(weights.clone(), self.dual_zones(weights), &size)?),
            Box::new(MuscleBulge::new(self.muscles(), &size)?),
            Box::new(SkinSlide::new(self.slides(), self.mesh, &size)?),
            Box::new(Gather::new(self.skeleton, self.body)),
            Box::new(self.skirt()),
            Box::new(self.mantle(("l", 1.0))),
            Box::new(self.mantle(("r", -1.0))),
            Box::new(DeltaMush::new(mush, self.mesh, &size)?),
            Box::new(Wrinkles::new(wear::folds(self.mesh, self.specs), self.mesh, &size)?),
        ])
    }

    /// Fingers keep their sharp joints, the mask is hard.
    fn mush_mask(&self) -> Vec<f32> {
        let weight = |vertex: usize| match self.segment_of(vertex) {
            "mask" | "beak" => 0.0,
            "glove" => 0.35,
            "belt" | "boot" => 0.6,
            _ => 1.0,
        };
        (0..self.mesh.vertex_count()).map(weight).collect()
    }
}
