//! What an inversion may be asked to do: plain settings with defaults, checked once against a rig into a
//! [`Plan`] of index tables.

use super::error::InverseError;
use super::gram::Gram;
use super::shape_energy;
use super::terms::TermTable;
use serde::{Deserialize, Serialize};

/// How the weights are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Coordinate descent on the rig with all its correctives (Algorithm 1), whatever their level; the
    /// paper's rigs have up to four factors.
    #[default]
    Quartic,
    /// Coordinate descent on the rig without its correctives.
    Linear,
    /// One greedy pass over the linear rig, no regularisation, no upper bound (eq. 4; Seol et al. 2011).
    Seol,
    /// The pseudo-inverse of the linear rig (eq. 3; Joshi et al. 2006), clipped to the box.
    Joshi,
    /// Ridge regression on the linear rig (eq. 17; Çetinaslan and Orvalho 2020), clipped to the box.
    Cetinaslan,
    /// Majorisation–minimisation on the rig with its pair correctives (eq. 18; Racković et al. 2022).
    Lmmm,
}

impl Method {
    /// All of them, in the order of the paper's tables.
    pub const ALL: [Self; 6] =
        [Self::Quartic, Self::Linear, Self::Seol, Self::Joshi, Self::Cetinaslan, Self::Lmmm];

    /// As the paper's tables call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Quartic => "Quartic",
            Self::Linear => "Linear",
            Self::Seol => "Seol",
            Self::Joshi => "Joshi",
            Self::Cetinaslan => "Çetinaslan",
            Self::Lmmm => "LMMM",
        }
    }

    /// Whether it visits one weight after the other.
    pub fn is_descent(self) -> bool {
        matches!(self, Self::Quartic | Self::Linear | Self::Seol)
    }
}

/// Which weight is updated next (section 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By `‖b_i‖²`, largest first (eq. 14).
    #[default]
    Decreasing,
    /// By `‖b_i‖²`, smallest first.
    Increasing,
    /// One random permutation a frame.
    Random,
    /// By correlation with the frame, `b_iᵀb̂/‖b_i‖`, largest first.
    FrameCorrelation,
    /// The largest correlation with what is left of the frame, `|b_iᵀ(b̂ − f)|/‖b_i‖`, among the shapes not
    /// yet visited in this pass that may still move that way.
    IterationCorrelation,
    /// The steepest derivative among weights that may move that way.
    GaussSouthwell,
    /// The update that lowers the cost most.
    MaximumImprovement,
}

impl Order {
    /// All of them, in the order of the paper's Table 8.
    pub const ALL: [Self; 7] = [
        Self::Decreasing,
        Self::Random,
        Self::Increasing,
        Self::FrameCorrelation,
        Self::IterationCorrelation,
        Self::MaximumImprovement,
        Self::GaussSouthwell,
    ];

    /// As the paper's Table 8 calls it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Decreasing => "Decreasing magnitude",
            Self::Increasing => "Increasing magnitude",
            Self::Random => "Random ordering",
            Self::FrameCorrelation => "Frame correlation",
            Self::IterationCorrelation => "Iteration correlation",
            Self::GaussSouthwell => "Gauss–Southwell",
            Self::MaximumImprovement => "Maximum improvement",
        }
    }
}

/// The price `α ≥ 0` of a weight (eq. 6): more gives fewer weights.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Alpha {
    /// Times the mean `‖b_i‖²` of the shapes that are seen ([`super::InverseRig::shape_energy`]): no units, the
    /// same for a head in metres and in millimetres, whole or in markers. A shape of that energy, alone, comes
    /// out too small by this much.
    Share(f64),
    /// cm², as in the paper.
    Absolute(f64),
}

impl Alpha {
    /// No price.
    pub const ZERO: Self = Self::Absolute(0.0);

    /// In cm², for a rig of that shape energy.
    pub fn in_square_centimetres(self, shape_energy: f64) -> f64 {
        match self {
            Self::Share(share) => share * shape_energy,
            Self::Absolute(alpha) => alpha,
        }
    }
}

/// How strongly the two weights of a symmetric pair hold together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Symmetry {
    /// They are one weight.
    Tied,
    /// The cost gains `½ s (w_left − w_right)²`, cm².
    Soft(f64),
}

/// What happens to target vertices that are not finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// They are an error that names the vertex.
    #[default]
    Refuse,
    /// They are holes: the frame is solved without them.
    Ignore,
}

