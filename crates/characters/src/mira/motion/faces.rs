//! The poses that the takes are keyed with, at full strength. Gaze is apart, so that it can lead.

use super::take::Pose;

// Where the eyes look, as she sees it.
pub(super) const LEFT: Pose = &[("eyeLookOut_L", 0.6), ("eyeLookIn_R", 0.6)];
pub(super) const RIGHT: Pose = &[("eyeLookIn_L", 0.6), ("eyeLookOut_R", 0.6)];
pub(super) const UP: Pose = &[("eyeLookUp_L", 0.6), ("eyeLookUp_R", 0.6), ("browUp_*", 0.12)];
pub(super) const DOWN: Pose = &[("eyeLookDown_L", 0.55), ("eyeLookDown_R", 0.55), ("lidUpperDown_*", 0.3)];

// Brows and lids.
pub(super) const BROWS_UP: Pose = &[("browUp_*", 0.8), ("foreheadRaise", 0.3)];
pub(super) const BROWS_DOWN: Pose = &[
    ("browDown_*", 0.95),
    ("browFurrow_*", 0.6),
    ("glabellaPinch", 0.5),
    ("eyeSquint_*", 0.35),
    ("lidUpperDown_*", 0.3),
];
pub(super) const BROW_LEFT_UP: Pose = &[
    ("browUp_L", 0.9),
    ("browOuterUp_L", 0.5),
    ("browDown_R", 0.45),
    ("eyeWide_L", 0.3),
    ("foreheadRaise", 0.1),
];
pub(super) const BROW_RIGHT_UP: Pose = &[
    ("browUp_R", 0.9),
    ("browOuterUp_R", 0.5),
    ("browDown_L", 0.45),
    ("eyeWide_R", 0.3),
    ("foreheadRaise", 0.1),
];
pub(super) const WORRIED: Pose = &[("browInnerUp_*", 0.85), ("browOuterDown_*", 0.35), ("browFurrow_*", 0.2)];
pub(super) const WIDE: Pose = &[("eyeWide_*", 1.0), ("lidUpperUp_*", 0.4)];
pub(super) const SQUINT: Pose = &[("eyeSquint_*", 0.85), ("cheekSquint_*", 0.3), ("lidUpperDown_*", 0.3)];

// Smiles.
pub(super) const SMILE: Pose = &[
    ("mouthSmile_*", 0.95),
    ("mouthDimple_*", 0.3),
    ("cheekSquint_*", 0.5),
    ("cheekRaise_*", 0.35),
    ("eyeSquint_*", 0.4),
    ("lidUpperDown_*", 0.1),
];
pub(super) const GRIN: Pose = &[
    ("mouthSmile_*", 0.95),
    ("mouthDimple_*", 0.4),
    ("mouthUpperUp_*", 0.35),
    ("mouthLowerDown_*", 0.3),
    ("jawOpen", 0.16),
    ("cheekSquint_*", 0.75),
    ("cheekRaise_*", 0.5),
    ("eyeSquint_*", 0.6),
    ("lidUpperDown_*", 0.2),
];
pub(super) const LAUGH: Pose = &[
    ("mouthSmile_*", 1.0),
    ("mouthUpperUp_*", 0.5),
    ("mouthLowerDown_*", 0.45),
    ("jawOpen", 0.55),
    ("cheekSquint_*", 0.95),
    ("cheekRaise_*", 0.7),
    ("eyeSquint_*", 0.95),
    ("lidUpperDown_*", 0.55),
    ("noseWrinkle_*", 0.3),
    ("tongueUp", 0.15),
];
pub(super) const SMIRK: Pose = &[
    ("mouthSmile_L", 0.85),
    ("mouthSharpSmile_L", 0.2),
    ("mouthDimple_L", 0.5),
    ("mouthSmile_R", 0.12),
    ("mouthPress_R", 0.3),
    ("cheekSquint_L", 0.55),
    ("eyeSquint_L", 0.3),
];

// Ill humour.
pub(super) const SCOWL: Pose = &[
    ("browDown_*", 1.0),
    ("browFurrow_*", 0.7),
    ("glabellaPinch", 0.5),
    ("mouthFrown_*", 0.85),
    ("mouthShrugLower", 0.5),
    ("chinRaise", 0.6),
    ("mouthPress_*", 0.3),
    ("eyeSquint_*", 0.55),
    ("lidUpperDown_*", 0.4),
    ("cornerDown_*", 0.4),
    ("jawForward", 0.35),
    ("nasolabialDeepen_*", 0.3),
];
pub(super) const SNEER_LEFT: Pose =
    &[("noseSneer_L", 0.95), ("mouthUpperUp_L", 0.6), ("nasolabialDeepen_L", 0.6), ("noseSneer_R", 0.15)];
