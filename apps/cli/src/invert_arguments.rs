//! What can be typed for the inverse rig: `invert`.

use crate::arguments::{Choices, by_name, parse_threads};
use clap::Args;
use std::path::PathBuf;
use understudy_jobs::invert::Layout;
use understudy_jobs::invert::solver::{Method, Order};

const METHODS: Choices = &[
    ("quartic", "Coordinate descent on the rig with all its correctives"),
    ("linear", "Coordinate descent on the shapes alone"),
    ("seol", "One greedy pass (Seol et al.)"),
    ("joshi", "The pseudo-inverse (Joshi et al.)"),
    ("cetinaslan", "Ridge regression (Çetinaslan and Orvalho)"),
    ("lmmm", "Majorisation–minimisation with pair correctives (Racković et al.)"),
];

const ORDERS: Choices = &[
    ("decreasing", "Largest shape first"),
    ("random", "A random permutation per frame"),
    ("increasing", "Smallest shape first"),
    ("frame-correlation", "Best correlated with the frame first"),
    ("iteration-correlation", "Best correlated with what is left of the frame"),
    ("maximum-improvement", "Largest gain: fewest weights and lowest error, at a higher price"),
    ("gauss-southwell", "Steepest slope"),
];

/// How tables of weights are laid out.
pub const LAYOUTS: Choices = &[
    ("auto", "Live Link Face when all shapes are ARKit's, plain otherwise"),
    ("plain", "A header of shape names, a row per frame"),
    ("live-link", "Live Link Face"),
];

/// Of `invert`.
#[derive(Debug, Args)]
pub struct InvertArguments {
    /// A rig with blendshapes: mira, ict, an .npz, or a .glb or .gltf with morph targets.
    pub rig: String,
    /// Meshes to match, in order: .npz with `vertices [frames,n,3]`, .obj files, a .glb or .gltf animation.
    #[arg(required = true, value_name = "TARGETS")]
    pub targets: Vec<String>,
    /// The weights, .csv or .npz.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// How.
    #[arg(long, value_parser = by_name::<Method>(METHODS), default_value = "quartic")]
    pub method: Method,
    /// Price of a weight, as a share of the rig's mean shape energy [default: 1e-5]: more gives fewer weights.
    /// `auto` takes the knee of the trade-off curve, or less where the targets are clean.
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    pub alpha: Option<String>,
    /// Most passes over all weights [default: 100].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub passes: Option<usize>,
    /// Stop when no weight moves by more than this [default: 1e-6].
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    pub tolerance: Option<f64>,
    /// The paper's recipe: five passes, no Newton steps, an alpha of 0.5 in cm². --alpha is in cm² then.
    #[arg(long)]
    pub paper: bool,
    /// Which weight is updated next.
    #[arg(long, value_parser = by_name::<Order>(ORDERS), default_value = "decreasing")]
    pub order: Order,
    /// Seed of the random order and of --noise.
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,
    /// Leave out correctives of more shapes than this.
    #[arg(long, value_name = "N")]
    pub max_level: Option<usize>,
    /// No upper bound on the weights.
    #[arg(long)]
    pub unbounded: bool,
    /// Price of second differences in time, cm², over the whole take; 0 leaves frames independent.
    #[arg(long, value_name = "L", default_value_t = 0.0, allow_negative_numbers = true)]
    pub smooth: f64,
    /// Start every frame from the one before it.
    #[arg(long)]
    pub warm_start: bool,
    /// Remove rigid head motion first: `all` vertices, or a list of landmark vertices `12,80,…`.
    #[arg(long, value_name = "all|V,V,V")]
    pub head: Option<String>,
    /// An .npz with `weights [n]`: how much each vertex counts.
    #[arg(long, value_name = "FILE.npz")]
    pub vertex_weights: Option<PathBuf>,
    /// Take NaN in a target for missing vertices instead of a mistake.
    #[arg(long)]
    pub missing: bool,
    /// Two shapes that hold together, `LEFT,RIGHT`; can be given again. `auto` pairs by name.
    #[arg(long, value_name = "auto|L,R")]
    pub symmetric: Vec<String>,
    /// Let pairs differ at this price, cm², instead of being one weight.
    #[arg(long, value_name = "S", requires = "symmetric", allow_negative_numbers = true)]
    pub symmetric_strength: Option<f64>,
    /// Shapes of which at most one may be on, `A,B,…`; can be given again.
    #[arg(long, value_name = "A,B")]
    pub exclusive: Vec<String>,
    /// Which animation of a glTF target [default: its first].
    #[arg(long, value_name = "NAME")]
    pub clip: Option<String>,
    /// Frames a second, where the targets do not say.
    #[arg(long, value_name = "FPS", default_value_t = 60.0, allow_negative_numbers = true)]
    pub rate: f32,
    /// Layout of a .csv.
    #[arg(long, value_parser = by_name::<Layout>(LAYOUTS), default_value = "auto")]
    pub layout: Layout,
    /// Noise added to the targets, standard deviation, cm; errors are against the clean meshes.
    #[arg(long, value_name = "CM", default_value_t = 0.0, allow_negative_numbers = true)]
    pub noise: f64,
    /// A page that compares all methods and orders on this take.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Threads [default: all]; the weights do not depend on it.
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threads)]
    pub threads: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::SAMPLE_METHODS;
    use clap::builder::TypedValueParser;
    use understudy_jobs::sample;

    /// Clap would only panic on a wrong name when a user types it.
    #[test]
    fn every_choice_is_a_name_of_the_library_and_none_is_missing() {
        let command = clap::Command::new("understudy");
        let method = |name: &str| by_name::<Method>(METHODS).parse_ref(&command, None, name.as_ref());
        let order = |name: &str| by_name::<Order>(ORDERS).parse_ref(&command, None, name.as_ref());
        let layout = |name: &str| by_name::<Layout>(LAYOUTS).parse_ref(&command, None, name.as_ref());
        let methods: Vec<Method> = METHODS.iter().map(|(name, _)| method(name).expect("a method")).collect();
        let orders: Vec<Order> = ORDERS.iter().map(|(name, _)| order(name).expect("an order")).collect();
        assert_eq!((methods, orders), (Method::ALL.to_vec(), Order::ALL.to_vec()));
        assert!(LAYOUTS.iter().all(|(name, _)| layout(name).is_ok()));
        let sample = by_name::<sample::Method>(SAMPLE_METHODS);
        assert!(
            SAMPLE_METHODS.iter().all(|(name, _)| sample.parse_ref(&command, None, name.as_ref()).is_ok())
        );
        assert!(method("quadratic").is_err());
    }
}
