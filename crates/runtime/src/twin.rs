//! A twin of any kind. The set is closed: a `match` finds the places that a new kind changes.

use crate::container::Opened;
use crate::{Header, Player, Precision, TwinError};
use std::sync::Arc;
use understudy_core::Face;

#[cfg(feature = "body")]
use crate::body::{self, BodyTwin};
#[cfg(feature = "face")]
use crate::face::{self, FaceTwin};

/// A loaded twin. Cloning it copies nothing.
#[derive(Debug, Clone)]
pub enum Twin {
    /// Bones in, vertices out.
    #[cfg(feature = "body")]
    Body(Arc<BodyTwin>),
    /// Controls in, vertices out.
    #[cfg(feature = "face")]
    Face(Arc<FaceTwin>),
}

impl Twin {
    /// Reads a twin's file and checks everything about it. Weights stay in the precision of the file.
    pub fn parse(bytes: &[u8]) -> Result<Self, TwinError> {
        let file = Opened::parse(bytes)?;
        match file.method()? {
            #[cfg(feature = "body")]
            body::file::METHOD => Ok(body::file::read(&file)?.into()),
            #[cfg(feature = "face")]
            face::file::METHOD => Ok(face::file::read(&file)?.into()),
            other => {
                Err(TwinError::Kind(format!("a twin of method '{other}', which this program does not play")))
            }
        }
    }

    /// The bytes of its file. Same twin, same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TwinError> {
        match self {
            #[cfg(feature = "body")]
            Self::Body(twin) => body::to_bytes(&twin.parts(), twin.precision()),
            #[cfg(feature = "face")]
            Self::Face(twin) => face::to_bytes(&twin.parts(), twin.precision()),
        }
    }

    /// The name of its kind, as files have it.
    pub fn method(&self) -> &'static str {
        match self {
            #[cfg(feature = "body")]
            Self::Body(_) => body::file::METHOD,
            #[cfg(feature = "face")]
            Self::Face(_) => face::file::METHOD,
        }
    }

    /// What it is.
    pub fn header(&self) -> &Header {
        match self {
            #[cfg(feature = "body")]
            Self::Body(twin) => twin.header(),
            #[cfg(feature = "face")]
            Self::Face(twin) => twin.header(),
        }
    }

    /// Number of vertices that it moves.
    pub fn vertex_count(&self) -> usize {
        match self {
            #[cfg(feature = "body")]
            Self::Body(twin) => twin.vertex_count(),
            #[cfg(feature = "face")]
            Self::Face(twin) => twin.vertex_count(),
        }
    }

    /// The faces of its mesh; empty where the file has none.
    pub fn faces(&self) -> &[Face] {
        match self {
            #[cfg(feature = "body")]
            Self::Body(twin) => twin.faces(),
            #[cfg(feature = "face")]
            Self::Face(twin) => twin.mesh().faces(),
        }
    }

    /// How its weights are kept, but for those where it would show.
    pub fn precision(&self) -> Precision {
        match self {
            #[cfg(feature = "body")]
            Self::Body(twin) => twin.precision(),
            #[cfg(feature = "face")]
            Self::Face(twin) => twin.precision(),
        }
    }

    /// Multiply-adds of its networks per pose.
    pub fn multiply_adds(&self) -> usize {
        match self {
            #[cfg(feature = "body")]
            Self::Body(twin) => twin.multiply_adds(),
            #[cfg(feature = "face")]
            Self::Face(twin) => twin.multiply_adds(),
        }
    }

    /// Memory to play it with, on so many threads, the caller's included; on fewer where the system gives no more.
    pub fn player(&self, threads: usize) -> Player {
        Player::new(self.clone(), threads)
    }
}

#[cfg(feature = "body")]
impl From<BodyTwin> for Twin {
    fn from(twin: BodyTwin) -> Self {
        Self::Body(Arc::new(twin))
    }
}

#[cfg(feature = "face")]
impl From<FaceTwin> for Twin {
    fn from(twin: FaceTwin) -> Self {
        Self::Face(Arc::new(twin))
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
