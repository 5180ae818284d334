// Plays twins: `const twin = await Twin.load(bytes); twin.pose({ controls }, vertices)`. The class is in `twin.ts`, the
// WebAssembly module and how it is found in `module.ts`; `three.ts` (imported as `understudy-twin/three`) shows one.

export { Twin } from "./twin.js";
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
  LoadOptions,
  Method,
  Pose,
  Training,
} from "./twin.js";
export { hasRelaxedSimd, hasSimd, TwinModule, TwinError } from "./module.js";
export type { ModuleSource } from "./module.js";