/// All settings of one inversion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InverseSettings {
    /// How.
    pub method: Method,
    /// For [`Method::Quartic`]: leave out correctives of more factors than this. `None` keeps all.
    pub max_level: Option<usize>,
    /// The weight `α` of `1ᵀw` (eq. 6); for [`Method::Cetinaslan`] of its ridge.
    pub alpha: Alpha,
    /// At most this many passes over all weights; the greedy orders may take as many single steps.
    pub passes: usize,
    /// Stop earlier when no weight moves by more than this. 0 stops only when nothing moves at all.
    pub tolerance: f64,
    /// After five passes, a Newton step on all weights before every further pass. It is taken where it lowers
    /// the cost; rigs whose shapes are nearly dependent do not converge without.
    pub newton: bool,
    /// Which weight next.
    pub order: Order,
    /// For [`Order::Random`].
    pub seed: u64,
    /// Upper bound of every weight; `None` for none. The lower bound is 0.
    pub upper: Option<f64>,
    /// Pairs of shape names, left and right, that hold together as `symmetry` says.
    pub symmetric: Vec<[String; 2]>,
    /// How strongly.
    pub symmetry: Symmetry,
    /// Groups of shape names of which at most one may be on.
    pub exclusive: Vec<Vec<String>>,
    /// NaN in a target.
    pub missing: Missing,
}

impl Default for InverseSettings {
    /// Until the weights have settled, with an α that leaves clean targets as they are and decides between
    /// shapes that could do the same.
    fn default() -> Self {
        Self {
            method: Method::Quartic,
            max_level: None,
            alpha: Alpha::Share(1e-5),
            passes: 100,
            tolerance: 1e-6,
            newton: true,
            order: Order::Decreasing,
            seed: 0,
            upper: Some(1.0),
            symmetric: Vec::new(),
            symmetry: Symmetry::Tied,
            exclusive: Vec::new(),
            missing: Missing::Refuse,
        }
    }
}

impl InverseSettings {
    /// The paper's: quartic, α = 0.5 cm², five passes and nothing after them.
    pub fn paper() -> Self {
        Self { alpha: Alpha::Absolute(0.5), passes: 5, tolerance: 0.0, newton: false, ..Self::default() }
    }

    /// [`Self::paper`] with another method, for comparisons.
    pub fn paper_with(method: Method) -> Self {
        Self { method, ..Self::paper() }
    }
}

pub(crate) const NONE: u32 = u32::MAX;

/// Settings that have been checked against a rig, names resolved to indices.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) method: Method,
    /// How many terms the solve sees.
    pub(crate) count: usize,
    /// cm².
    pub(crate) alpha: f64,
    pub(crate) passes: usize,
    pub(crate) tolerance: f64,
    pub(crate) newton: bool,
    pub(crate) order: Order,
    pub(crate) seed: u64,
    pub(crate) upper: f64,
    pub(crate) missing: Missing,
    /// Shapes by decreasing or increasing norm.
    pub(crate) by_norm: Vec<u32>,
    /// The other shape of a symmetric pair, or [`NONE`].
    pub(crate) partner: Vec<u32>,
    /// Infinite when the pairs are tied.
    pub(crate) strength: f64,
    /// The exclusive group of a shape, or [`NONE`].
    pub(crate) group: Vec<u32>,
    pub(crate) members: Vec<Vec<u32>>,
}

impl Plan {
    pub(crate) fn new(
        settings: &InverseSettings,
        names: &[String],
        table: &TermTable,
        gram: &Gram,
    ) -> Result<Self, InverseError> {
        let bad =
            |name, value: f64, want| Err(InverseError::Setting { name, value: value.to_string(), want });
        let (Alpha::Share(given) | Alpha::Absolute(given)) = settings.alpha;
        if !given.is_finite() || given < 0.0 {
            return bad("alpha", given, "it must be finite and not negative");
        }
        if !settings.tolerance.is_finite() || settings.tolerance < 0.0 {
            return bad("tolerance", settings.tolerance, "it must be finite and not negative");
        }
        if settings.passes == 0 {
            return bad("passes", 0.0, "it must be at least 1");
        }
        if settings.max_level == Some(0) {
            return bad("max_level", 0.0, "1 is the linear rig");
        }
        if let Some(upper) = settings.upper
            && !(upper.is_finite() && upper > 0.0)
        {
            return bad("upper", upper, "it must be a positive number");
        }
        let mut plan = Self {
            method: settings.method,
            count: table.count(settings.max_level),
            alpha: settings.alpha.in_square_centimetres(shape_energy(gram, names.len())),
            passes: settings.passes,
            tolerance: settings.tolerance,
            newton: settings.newton,
            order: settings.order,
            seed: settings.seed,
            upper: settings.upper.unwrap_or(f64::INFINITY),
            missing: settings.missing,
            by_norm: Vec::new(),
            partner: vec![NONE; names.len()],
            strength: 0.0,
            group: vec![NONE; names.len()],
            members: Vec::new(),
        };
        plan.pair(settings, names)?;
        match settings.method {
            Method::Quartic => {}
            Method::Linear | Method::Joshi | Method::Cetinaslan => plan.count = table.shape_count(),
            Method::Lmmm => plan.count = table.count(Some(2)),
            Method::Seol => {
                plan.count = table.shape_count();
                plan.alpha = 0.0;
                plan.passes = 1;
                plan.newton = false;
                plan.upper = f64::INFINITY;
                plan.order = Order::Decreasing;
            }
        }
        let mut by_norm: Vec<u32> = (0..names.len() as u32).collect();
        let norm = |shape: u32| gram.at(shape as usize, shape as usize);
        by_norm.sort_by(|a, b| norm(*b).total_cmp(&norm(*a)).then(a.cmp(b)));
        if plan.order == Order::Increasing {
            by_norm.reverse();
        }
        plan.by_norm = by_norm;
        Ok(plan)
    }

