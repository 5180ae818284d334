// Plays twins: `const twin = await Twin.load(bytes); twin.pose({ controls }, vertices)`; and motion, which gives the controls:
// `const motion = await Motion.load(bytes); motion.command({ command: "transition", label: "happy" }); motion.step()`. The
// classes are in `twin.ts` and `motion.ts`, the WebAssembly module and how it is found in `module.ts`; `three.ts` (imported as `understudy-twin/three`) shows one.

export { ARKIT_SHAPES, Twin } from "./twin.js";
export type {
  BoneHeader,
  ControlPoint,
  ControlSpec,
  ControlValues,
  Crowd,
  Description,
  Distances,
  DragTargets,
  Header,
  LimbHandle,
  LimbSpelling,
  LoadOptions,
  Method,
  Performance,
  Pose,
  Reach,
  ReachOptions,
  SeenFace,
  Training,
} from "./twin.js";
export { Motion } from "./motion.js";
export type { ClipFrames, Command, MotionDescription, MotionLabel, MotionOptions, Situation } from "./motion.js";
export { hasRelaxedSimd, hasSimd, TwinModule, TwinError } from "./module.js";
export type { ModuleSource } from "./module.js";