pub(super) const PUFFED: Pose =
    &[("cheekPuff_*", 0.95), ("mouthPuff", 0.4), ("mouthPress_*", 0.4), ("noseFlare_*", 0.6)];
pub(super) const BLOW: Pose =
    &[("mouthFunnel", 0.55), ("mouthPucker", 0.5), ("cheekSuck_*", 0.2), ("jawOpen", 0.08)];

// No spirits.
pub(super) const SLACK: Pose = &[
    ("lidUpperDown_*", 0.85),
    ("browInnerUp_*", 0.25),
    ("mouthFrown_*", 0.3),
    ("cornerDown_*", 0.3),
    ("jawOpen", 0.05),
    ("mouthLowerDown_*", 0.1),
];
pub(super) const YAWN: Pose = &[
    ("jawOpen", 0.95),
    ("mouthFunnel", 0.25),
    ("mouthUpperUp_*", 0.45),
    ("mouthStretch_*", 0.15),
    ("noseWrinkle_*", 0.4),
    ("noseFlare_*", 0.6),
    ("eyeSquint_*", 0.9),
    ("browDown_*", 0.35),
    ("browInnerUp_*", 0.55),
    ("tongueBack", 0.5),
    ("throatDown", 0.8),
    ("neckTense_*", 0.3),
];

// Attention.
pub(super) const HMM: Pose =
    &[("mouthPucker", 0.45), ("mouthLeft", 0.55), ("mouthPress_*", 0.25), ("chinRaise", 0.25)];
pub(super) const PARTED: Pose = &[("jawOpen", 0.1), ("mouthLowerDown_*", 0.15), ("mouthSmile_*", 0.12)];
pub(super) const LEAN: Pose = &[("headForward", 1.0)];
pub(super) const BACK: Pose = &[("headForward", -0.75)];

// Strong ones.
pub(super) const GASP: Pose = &[
    ("eyeWide_*", 1.0),
    ("lidUpperUp_*", 0.4),
    ("browUp_*", 1.0),
    ("foreheadRaise", 0.5),
    ("jawOpen", 0.6),
    ("mouthFunnel", 0.4),
    ("pupilContract_*", 0.6),
    ("noseFlare_*", 0.4),
];
pub(super) const OH: Pose = &[
    ("eyeWide_*", 0.9),
    ("browUp_*", 0.95),
    ("browInnerUp_*", 0.2),
    ("foreheadRaise", 0.35),
    ("jawOpen", 0.3),
    ("mouthFunnel", 0.75),
    ("mouthPucker", 0.25),
    ("pupilContract_*", 0.5),
];
pub(super) const SHUT: Pose = &[
    ("eyeSquint_*", 0.9),
    ("lidUpperDown_*", 0.7),
    ("browDown_*", 0.6),
    ("mouthPress_*", 0.6),
    ("mouthRollLower", 0.2),
];
pub(super) const GROWL: Pose = &[
    ("jawOpen", 0.1),
    ("mouthUpperUp_*", 1.0),
    ("mouthLowerDown_*", 0.8),
    ("mouthStretch_*", 0.55),
    ("cornerUp_*", 0.25),
    ("noseSneer_*", 0.85),
    ("noseWrinkle_*", 0.6),
    ("noseFlare_*", 0.7),
    ("browDown_*", 1.0),
    ("browFurrow_*", 0.8),
    ("glabellaPinch", 0.6),
    ("eyeSquint_*", 0.6),
    ("lidUpperDown_*", 0.4),
    ("neckTense_*", 0.4),
    ("nasolabialDeepen_*", 0.6),
];
pub(super) const ROAR: Pose = &[
    ("jawOpen", 1.0),
    ("mouthUpperUp_*", 1.0),
    ("mouthLowerDown_*", 0.7),
    ("mouthStretch_*", 0.6),
    ("noseSneer_*", 1.0),
    ("noseWrinkle_*", 0.7),
    ("noseFlare_*", 0.6),
    ("browDown_*", 1.0),
    ("browFurrow_*", 0.8),
    ("glabellaPinch", 0.6),
    ("eyeSquint_*", 0.75),
    ("lidUpperDown_*", 0.45),
    ("cheekSquint_*", 0.5),
    ("neckTense_*", 1.0),
    ("tongueUp", 0.2),
    ("headForward", 1.1),
];
pub(super) const STERN: Pose =
    &[("browDown_*", 0.5), ("mouthPress_*", 0.6), ("mouthFrown_*", 0.25), ("chinRaise", 0.2)];
