//! What a twin is compared with, fitted to poses of the same recording: rigid and linear blend skinning,
//! rotational regression, weighted pose-space deformation, delta mush, linear subspaces. Start at [`Baseline`].

mod key_points;
mod mush;
mod pose_space;
mod rotational;
pub mod skinning;
mod subspace;

#[cfg(test)]
mod tests;

pub use key_points::KeyPointSubspace;
pub use mush::{DirectDeltaMush, MushedSkin};
pub use pose_space::PoseSpace;
pub use rotational::RotationalRegression;
pub use skinning::Skinned;
pub use subspace::LinearSubspace;

use crate::{Frame, Recording};
use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;
use subspace::Subspace;
use understudy_core::{Affine3A, SkinWeights, Vec3};

/// Poses that skins are fitted to.
const SKINNING_POSES: usize = 200;

/// Something that moves vertices from bones and controls, fitted to examples.
pub trait Approximation: Send + Sync {
    /// Short, for tables and JSON.
    fn name(&self) -> &str;

    /// Size of the model.
    fn bytes(&self) -> usize;

    /// Moves the vertices, `[V]`. The truth in `frame` is only for methods that say so.
    fn evaluate(&self, frame: Frame<'_>, out: &mut [Vec3]);

    /// What fitting found, beyond what mesh and skeleton say: enough to restore the fit.
    fn parameters(&self) -> Parameters;
}

/// The numbers of a fit, in an order that the method knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters {
    /// Lists of whole numbers.
    pub integers: Vec<Vec<u32>>,
    /// Lists of numbers.
    pub floats: Vec<Vec<f32>>,
}

/// A method to compare a twin with, by the name that tables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// `rigid`: the best single bone of every vertex.
    Rigid,
    /// `lbs4`: linear blend skinning with four influences.
    Skinning4,
    /// `lbs_all`: with any number of influences.
    SkinningAll,
    /// `rr2`, `rr15`: rotational regression from so many joints.
    Rotational(usize),
    /// `wpsd10`, `wpsd50`, …: weighted pose-space deformation with so many examples.
    PoseSpace(usize),
    /// `lbs`: linear blend skinning by the rig's own skin, or by the fitted one of `lbs4` where it shows none.
    OwnSkin,
    /// `delta_mush`: delta mush over that skin.
    DeltaMush,
    /// `ddm`: direct delta mush, variant v0, over that skin.
    DirectDeltaMush,
    /// `pca`: principal components by linear regression from bones and controls.
    LinearSubspace,
    /// `kpsa`: principal components from the true places of 274 key points, which an engine does not know.
    KeyPoints,
    /// `kpsa_predicted`: the same from key points that a small network predicts.
    PredictedKeyPoints,
}

