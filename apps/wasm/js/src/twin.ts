// A loaded twin. Poses go in and vertices come out through arrays in the module's memory, which this class copies from
// and to; `Twin.vertices` reads them in place.

import { TwinError, TwinModule, type ModuleSource } from "./module.js";

/** How a twin was learned. */
export type Method = "body" | "face" | "diff" | "skin" | (string & {});

/** A control of the rig. */
export interface ControlSpec {
  readonly name: string;
  readonly low: number;
  readonly high: number;
  readonly default: number;
  readonly [more: string]: unknown;
}

/** A bone as the twin knows it. */
export interface BoneHeader {
  readonly name: string;
  /** `null` for a root. */
  readonly parent: number | null;
}

/** Distances between vertices over some poses, mm. */
export interface Distances {
  readonly mean: number;
  readonly max: number;
}

/** How the twin was trained and how well; more in the method's own terms. */
export interface Training {
  readonly poses: number;
  readonly half_error_mm: Distances | null;
  readonly [more: string]: unknown;
}

/** What the twin says about itself. */
export interface Header {
  readonly rig: string;
  /** 64 bits, as decimal text. */
  readonly topology_hash: string;
  readonly units: string;
  readonly inputs: { readonly bones: readonly BoneHeader[]; readonly controls: readonly ControlSpec[] };
  readonly training: Training;
}

/** The header and what the run time knows beside it. */
export interface Description {
  readonly method: Method;
  readonly vertices: number;
  readonly faces: number;
  readonly networkBytes: number;
  readonly multiplyAdds: number;
  /** `null` where only bones pose the twin. */
  readonly controls: readonly ControlSpec[] | null;
  /** `null` where the twin has not learned to follow points. */
  readonly points: readonly ControlPoint[] | null;
  /** `null` where no bones have names of limbs. */
  readonly handles: readonly LimbHandle[] | null;
  readonly header: Header;
}

/** A point that can be dragged. */
export interface ControlPoint {
  readonly name: string;
  readonly vertex: number;
  /** Points of one region move controls that no other region's do, but for those that several have. */
  readonly region: string | null;
  /** Where it rests, cm. */
  readonly rest: readonly [number, number, number];
}

/** What is asked of points, by their places in {@link Twin.points}. */
export interface DragTargets {
  /** Where points shall be, cm. */
  readonly move: ReadonlyMap<number, ArrayLike<number>>;
  /** Points that stay where they were held. */
  readonly pinned?: Iterable<number>;
  /** The directions in which dragged points are looked at: what is off along it hardly counts. */
  readonly sights?: ReadonlyMap<number, ArrayLike<number>>;
  /** Corrections after the network: two unless said otherwise, none for the network alone. */
  readonly steps?: number;
}

/** A hand, a foot or the torso, and the bone that it holds. */
export interface LimbHandle {
  /** `hand_L`, `hand_R`, `foot_L`, `foot_R` or `torso`. */
  readonly name: string;
  readonly bone: number;
}

/** Names of the bones that limbs consist of, from the trunk outwards, where a skeleton has names of its own. */
export interface LimbSpelling {
  readonly hand_L?: readonly [string, string, string];
  readonly hand_R?: readonly [string, string, string];
  readonly foot_L?: readonly [string, string, string];
  readonly foot_R?: readonly [string, string, string];
  readonly torso?: string;
}

/** How a hand or a foot goes to its target. */
export interface ReachOptions {
  /** The direction in which the elbow or knee points; as it does in the pose where it is left out. */
  readonly pole?: ArrayLike<number>;
  /** Share of the limb's length, up to 0.5, in which it slows down before it is straight. */
  readonly soft?: number;
  /** Whether the hand or foot keeps its orientation. */
  readonly keep?: boolean;
}

/** How a target was reached: there, behind it on purpose, the limb too short, the target too near for its bones. */
export type Reach = "exact" | "soft" | "too far" | "too near";
const REACHES = ["exact", "soft", "too far", "too near"] as const;

/** Values of all controls in their order, or some of them by name: the others are at their defaults. */
export type ControlValues = ArrayLike<number> | Readonly<Record<string, number>>;

/**
 * A pose: by controls alone, those of {@link Twin.controls}; or by bones, and then `controls` are those that matter beside
 * them, `header.inputs.controls` (their defaults where left out).
 */
export interface Pose {
  /** World transforms, cm: 16 numbers per bone by columns, as `Matrix4.elements` of three.js or a glTF matrix. */
  readonly bones?: ArrayLike<number>;
  readonly controls?: ControlValues;
}

