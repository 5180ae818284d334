//! A twin of any kind, and the kinds. The set is closed: a new kind is a module here, a variant, and an arm in
//! [`Twin::parse`], `Twin::kind` and `Twin::inner`.

#[cfg(feature = "body")]
pub mod body;
#[cfg(feature = "diff")]
pub mod diff;
#[cfg(feature = "face")]
pub mod face;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod network;
#[cfg(not(feature = "internals"))]
pub(crate) mod network;
mod part;
pub(crate) mod shared;
#[cfg(feature = "skin")]
pub mod skin;
mod skinning;

pub use network::DenseParts;
pub use network::motion::MotionParts;

use crate::container::Opened;
use crate::mechanism::{Mechanism, file as section};
use crate::player::Play;
use crate::{Header, Player, Precision, TwinError};
use std::sync::Arc;
use understudy_core::{Affine3A, ControlSpecs, Face};

#[cfg(feature = "body")]
use body::BodyTwin;
#[cfg(feature = "diff")]
use diff::DiffTwin;
#[cfg(feature = "face")]
use face::FaceTwin;
#[cfg(feature = "skin")]
use skin::SkinTwin;

#[cfg(not(any(feature = "body", feature = "diff", feature = "face", feature = "skin")))]
compile_error!("choose at least one kind of twin: the feature `body`, `diff`, `face` or `skin`");

/// A loaded twin. Cloning it copies nothing.
#[derive(Debug, Clone)]
pub enum Twin {
    /// Bones in, vertices out.
    #[cfg(feature = "body")]
    Body(Arc<BodyTwin>),
    /// Bones and controls in, or controls alone, vertices out.
    #[cfg(feature = "diff")]
    Diff(Arc<DiffTwin>),
    /// Controls in, vertices out.
    #[cfg(feature = "face")]
    Face(Arc<FaceTwin>),
    /// Controls in, vertices out, by bones of its own.
    #[cfg(feature = "skin")]
    Skin(Arc<SkinTwin>),
}

/// What every kind can do.
pub(crate) trait Kind {
    fn method(&self) -> &'static str;
    fn header(&self) -> &Header;
    fn vertex_count(&self) -> usize;
    fn faces(&self) -> &[Face];
    fn precision(&self) -> Precision;
    fn multiply_adds(&self) -> usize;
    fn network_bytes(&self) -> usize;
    fn rest_bones(&self) -> &[Affine3A] {
        &[]
    }
    fn mechanism(&self) -> Option<&Arc<Mechanism>> {
        None
    }
    fn to_bytes(&self) -> Result<Vec<u8>, TwinError>;
    /// Memory for so many tasks.
    fn play(self: Arc<Self>, tasks: usize) -> Box<dyn Play>;
}

impl Twin {
    /// Reads a twin's file and checks everything about it. Weights stay in the precision of the file.
    pub fn parse(bytes: &[u8]) -> Result<Self, TwinError> {
        let file = Opened::parse(bytes)?;
        let twin: Self = match file.method()? {
            #[cfg(feature = "body")]
            body::file::METHOD => body::file::read(&file)?.into(),
            #[cfg(feature = "diff")]
            diff::file::METHOD => diff::file::read(&file)?.into(),
            #[cfg(feature = "face")]
            face::file::METHOD => face::file::read(&file)?.into(),
            #[cfg(feature = "skin")]
            skin::file::METHOD => skin::file::read(&file)?.into(),
            other => {
                let problem = format!("a twin of method '{other}', which this program does not play");
                return Err(TwinError::Kind(problem));
            }
        };
        match section::read(&file)? {
            Some(mechanism) => twin.with_mechanism(mechanism),
            None => Ok(twin),
        }
    }

    /// The same twin, which is posed by controls alone too. The mechanism must move its bones, in their order.
    pub fn with_mechanism(self, mechanism: Mechanism) -> Result<Self, TwinError> {
        mechanism.check(self.header())?;
        #[cfg(any(feature = "body", feature = "diff"))]
        let mechanism = Some(Arc::new(mechanism));
        match self {
            #[cfg(feature = "body")]
            Self::Body(twin) => {
                let mut twin = Arc::unwrap_or_clone(twin);
                twin.mechanism = mechanism;
                Ok(twin.into())
            }
            #[cfg(feature = "diff")]
            Self::Diff(twin) if !twin.header().inputs.bones.is_empty() => {
                let mut twin = Arc::unwrap_or_clone(twin);
                twin.mechanism = mechanism;
                Ok(twin.into())
            }
            #[allow(unreachable_patterns)] // With bodies alone there is no other.
            _ => {
                let problem = "the twin has no bones that it could move".into();
                Err(TwinError::Part { what: "mechanism".into(), problem })
            }
        }
    }

    /// What turns controls into the bones that pose it; `None` where nobody learned it, and of twins without bones.
    pub fn mechanism(&self) -> Option<&Mechanism> {
        self.inner().mechanism().map(|mechanism| &**mechanism)
    }