impl Baseline {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 14] = [
        Self::Rigid,
        Self::Skinning4,
        Self::SkinningAll,
        Self::Rotational(2),
        Self::Rotational(15),
        Self::PoseSpace(10),
        Self::PoseSpace(50),
        Self::PoseSpace(100),
        Self::OwnSkin,
        Self::DeltaMush,
        Self::DirectDeltaMush,
        Self::LinearSubspace,
        Self::KeyPoints,
        Self::PredictedKeyPoints,
    ];
    /// What is compared unless more is asked for: one of each kind, the ones that are fitted within seconds on a
    /// rig of 500 bones.
    pub const USUAL: [Self; 4] = [Self::Rigid, Self::Skinning4, Self::Rotational(2), Self::PoseSpace(10)];
    /// Those that make sense of twins without bones too, whose rig may have some.
    pub const OF_ANY_TWIN: [Self; 6] = [
        Self::OwnSkin,
        Self::DeltaMush,
        Self::DirectDeltaMush,
        Self::LinearSubspace,
        Self::KeyPoints,
        Self::PredictedKeyPoints,
    ];
    /// The most poses that any of them is fitted to: twice as many as methods of bones, so that every second
    /// of them are those.
    pub const MOST_POSES: usize = 2 * Self::BONE_POSES;
    /// The most poses that methods of bones are fitted to.
    pub(crate) const BONE_POSES: usize = 400;
    /// Increase it when any fit changes: fits that were kept are then made again.
    pub const VERSION: u32 = 1;

    /// The method of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|baseline| baseline.to_string() == name)
    }

    /// How many of a number of poses it is fitted to.
    pub fn poses(self, available: usize) -> usize {
        match self {
            Self::Rigid | Self::Skinning4 | Self::SkinningAll => available.min(SKINNING_POSES),
            Self::Rotational(_) => available.min(Self::BONE_POSES),
            Self::PoseSpace(examples) => pose_space::example_count(examples, available.min(Self::BONE_POSES)),
            // Where the rig shows a skin it is fitted to nothing.
            Self::OwnSkin | Self::DeltaMush | Self::DirectDeltaMush => available.min(SKINNING_POSES),
            Self::LinearSubspace | Self::KeyPoints | Self::PredictedKeyPoints => {
                available.min(Self::MOST_POSES)
            }
        }
    }

    /// How many poses must be read for it.
    pub fn most_poses(self) -> usize {
        match self {
            Self::LinearSubspace | Self::KeyPoints | Self::PredictedKeyPoints => Self::MOST_POSES,
            _ => Self::BONE_POSES,
        }
    }

    /// Whether it moves vertices by bones, which not every recording has.
    pub fn needs_bones(self) -> bool {
        !matches!(self, Self::LinearSubspace | Self::KeyPoints | Self::PredictedKeyPoints)
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rigid => out.write_str("rigid"),
            Self::Skinning4 => out.write_str("lbs4"),
            Self::SkinningAll => out.write_str("lbs_all"),
            Self::Rotational(joints) => write!(out, "rr{joints}"),
            Self::PoseSpace(examples) => write!(out, "wpsd{examples}"),
            Self::OwnSkin => out.write_str("lbs"),
            Self::DeltaMush => out.write_str("delta_mush"),
            Self::DirectDeltaMush => out.write_str("ddm"),
            Self::LinearSubspace => out.write_str("pca"),
            Self::KeyPoints => out.write_str("kpsa"),
            Self::PredictedKeyPoints => out.write_str("kpsa_predicted"),
        }
    }
}

/// Fits one baseline after another; what several need is fitted once.
pub struct Fitter<'a> {
    examples: Examples<'a>,
    rigid: OnceCell<Skinned>,
    skinning4: OnceCell<Skinned>,
    /// And the coefficients of the poses.
    subspace: OnceCell<(Arc<Subspace>, Vec<f32>)>,
}

impl<'a> Fitter<'a> {
    /// For these poses; at most [`Baseline::MOST_POSES`] of them are used.
    pub fn new(examples: Examples<'a>) -> Self {
        Self { examples, rigid: OnceCell::new(), skinning4: OnceCell::new(), subspace: OnceCell::new() }
    }

    fn rigid(&self) -> &Skinned {
        self.rigid.get_or_init(|| Skinned::rigid(&self.examples))
    }

    fn skinning4(&self) -> &Skinned {
        self.skinning4.get_or_init(|| Skinned::fit("lbs4", &self.examples, 4, 16))
    }

    /// The rig's own skin, or the fitted one where it shows none.
    fn own_skin(&self) -> Skinned {
        let Examples { rest, inverse_rest, weights, .. } = self.examples;
        let weights = weights.map_or_else(|| self.skinning4().weights.clone(), SkinWeights::clone);
        Skinned { name: "lbs".into(), rest: rest.to_vec(), inverse_rest: inverse_rest.to_vec(), weights }
    }

    fn subspace(&self) -> &(Arc<Subspace>, Vec<f32>) {
        self.subspace.get_or_init(|| {
            let (subspace, coefficients) = Subspace::fit(&self.examples, subspace::VECTORS);
            (Arc::new(subspace), coefficients)
        })
    }