/** A face that a detector saw. */
export interface SeenFace {
  /** 478 points: x and y in shares of the picture's size, z in shares of its width, towards the camera negative. */
  readonly points: readonly { readonly x: number; readonly y: number; readonly z: number }[];
  /** Pixels. */
  readonly width: number;
  readonly height: number;
  /** Scores by the names of ARKit's shapes, 0 to 1; what is missing is 0. */
  readonly scores: Readonly<Record<string, number>>;
}

/** What an actor does. */
export interface Performance {
  /** Yaw, pitch and roll from rest, degrees. */
  readonly head: readonly [number, number, number];
  /** Yaw and pitch of the left and the right eye, degrees. */
  readonly gaze: readonly [number, number, number, number];
  /** 1 while a face is seen; falls to 0 when none is. */
  readonly strength: number;
  /** How far the twin's points are from the actor's, mm: by inverse kinematics, and by scores alone; `null` without points. */
  readonly pointsMm: readonly [number, number] | null;
  /** ARKit's shapes in the order of {@link ARKIT_SHAPES}, the actor's rest taken off. */
  readonly shapes: Float32Array;
}

/** Names of ARKit's shapes in the order of Live Link Face. */
export const ARKIT_SHAPES = [
  "eyeBlinkLeft", "eyeLookDownLeft", "eyeLookInLeft", "eyeLookOutLeft", "eyeLookUpLeft", "eyeSquintLeft", "eyeWideLeft",
  "eyeBlinkRight", "eyeLookDownRight", "eyeLookInRight", "eyeLookOutRight", "eyeLookUpRight", "eyeSquintRight", "eyeWideRight",
  "jawForward", "jawRight", "jawLeft", "jawOpen", "mouthClose", "mouthFunnel", "mouthPucker", "mouthRight", "mouthLeft",
  "mouthSmileLeft", "mouthSmileRight", "mouthFrownLeft", "mouthFrownRight", "mouthDimpleLeft", "mouthDimpleRight",
  "mouthStretchLeft", "mouthStretchRight", "mouthRollLower", "mouthRollUpper", "mouthShrugLower", "mouthShrugUpper",
  "mouthPressLeft", "mouthPressRight", "mouthLowerDownLeft", "mouthLowerDownRight", "mouthUpperUpLeft", "mouthUpperUpRight",
  "browDownLeft", "browDownRight", "browInnerUp", "browOuterUpLeft", "browOuterUpRight", "cheekPuff", "cheekSquintLeft",
  "cheekSquintRight", "noseSneerLeft", "noseSneerRight", "tongueOut",
] as const;
/** Points of a face. */
const FACE_POINTS = 478;

/** Many poses, one after another in every array. */
export interface Crowd {
  readonly bones?: ArrayLike<number>;
  readonly controls?: ArrayLike<number>;
}

export interface LoadOptions {
  /** A module that other twins have too, or where to get one; without it the one that comes with this package. */
  readonly module?: TwinModule | ModuleSource | Promise<ModuleSource>;
}

const enum Which {
  Controls = 0,
  Bones = 1,
  Vertices = 2,
  Normals = 3,
  ByVertices = 4,
  ByControls = 5,
  Faces = 6,
  RestBones = 7,
  Extras = 8,
  Points = 9,
  Targets = 10,
  Face = 11,
  Performance = 12,
  Goal = 13,
}

/** Numbers per target: what is asked, a place, a line of sight. */
const TARGET = 7;

// Twins that nobody holds any more free their memory.
const forgotten =
  typeof FinalizationRegistry === "function"
    ? new FinalizationRegistry<{ module: TwinModule; handle: number }>(({ module, handle }) => release(module, handle))
    : undefined;

function release(module: TwinModule, handle: number): void {
  try {
    module.call((exports) => exports.understudy_free(handle));
  } catch {
    // A module that stopped frees everything at once.
  }
}

/** Controls by their names. */
class Named {
  readonly defaults: Float32Array;
  readonly places: ReadonlyMap<string, number>;

  constructor(specs: readonly ControlSpec[]) {
    this.defaults = Float32Array.from(specs, (control) => control.default);
    this.places = new Map(specs.map((control, place) => [control.name, place]));
  }
}

/** Plays a twin: controls or bones in, vertices out. */
export class Twin {
  /** The module that plays it. */
  readonly module: TwinModule;
  #description: Description;
  #handle: number;
  #controls: Named;
  #extras: Named;

  private constructor(module: TwinModule, handle: number) {
    this.module = module;
    this.#handle = handle;
    this.#description = this.#describe();
    this.#controls = new Named(this.controls);
    this.#extras = new Named(this.header.inputs.controls);
    forgotten?.register(this, { module, handle }, this);
  }