    /// The controls whose values [`Pose::Controls`](crate::Pose::Controls) takes, in their order: of a twin without bones
    /// the header's, of one with bones those of its mechanism; `None` where it is posed by bones alone.
    pub fn posing_controls(&self) -> Option<&ControlSpecs> {
        let inputs = &self.header().inputs;
        match self.mechanism() {
            Some(mechanism) => Some(mechanism.specs()),
            None => (inputs.bones.is_empty() && self.posed_by_controls()).then_some(&inputs.controls),
        }
    }

    /// Whether a twin of this kind is posed by controls where it has no bones.
    fn posed_by_controls(&self) -> bool {
        match self {
            #[cfg(feature = "body")]
            Self::Body(_) => false,
            #[allow(unreachable_patterns)] // With bodies alone there is no other.
            _ => true,
        }
    }

    fn kind(&self) -> Arc<dyn Kind> {
        match self {
            #[cfg(feature = "body")]
            Self::Body(twin) => Arc::clone(twin) as Arc<dyn Kind>,
            #[cfg(feature = "diff")]
            Self::Diff(twin) => Arc::clone(twin) as Arc<dyn Kind>,
            #[cfg(feature = "face")]
            Self::Face(twin) => Arc::clone(twin) as Arc<dyn Kind>,
            #[cfg(feature = "skin")]
            Self::Skin(twin) => Arc::clone(twin) as Arc<dyn Kind>,
        }
    }

    fn inner(&self) -> &dyn Kind {
        match self {
            #[cfg(feature = "body")]
            Self::Body(twin) => &**twin,
            #[cfg(feature = "diff")]
            Self::Diff(twin) => &**twin,
            #[cfg(feature = "face")]
            Self::Face(twin) => &**twin,
            #[cfg(feature = "skin")]
            Self::Skin(twin) => &**twin,
        }
    }

    /// The bytes of its file. Same twin, same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TwinError> {
        self.inner().to_bytes()
    }

    /// The name of its kind, as files have it.
    pub fn method(&self) -> &'static str {
        self.inner().method()
    }

    /// What it is.
    pub fn header(&self) -> &Header {
        self.inner().header()
    }

    /// Number of vertices that it moves.
    pub fn vertex_count(&self) -> usize {
        self.inner().vertex_count()
    }

    /// The faces of its mesh; empty where the file has none.
    pub fn faces(&self) -> &[Face] {
        self.inner().faces()
    }

    /// How its weights are kept, but for those where it would show.
    pub fn precision(&self) -> Precision {
        self.inner().precision()
    }

    /// Multiply-adds of its networks per pose.
    pub fn multiply_adds(&self) -> usize {
        self.inner().multiply_adds()
    }

    /// Bytes of its weights in memory, each of which a pose reads.
    pub fn network_bytes(&self) -> usize {
        self.inner().network_bytes()
    }

    /// World transforms of its bones at rest, cm; empty for a kind that is posed by controls alone.
    pub fn rest_bones(&self) -> &[Affine3A] {
        self.inner().rest_bones()
    }

    /// Memory to play it with, on so many threads, the caller's included; on fewer where the system gives no more.
    pub fn player(&self, threads: usize) -> Player {
        Player::new(self.clone(), threads, self.inner().mechanism(), |tasks| self.kind().play(tasks))
    }
}

#[cfg(feature = "body")]
impl From<Arc<BodyTwin>> for Twin {
    fn from(twin: Arc<BodyTwin>) -> Self {
        Self::Body(twin)
    }
}

#[cfg(feature = "face")]
impl From<Arc<FaceTwin>> for Twin {
    fn from(twin: Arc<FaceTwin>) -> Self {
        Self::Face(twin)
    }
}

#[cfg(feature = "body")]
impl From<BodyTwin> for Twin {
    fn from(twin: BodyTwin) -> Self {
        Arc::new(twin).into()
    }
}

#[cfg(feature = "face")]
impl From<FaceTwin> for Twin {
    fn from(twin: FaceTwin) -> Self {
        Arc::new(twin).into()
    }
}

#[cfg(feature = "diff")]
impl From<Arc<DiffTwin>> for Twin {
    fn from(twin: Arc<DiffTwin>) -> Self {
        Self::Diff(twin)
    }
}

#[cfg(feature = "diff")]
impl From<DiffTwin> for Twin {
    fn from(twin: DiffTwin) -> Self {
        Arc::new(twin).into()
    }
}

#[cfg(feature = "skin")]
impl From<Arc<SkinTwin>> for Twin {
    fn from(twin: Arc<SkinTwin>) -> Self {
        Self::Skin(twin)
    }
}

#[cfg(feature = "skin")]
impl From<SkinTwin> for Twin {
    fn from(twin: SkinTwin) -> Self {
        Arc::new(twin).into()
    }
}