    /// Fits one.
    pub fn fit(&self, baseline: Baseline) -> Arc<dyn Approximation> {
        let (name, examples) = (baseline.to_string(), &self.examples);
        match baseline {
            Baseline::Rigid => Arc::new(self.rigid().clone()),
            Baseline::Skinning4 => Arc::new(self.skinning4().clone()),
            Baseline::SkinningAll => Arc::new(Skinned::fit(&name, examples, usize::MAX, usize::MAX)),
            Baseline::Rotational(joints) => {
                Arc::new(RotationalRegression::fit(&name, examples, self.rigid(), joints))
            }
            Baseline::PoseSpace(count) => Arc::new(PoseSpace::fit(&name, examples, self.skinning4(), count)),
            Baseline::OwnSkin => Arc::new(self.own_skin()),
            Baseline::DeltaMush => Arc::new(MushedSkin::new(examples, self.own_skin())),
            Baseline::DirectDeltaMush => Arc::new(DirectDeltaMush::new(examples, self.own_skin())),
            Baseline::LinearSubspace => {
                let (subspace, coefficients) = self.subspace();
                Arc::new(LinearSubspace::fit(examples.poses, subspace, coefficients))
            }
            Baseline::KeyPoints => Arc::new(KeyPointSubspace::fit(&self.subspace().0)),
            Baseline::PredictedKeyPoints => {
                Arc::new(KeyPointSubspace::fit_predicted(examples.poses, &self.subspace().0))
            }
        }
    }

    /// The fit that these parameters were taken from; `None` where they cannot be of this mesh and skeleton.
    /// Needs no poses.
    pub fn restore(&self, baseline: Baseline, parameters: &Parameters) -> Option<Arc<dyn Approximation>> {
        let (name, examples) = (baseline.to_string(), &self.examples);
        Some(match baseline {
            Baseline::Rigid | Baseline::Skinning4 | Baseline::SkinningAll => {
                let skin = Skinned::restore(&name, examples, parameters)?;
                // Already there when the same baseline is named twice.
                let _ = match baseline {
                    Baseline::Rigid => self.rigid.set(skin.clone()),
                    Baseline::Skinning4 => self.skinning4.set(skin.clone()),
                    _ => Ok(()),
                };
                Arc::new(skin)
            }
            Baseline::Rotational(joints) => {
                Arc::new(RotationalRegression::restore(&name, examples, joints, parameters)?)
            }
            Baseline::PoseSpace(_) => Arc::new(PoseSpace::restore(&name, examples, parameters)?),
            Baseline::OwnSkin => Arc::new(Skinned::restore(&name, examples, parameters)?),
            Baseline::DeltaMush => {
                Arc::new(MushedSkin::new(examples, Skinned::restore("lbs", examples, parameters)?))
            }
            Baseline::DirectDeltaMush => {
                Arc::new(DirectDeltaMush::new(examples, Skinned::restore("lbs", examples, parameters)?))
            }
            Baseline::LinearSubspace => Arc::new(LinearSubspace::restore(examples, parameters)?),
            Baseline::KeyPoints => Arc::new(KeyPointSubspace::restore(examples, parameters, false)?),
            Baseline::PredictedKeyPoints => Arc::new(KeyPointSubspace::restore(examples, parameters, true)?),
        })
    }
}

/// Poses to fit to.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    /// The recorded poses.
    pub poses: &'a Recording,
    /// `[V]` cm.
    pub rest: &'a [Vec3],
    /// World → bone in the rest pose, `[J]`; empty without bones.
    pub inverse_rest: &'a [Affine3A],
    /// The rig's own skin, where it shows one.
    pub weights: Option<&'a SkinWeights>,
}

impl Examples<'_> {
    /// Skinning matrices and vertices of at most `most` poses, spread evenly.
    pub fn skinning(&self, most: usize) -> Vec<(Vec<Affine3A>, Vec<Vec3>)> {
        let matrices = |pose: usize| {
            self.poses
                .bones_of(pose)
                .iter()
                .zip(self.inverse_rest)
                .map(|(bone, rest)| *bone * *rest)
                .collect()
        };
        let chosen = self.poses.spread(most);
        chosen.iter().map(|pose| (matrices(*pose), self.poses.vertices_of(*pose).to_vec())).collect()
    }
}