  /** Reads the bytes of a `.twin` file and checks everything about them. */
  static async load(bytes: BufferSource, options: LoadOptions = {}): Promise<Twin> {
    const { module: given } = options;
    const module =
      given instanceof TwinModule ? given : await (given === undefined ? TwinModule.standard() : TwinModule.create(given));
    const file = ArrayBuffer.isView(bytes)
      ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      : new Uint8Array(bytes);
    module.send(file);
    return new Twin(module, module.call((exports) => exports.understudy_load()));
  }

  /** What it says about itself. */
  get description(): Description {
    return this.#description;
  }

  /** Its kind. */
  get method(): Method {
    return this.description.method;
  }

  /** The rig that it was learned from, what a pose consists of, and how it was trained. */
  get header(): Header {
    return this.description.header;
  }

  get vertexCount(): number {
    return this.description.vertices;
  }

  /** Corners of its faces, four each; the last of a triangle is 2³² − 1. Empty where the file has none. */
  get faces(): Uint32Array {
    const { buffer, address, length } = this.#array(Which.Faces, 1);
    return new Uint32Array(buffer, address, length).slice();
  }

  /** Its faces as triangles, three corners each: what graphics cards draw. */
  get triangles(): Uint32Array {
    const faces = this.faces;
    const out: number[] = [];
    for (let first = 0; first < faces.length; first += 4) {
      const [a, b, c, d] = faces.subarray(first, first + 4) as unknown as [number, number, number, number];
      out.push(a, b, c);
      if (d !== 0xffff_ffff) out.push(a, c, d);
    }
    return Uint32Array.from(out);
  }

  /** World transforms of its bones at rest, cm, 16 numbers each by columns; empty for a twin of controls alone. */
  get restBones(): Float32Array {
    return this.#view(Which.RestBones, 1).slice();
  }

  /** The controls that pose it without bones, in their order; none where only bones do. */
  get controls(): readonly ControlSpec[] {
    return this.description.controls ?? [];
  }

  /** Whether controls alone pose it. */
  get posedByControls(): boolean {
    return this.description.controls !== null;
  }

  /** The default values of {@link controls}. */
  get defaults(): Float32Array {
    return this.#controls.defaults.slice();
  }

  /** The pose at rest. */
  get rest(): Pose {
    return this.posedByControls ? { controls: this.defaults } : { bones: this.restBones };
  }

