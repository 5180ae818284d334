// A character that plays motion: commands in, controls out, frame by frame. What was learned is read by the same module as
// twins are, and a twin's pose takes the controls as they are.

import { TwinModule, type ModuleSource } from "./module.js";
import type { ControlSpec } from "./twin.js";

/** What a character shall do; poses are `"CLIP"` (its strongest) or `"CLIP@0.4s"`, times are seconds. */
export type Command =
  | { readonly command: "transition"; readonly label: string }
  | { readonly command: "move"; readonly pose: string; readonly seconds?: number; readonly straight?: boolean }
  | { readonly command: "idle"; readonly seconds?: number; readonly around?: readonly string[]; readonly dwell?: number }
  | { readonly command: "play"; readonly clip: string; readonly part?: readonly [number, number] }
  | {
      readonly command: "mix";
      readonly seconds: number;
      readonly parts: readonly { readonly pose: string; readonly weight: number }[];
    }
  | { readonly command: "stop" };

/** Where a clip lies among the frames of its label. */
export interface ClipFrames {
  readonly name: string;
  readonly first: number;
  readonly frames: number;
  readonly strongest: number;
}

/** One label of a motion. */
export interface MotionLabel {
  readonly label: string;
  readonly dimensions: number;
  readonly frames: number;
  readonly clips: readonly ClipFrames[];
}

/** What a file of motion holds. */
export interface MotionDescription {
  readonly rig: string;
  /** Frames per second. */
  readonly rate: number;
  readonly controls: readonly ControlSpec[];
  readonly labels: readonly MotionLabel[];
}

/** Where a character stands after a frame. */
export interface Situation {
  readonly label: string;
  readonly doing: "idle" | "move" | "transition" | "play" | "mix";
  /** Whether commands are left. */
  readonly busy: boolean;
  /** In the latent space of the label. */
  readonly position: readonly number[];
  /** The corners of the path that it still has to walk, from where the path is. */
  readonly path: readonly (readonly number[])[];
  readonly radius: number;
  /** From the path, in radii. */
  readonly distance: number;
  /** `log p` of the place. */
  readonly density: number;
  readonly frame: number;
}

export interface MotionOptions {
  /** The same seed gives the same frames. */
  readonly seed?: number;
  /** A module that twins have too, or where to get one; without it the one that comes with this package. */
  readonly module?: TwinModule | ModuleSource | Promise<ModuleSource>;
}

// Characters that nobody holds any more free their memory.
const forgotten =
  typeof FinalizationRegistry === "function"
    ? new FinalizationRegistry<{ module: TwinModule; handle: number }>(({ module, handle }) => release(module, handle))
    : undefined;

function release(module: TwinModule, handle: number): void {
  try {
    module.call((exports) => exports.understudy_motion_free(handle));
  } catch {
    // A module that stopped frees everything at once.
  }
}

/** Plays motion for one character. */
export class Motion {
  readonly description: MotionDescription;
  readonly module: TwinModule;
  #handle: number;

  private constructor(module: TwinModule, handle: number) {
    this.module = module;
    this.#handle = handle;
    module.call((exports) => exports.understudy_motion_describe(handle));
    this.description = JSON.parse(module.text()) as MotionDescription;
    forgotten?.register(this, { module, handle }, this);
  }

  /** Reads the bytes of a `.motion` file and checks everything about them. */
  static async load(bytes: BufferSource, options: MotionOptions = {}): Promise<Motion> {
    const { module: given, seed = 1 } = options;
    const module =
      given instanceof TwinModule ? given : await (given === undefined ? TwinModule.standard() : TwinModule.create(given));
    const file = ArrayBuffer.isView(bytes)
      ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      : new Uint8Array(bytes);
    module.send(file);
    return new Motion(module, module.call((exports) => exports.understudy_motion_load(seed)));
  }

  /** One more character that plays the same; what was learned is there once. */
  another(seed: number): Motion {
    return new Motion(this.module, this.module.call((exports) => exports.understudy_motion_again(this.#handle, seed)));
  }

  /** Frames per second. */
  get rate(): number {
    return this.description.rate;
  }

  /** Does something after what it does now; `stop` at once. What cannot be done is an exception now. */
  command(command: Command): void {
    this.module.send(new TextEncoder().encode(JSON.stringify(command)));
    this.module.call((exports) => exports.understudy_motion_command(this.#handle));
  }

  /** All commands of a script, or none: what is wrong is an exception that names the line. */
  script(text: string): void {
    const bytes = new TextEncoder().encode(text);
    this.module.send(bytes.length > 0 ? bytes : new Uint8Array([32]));
    this.module.call((exports) => exports.understudy_motion_script(this.#handle));
  }

  /** So many frames on; gives the controls of the last. */
  step(frames = 1): Float32Array {
    this.module.call((exports) => exports.understudy_motion_step(this.#handle, frames));
    return this.controls;
  }

  /** Controls of the last frame, a copy, for {@link Twin.pose} of a twin of the same rig. */
  get controls(): Float32Array {
    const address = this.module.call((exports) => exports.understudy_motion_controls(this.#handle));
    return new Float32Array(this.module.memory.buffer, address, this.description.controls.length).slice();
  }

  /** Where it stands. */
  get situation(): Situation {
    this.module.call((exports) => exports.understudy_motion_situation(this.#handle));
    return JSON.parse(this.module.text()) as Situation;
  }

  /** Lets it go; nothing of it may be used afterwards. */
  free(): void {
    forgotten?.unregister(this);
    release(this.module, this.#handle);
    this.#handle = 0;
  }
}
