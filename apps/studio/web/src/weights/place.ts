// Placing handles on the stage: a click names a vertex, two clicks a bone in the middle of what they hit, and a stroke paints a
// region. What is not on the mesh turns the camera as always.

import * as THREE from "three";
import type { Viewer } from "../stage/viewer";
import type { Triple } from "./handles";

export type PlaceMode = "turn" | "point" | "bone" | "region";

export interface PlaceListener {
  point(vertex: number): void;
  /** Both ends are known. */
  bone(head: Triple, tail: Triple): void;
  /** The first end is known; `null` where it was given up. */
  head(place: Triple | null): void;
  /** Vertices of a stroke; the last call of a stroke has `done`. */
  stroke(vertices: ReadonlySet<number>, done: boolean): void;
  /** A click met nothing. */
  missed(): void;
}

/** Pixels that a hand may tremble during a click. */
const STILL = 4;

export class Placer {
  /** Radius of the brush, as a share of the mesh's size. */
  brush = 0.06;
  /** Whether a place of the window is taken by something else, such as a grip. */
  taken: (x: number, y: number) => boolean = () => false;
  readonly #viewer: Viewer;
  readonly #listener: PlaceListener;
  #positions = new Float32Array(0);
  #size = 1;
  #mode: PlaceMode = "turn";
  #head: Triple | null = null;
  #down: { x: number; y: number } | null = null;
  #stroke: Set<number> | null = null;

  constructor(viewer: Viewer, listener: PlaceListener) {
    this.#viewer = viewer;
    this.#listener = listener;
    const parent = viewer.canvas.parentElement!;
    // The camera listens on the canvas: a stroke must be heard before.
    parent.addEventListener("pointerdown", (event) => this.#press(event), { capture: true });
    viewer.canvas.addEventListener("pointermove", (event) => this.#move(event));
    viewer.canvas.addEventListener("pointerup", (event) => this.#release(event));
    viewer.canvas.addEventListener("pointercancel", () => { this.#down = null; this.#end(); });
  }

  /** The mesh that is placed on. */
  mesh(positions: Float32Array): void {
    this.#positions = positions as Float32Array<ArrayBuffer>;
    const box = new THREE.Box3().setFromArray(positions as unknown as number[]);
    this.#size = box.getSize(new THREE.Vector3()).length();
    this.#give(null);
  }

  get mode(): PlaceMode {
    return this.#mode;
  }

  set mode(mode: PlaceMode) {
    this.#mode = mode;
    this.#give(null);
    this.#viewer.canvas.style.cursor = mode === "turn" ? "" : "crosshair";
  }

  /** Gives up a bone that has only one end; whether there was one. */
  cancel(): boolean {
    const had = this.#head !== null;
    this.#give(null);
    return had;
  }

  #give(head: Triple | null): void {
    if (head === this.#head) return;
    this.#head = head;
    this.#listener.head(head);
  }

  #press(event: PointerEvent): void {
    if (event.target !== this.#viewer.canvas || event.button !== 0 || event.shiftKey || this.#mode === "turn" || this.taken(event.clientX, event.clientY)) return;
    this.#down = { x: event.clientX, y: event.clientY };
    if (this.#mode !== "region") return;
    const hit = this.#viewer.hits(event.clientX, event.clientY)[0];
    if (!hit) return;
    event.stopPropagation();
    event.preventDefault();
    this.#viewer.canvas.setPointerCapture(event.pointerId);
    this.#stroke = new Set();
    this.#paint(hit.point);
  }

  #move(event: PointerEvent): void {
    if (!this.#stroke) return;
    const hit = this.#viewer.hits(event.clientX, event.clientY)[0];
    if (hit) this.#paint(hit.point);
  }

  #paint(at: THREE.Vector3): void {
    const reach = (this.brush * this.#size) ** 2;
    for (let vertex = 0; vertex < this.#positions.length / 3; vertex++) {
      const x = this.#positions[vertex * 3]! - at.x, y = this.#positions[vertex * 3 + 1]! - at.y, z = this.#positions[vertex * 3 + 2]! - at.z;
      if (x * x + y * y + z * z <= reach) this.#stroke!.add(vertex);
    }
    // A stroke between vertices means the nearest one.
    if (this.#stroke!.size === 0) this.#stroke!.add(this.#nearest(at));
    this.#listener.stroke(this.#stroke!, false);
  }

  #end(): void {
    if (this.#stroke) this.#listener.stroke(this.#stroke, true);
    this.#stroke = null;
  }

  #release(event: PointerEvent): void {
    const down = this.#down;
    this.#down = null;
    if (this.#stroke) return this.#end();
    // Who moved turned the camera.
    if (!down || Math.hypot(event.clientX - down.x, event.clientY - down.y) > STILL) return;
    const hits = this.#viewer.hits(event.clientX, event.clientY);
    if (hits.length === 0) return this.#listener.missed();
    if (this.#mode === "point") return this.#listener.point(this.#nearest(hits[0]!.point));
    if (this.#mode !== "bone") return;
    // A bone lies inside: half way to where the look leaves the first part that it enters.
    const middle = hits[0]!.point.clone();
    if (hits.length > 1) middle.lerp(hits[1]!.point, 0.5);
    const place: Triple = [middle.x, middle.y, middle.z];
    const head = this.#head;
    if (!head) return this.#give(place);
    this.#give(null);
    this.#listener.bone(head, place);
  }

  #nearest(at: THREE.Vector3): number {
    let best = 0, least = Infinity;
    for (let vertex = 0; vertex < this.#positions.length / 3; vertex++) {
      const x = this.#positions[vertex * 3]! - at.x, y = this.#positions[vertex * 3 + 1]! - at.y, z = this.#positions[vertex * 3 + 2]! - at.z;
      const squared = x * x + y * y + z * z;
      if (squared < least) [best, least] = [vertex, squared];
    }
    return best;
  }
}