  /**
   * Moves the vertices for one pose, cm: x, y and z of each. They go to `out`, or, without it, into the array that
   * {@link vertices} gives.
   */
  pose(pose: Pose, out?: Float32Array): Float32Array {
    const by = this.#write(pose);
    this.module.call((exports) => exports.understudy_pose(this.#handle, by, 1));
    return this.#give(Which.Vertices, 1, out);
  }

  /** Moves the vertices for many poses at once: per pose it is faster than one by one. */
  crowd(poses: Crowd, out?: Float32Array): Float32Array {
    const by = poses.bones !== undefined ? 1 : 0;
    const { defaults } = by === 1 ? this.#extras : this.#controls;
    const [given, size] =
      by === 1 ? [poses.bones, 16 * this.header.inputs.bones.length] : [poses.controls, defaults.length];
    const count = given === undefined || size === 0 ? 0 : Math.floor(given.length / size);
    if (given === undefined || count * size !== given.length || count === 0) {
      throw new TwinError(`poses: ${given?.length ?? 0} numbers, a multiple of ${size} expected`);
    }
    if (poses.bones !== undefined) this.#copy(Which.Bones, poses.bones, count, "bones of the crowd");
    const which = by === 1 ? Which.Extras : Which.Controls;
    if (poses.controls !== undefined) {
      this.#copy(which, poses.controls, count, "controls of the crowd");
    } else {
      const view = this.#view(which, count);
      for (let pose = 0; pose < count; pose++) view.set(defaults, pose * defaults.length);
    }
    this.module.call((exports) => exports.understudy_pose(this.#handle, by, count));
    return this.#give(Which.Vertices, count, out);
  }

  /** Unit normals of the pose that was played last (the first of a crowd); zero at a vertex without faces. */
  normals(out?: Float32Array): Float32Array {
    this.module.call((exports) => exports.understudy_normals(this.#live()));
    return this.#give(Which.Normals, 1, out);
  }

  /**
   * The derivative of a loss by the controls, `∂L/∂p = (∂V/∂p)ᵀ ∂L/∂V`, from its derivative by the vertices of that
   * pose. Bodies have none, and say so.
   */
  gradient(pose: Pose, byVertices: ArrayLike<number>, out?: Float32Array): Float32Array {
    const by = this.#write(pose);
    this.#copy(Which.ByVertices, byVertices, 1, "derivatives by vertices");
    this.module.call((exports) => exports.understudy_gradient(this.#handle, by));
    const { length } = (by === 1 ? this.#extras : this.#controls).defaults;
    const view = this.#view(Which.ByControls, 1).subarray(0, length);
    return out === undefined ? view : fill(out, view);
  }

  /** The points that can be dragged; empty where the twin has not learned to follow any. */
  get points(): readonly ControlPoint[] {
    return this.description.points ?? [];
  }

  /** Begins a drag at a pose: gives where the points are, x, y and z of each. */
  hold(controls: ControlValues, out?: Float32Array): Float32Array {
    this.#write({ controls });
    this.module.call((exports) => exports.understudy_hold(this.#live()));
    return this.#give(Which.Points, 1, out);
  }

  /**
   * Brings points to places, from the pose of the last {@link hold}: a network says about which controls, a few steps along
   * the twin's derivatives correct them. What is not dragged stays where it was. `controls` gets the pose; where the points
   * are then comes back.
   */
  drag({ move, pinned = [], sights, steps = 2 }: DragTargets, controls: Float32Array): Float32Array {
    const targets = this.#view(Which.Targets, 1).fill(0);
    const at = (point: number) => {
      if (!(point in this.points)) throw new TwinError(`there is no point ${point}`);
      return point * TARGET;
    };
    for (const point of pinned) targets[at(point)] = 1;
    for (const [point, place] of move) {
      targets[at(point)] = 2;
      targets.set(Array.from(place).slice(0, 3), at(point) + 1);
      const sight = sights?.get(point);
      if (sight) targets.set(Array.from(sight).slice(0, 3), at(point) + 4);
    }
    this.module.call((exports) => exports.understudy_drag(this.#handle, steps));
    fill(controls, this.#view(Which.Controls, 1));
    return this.#view(Which.Points, 1);
  }

  /** Hands, feet and torso of a body whose bones have usual names, or those of {@link spellLimbs}. */
  get handles(): readonly LimbHandle[] {
    return this.description.handles ?? [];
  }

  /** Says which bones are limbs where their names do not. */
  spellLimbs(spelling: LimbSpelling): void {
    const handle = this.#live();
    this.module.send(new TextEncoder().encode(JSON.stringify(spelling)));
    this.module.call((exports) => exports.understudy_limbs(handle));
    this.#description = this.#describe();
  }

  /**
   * Puts a hand, a foot or the torso on a target (cm) and changes the world transforms of all bones in `bones` for it: those
   * below a limb follow rigidly, the torso takes everything along. To lock a foot, move the torso first and reach for where
   * the foot was.
   */
  reach(name: string, target: ArrayLike<number>, bones: Float32Array, options: ReachOptions = {}): Reach {
    const handle = this.#live();
    const place = this.handles.findIndex((known) => known.name === name);
    if (place < 0) throw new TwinError(`there is no handle '${name}'; there are ${this.handles.map((h) => h.name).join(", ")}`);
    const { pole = [0, 0, 0], soft = 0, keep = false } = options;
    for (const [what, point] of [["target", target], ["pole", pole]] as const) {
      if (point.length !== 3) throw new TwinError(`${what}: ${point.length} numbers, 3 expected`);
    }
    this.#copy(Which.Bones, bones, 1, "bones of the pose");
    this.#view(Which.Goal, 1).set([...Array.from(target), ...Array.from(pole), soft, keep ? 1 : 0]);
    const how = this.module.call((exports) => exports.understudy_reach(handle, place));
    fill(bones, this.#view(Which.Bones, 1));
    return REACHES[how - 1]!;
  }

  /**
   * An actor drives this twin from now on: what {@link follow} is given. `geometry` is the canonical face that lies in
   * MediaPipe's `.task` files as `geometry_pipeline_metadata_landmarks.binarypb`.
   */
  beginLive(geometry: Uint8Array): void {
    const handle = this.#live();
    const address = this.module.call((exports) => exports.understudy_incoming(geometry.length));
    new Uint8Array(this.module.memory.buffer, address, geometry.length).set(geometry);
    this.module.call((exports) => exports.understudy_live(handle));
  }

  /** Takes a face as the actor at rest. */
  setRest(face: SeenFace): void {
    this.#see(face);
    this.module.call((exports) => exports.understudy_live_rest(this.#live()));
  }

  /**
   * The next frame of the actor, so many seconds after the last; `null` where no face was seen. `controls` gets the pose:
   * head pose and size removed, smoothed, points followed by inverse kinematics, the rest by the names of scores.
   */
  follow(face: SeenFace | null, seconds: number, controls: Float32Array): Performance {
    if (face !== null) this.#see(face);
    const microseconds = Math.round(Math.min(Math.max(seconds, 0), 10) * 1e6);
    this.module.call((exports) => exports.understudy_live_follow(this.#live(), face === null ? 0 : 1, microseconds));
    fill(controls, this.#view(Which.Controls, 1));
    const out = this.#view(Which.Performance, 1);
    const at = (place: number) => out[place]!;
    return {
      head: [at(0), at(1), at(2)],
      gaze: [at(3), at(4), at(5), at(6)],
      strength: at(7),
      pointsMm: at(8) < 0 ? null : [at(8), at(9)],
      shapes: out.slice(10),
    };
  }

  #see({ points, width, height, scores }: SeenFace): void {
    if (points.length !== FACE_POINTS) throw new TwinError(`${points.length} points of a face, ${FACE_POINTS} expected`);
    const input = this.#view(Which.Face, 1);
    points.forEach(({ x, y, z }, point) => input.set([x, y, z], 3 * point));
    const behind = 3 * FACE_POINTS;
    input.set([width, height], behind);
    ARKIT_SHAPES.forEach((name, place) => { input[behind + 2 + place] = scores[name] ?? 0; });
  }

  /**
   * The vertices of the pose that was played last, where the module has them: not a copy. The array ends when the module's
   * memory grows, so ask for it anew after loading another twin.
   */
  get vertices(): Float32Array {
    return this.#view(Which.Vertices, 1);
  }

  /** Lets go of its memory; the twin is not usable afterwards. Without it memory is freed when nobody holds the twin. */
  free(): void {
    if (this.#handle === 0) return;
    forgotten?.unregister(this);
    release(this.module, this.#handle);
    this.#handle = 0;
  }

  #describe(): Description {
    const handle = this.#live();
    this.module.call((exports) => exports.understudy_describe(handle));
    return JSON.parse(this.module.text()) as Description;
  }

  #live(): number {
    if (this.#handle === 0) throw new TwinError("this twin was freed");
    return this.#handle;
  }

  /** Writes a pose to the module's arrays and tells what it is given by. */
  #write({ bones, controls }: Pose): 0 | 1 {
    if (bones === undefined && controls === undefined) throw new TwinError("a pose has bones, controls or both");
    if (bones !== undefined) this.#copy(Which.Bones, bones, 1, "bones of the pose");
    const [which, named] =
      bones !== undefined ? ([Which.Extras, this.#extras] as const) : ([Which.Controls, this.#controls] as const);
    if (controls === undefined || !isArray(controls)) {
      const view = this.#view(which, 1);
      view.set(named.defaults);
      for (const [name, value] of Object.entries(controls ?? {})) {
        const place = named.places.get(name);
        if (place === undefined) throw new TwinError(`there is no control '${name}'`);
        view[place] = value;
      }
    } else {
      this.#copy(which, controls, 1, "controls of the pose");
    }
    return bones !== undefined ? 1 : 0;
  }

  #copy(which: Which, numbers: ArrayLike<number>, poses: number, what: string): void {
    const view = this.#view(which, poses);
    if (numbers.length !== view.length) {
      throw new TwinError(`${what}: ${numbers.length} numbers, ${view.length} expected`);
    }
    view.set(numbers);
  }

  #give(which: Which, poses: number, out: Float32Array | undefined): Float32Array {
    const view = this.#view(which, poses);
    return out === undefined ? view : fill(out, view);
  }

  #view(which: Which, poses: number): Float32Array {
    const { buffer, address, length } = this.#array(which, poses);
    return new Float32Array(buffer, address, length);
  }

  #array(which: Which, poses: number): { buffer: ArrayBuffer; address: number; length: number } {
    const handle = this.#live();
    const size = this.module.call((exports) => exports.understudy_buffer_size(handle, which)) - 1;
    const address = this.module.call((exports) => exports.understudy_buffer(handle, which, poses));
    return { buffer: this.module.memory.buffer as ArrayBuffer, address, length: size * poses };
  }
}

function fill(out: Float32Array, numbers: Float32Array): Float32Array {
  if (out.length !== numbers.length) {
    throw new TwinError(`the array for the result: ${out.length} numbers, ${numbers.length} expected`);
  }
  out.set(numbers);
  return out;
}

function isArray(values: ControlValues): values is ArrayLike<number> {
  return typeof (values as ArrayLike<number>).length === "number";
}
