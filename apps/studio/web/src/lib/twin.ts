// A twin in the browser: the file from the server, played by WebAssembly. Its inputs are found among the rig's by name.

import { Twin, type ControlPoint, type DragTargets, type Performance, type SeenFace } from "understudy-twin";
import type { RigScene } from "./rig";

export class BrowserTwin {
  /** Whether it wants the rig's bones beside the controls. */
  readonly wantsBones: boolean;
  readonly #twin: Twin;
  readonly #controlsOf: number[];
  readonly #controls: Float32Array;
  readonly #bonesOf: number[];
  readonly #bones: Float32Array;

  private constructor(twin: Twin, rig: RigScene, boneNames: readonly string[]) {
    this.#twin = twin;
    // A twin whose file tells how controls move its bones needs nothing of the rig; another is given the rig's bones, and
    // what matters beside them.
    this.wantsBones = !twin.posedByControls;
    const controls = this.wantsBones ? twin.header.inputs.controls : twin.controls;
    const bones = this.wantsBones ? twin.header.inputs.bones : [];
    this.#controlsOf = controls.map((control) => rig.controls.findIndex((other) => other.name === control.name));
    this.#bonesOf = bones.map((bone) => boneNames.indexOf(bone.name));
    if (this.#controlsOf.includes(-1) || this.#bonesOf.includes(-1)) throw new Error("the twin wants what the rig does not have");
    this.#controls = new Float32Array(controls.length);
    this.#bones = new Float32Array(bones.length * 16);
  }

  static async load(bytes: ArrayBuffer, rig: RigScene): Promise<BrowserTwin> {
    return new BrowserTwin(await Twin.load(bytes), rig, rig.boneNames);
  }

  /** Moves `out` [3V]; gives the milliseconds. `bones`: twelve numbers per bone of the rig. */
  pose(controls: Float32Array, bones: Float32Array | null, out: Float32Array): number {
    this.#controlsOf.forEach((of, place) => { this.#controls[place] = controls[of]!; });
    if (this.wantsBones) {
      if (!bones) throw new Error("the twin wants bones");
      this.#bonesOf.forEach((of, place) => {
        const to = place * 16;
        for (let column = 0; column < 4; column++) {
          for (let row = 0; row < 3; row++) this.#bones[to + column * 4 + row] = bones[of * 12 + column * 3 + row]!;
          this.#bones[to + column * 4 + 3] = column === 3 ? 1 : 0;
        }
      });
    }
    const start = performance.now();
    this.#twin.pose(this.wantsBones ? { bones: this.#bones, controls: this.#controls } : { controls: this.#controls }, out);
    return performance.now() - start;
  }

  /** The points of the face that it follows. */
  get points(): readonly ControlPoint[] {
    return this.wantsBones ? [] : this.#twin.points;
  }

  /** Begins a drag at a pose of the rig. */
  hold(controls: Float32Array): void {
    this.#controlsOf.forEach((of, place) => { this.#controls[place] = controls[of]!; });
    this.#twin.hold(this.#controls);
  }

  /** Brings points to places, from the pose that was held; writes the rig's controls and gives where the points are. */
  drag(targets: DragTargets, controls: Float32Array): Float32Array {
    const places = this.#twin.drag(targets, this.#controls);
    this.#controlsOf.forEach((of, place) => { controls[of] = this.#controls[place]!; });
    return places;
  }

  /** The name of the rig that a twin's file was learned from. */
  static async rigOf(bytes: ArrayBuffer): Promise<string> {
    const twin = await Twin.load(bytes);
    const { rig } = twin.header;
    twin.free();
    return rig;
  }

  /** An actor drives it from now on; `geometry` is the canonical face of a `.task` file. */
  beginLive(geometry: Uint8Array): void {
    if (this.wantsBones) throw new Error("this twin is posed by bones: an actor drives controls");
    this.#twin.beginLive(geometry);
  }

  /** Takes a face as the actor at rest. */
  setRest(face: SeenFace): void {
    this.#twin.setRest(face);
  }

  /** The next frame of the actor, so many seconds after the last; writes the rig's controls. */
  follow(face: SeenFace | null, seconds: number, controls: Float32Array): Performance {
    const performed = this.#twin.follow(face, seconds, this.#controls);
    this.#controlsOf.forEach((of, place) => { controls[of] = this.#controls[place]!; });
    return performed;
  }

  free(): void {
    this.#twin.free();
  }
}