    fn pair(&mut self, settings: &InverseSettings, names: &[String]) -> Result<(), InverseError> {
        if settings.symmetric.is_empty() && settings.exclusive.is_empty() {
            return Ok(());
        }
        if !matches!(settings.method, Method::Quartic | Method::Linear) {
            return Err(InverseError::Setting {
                name: "method",
                value: settings.method.title().into(),
                want: "symmetric pairs and exclusive groups need quartic or linear",
            });
        }
        self.strength = match settings.symmetry {
            Symmetry::Tied => f64::INFINITY,
            Symmetry::Soft(strength) if strength.is_finite() && strength >= 0.0 => strength,
            Symmetry::Soft(strength) => {
                let want = "it must be finite and not negative";
                return Err(InverseError::Setting { name: "symmetry", value: strength.to_string(), want });
            }
        };
        let mut used = vec![false; names.len()];
        let mut find = |what, name: &String| {
            let index = names.iter().position(|other| other == name);
            let index = index.ok_or_else(|| InverseError::UnknownShape { what, name: name.clone() })?;
            if std::mem::replace(&mut used[index], true) {
                return Err(InverseError::Overlap { name: name.clone() });
            }
            Ok(index as u32)
        };
        for [left, right] in &settings.symmetric {
            let (left, right) = (find("a symmetric pair", left)?, find("a symmetric pair", right)?);
            self.partner[left as usize] = right;
            self.partner[right as usize] = left;
        }
        for group in &settings.exclusive {
            let members: Vec<u32> =
                group.iter().map(|name| find("an exclusive group", name)).collect::<Result<_, _>>()?;
            members.iter().for_each(|member| self.group[*member as usize] = self.members.len() as u32);
            self.members.push(members);
        }
        Ok(())
    }

    /// The other shape that moves with this one as a single weight.
    #[inline]
    pub(crate) fn tied(&self, shape: usize) -> Option<usize> {
        let partner = self.partner[shape];
        (partner != NONE && self.strength == f64::INFINITY).then_some(partner as usize)
    }

    /// The other shape of a soft pair.
    #[inline]
    pub(crate) fn soft(&self, shape: usize) -> Option<usize> {
        let partner = self.partner[shape];
        (partner != NONE && self.strength < f64::INFINITY).then_some(partner as usize)
    }

    /// The other members of the shape's exclusive group.
    pub(crate) fn rivals(&self, shape: usize) -> impl Iterator<Item = usize> {
        let group: &[u32] = match self.group[shape] {
            NONE => &[],
            group => &self.members[group as usize],
        };
        group.iter().map(|member| *member as usize).filter(move |member| *member != shape)
    }

    /// Checks a start vector: finite, in the box, pairs equal where tied, one of a group at most.
    pub(crate) fn check_start(&self, start: &[f64], names: &[String]) -> Result<(), InverseError> {
        if start.len() != names.len() {
            return Err(InverseError::Count { what: "start weights", got: start.len(), want: names.len() });
        }
        for (shape, value) in start.iter().enumerate() {
            let bad =
                |problem| Err(InverseError::Start { shape: names[shape].clone(), value: *value, problem });
            if !(0.0..=self.upper).contains(value) || !value.is_finite() {
                return bad("it is outside the box");
            }
            if self.tied(shape).is_some_and(|other| start[other] != *value) {
                return bad("its tied partner starts elsewhere");
            }
            if *value > 0.0 && self.rivals(shape).any(|other| start[other] > 0.0) {
                return bad("another shape of its exclusive group is on too");
            }
        }
        Ok(())
    }
}
