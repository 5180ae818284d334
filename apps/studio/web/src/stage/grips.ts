// Points on the stage that are dragged, with the mouse, with fingers (several at once) or with the keyboard. They are drawn in
// one call over the character; who listens to `ondrag` says what a drag does.

import * as THREE from "three";
import { h } from "../lib/dom";
import type { Viewer } from "./viewer";

/** A point that can be taken. */
export interface Grip {
  readonly name: string;
  /** Seen through the character: a wrist is inside its arm. */
  readonly through: boolean;
}

/** Where a point shall be, and in which direction it is looked at: a screen knows no depth. */
export interface Pull {
  readonly place: THREE.Vector3;
  readonly sight: THREE.Vector3;
}

export interface GripListener {
  /** A point was taken; `false` refuses it. */
  begin(index: number): boolean;
  /** Points are held at these places. At most once per frame. */
  move(pulls: ReadonlyMap<number, Pull>): void;
  /** All were let go; `false` where the drag was broken off. */
  end(kept: boolean): void;
}

/** How near to a point counts as on it, CSS pixels: fingers are wide. */
const NEAR = { mouse: 11, pen: 14, touch: 24 } as const;

const VERTEX = `
attribute float look;
attribute float through;
uniform float size;
varying float vLook;
void main() {
  vLook = look;
  // A little nearer than the skin on which it lies; in front of everything where it is inside.
  vec4 place = modelViewMatrix * vec4(position, 1.0);
  vec4 seen = projectionMatrix * vec4(place.xyz * 0.994, 1.0);
  if (through > 0.5) seen.z = -0.99 * seen.w;
  gl_Position = seen;
  gl_PointSize = size * (mod(look, 8.0) > 0.5 ? 1.35 : 1.0);
}`;

// Looks are bits: 1 under the cursor, 2 chosen, 4 held, 8 pinned.
const FRAGMENT = `
uniform vec3 colour;
uniform vec3 pinned;
varying float vLook;
void main() {
  vec2 at = gl_PointCoord * 2.0 - 1.0;
  bool pin = vLook > 7.5;
  float reach = pin ? max(abs(at.x), abs(at.y)) * 1.12 : length(at);
  if (reach > 1.0) discard;
  float low = mod(vLook, 8.0);
  vec3 inner = pin ? pinned : colour;
  vec3 shade = reach > 0.62 ? vec3(1.0) : (low > 1.5 ? mix(inner, vec3(1.0), 0.25) : inner);
  if (reach > 0.88) shade = vec3(0.08);
  gl_FragColor = vec4(shade, low > 0.5 ? 1.0 : 0.88);
  #include <colorspace_fragment>
}`;

export class Grips {
  ondrag: GripListener = { begin: () => true, move: () => {}, end: () => {} };
  /** The chosen point changed. */
  onchoose: (index: number) => void = () => {};
  /** A point was clicked twice. */
  onpin: (index: number) => void = () => {};
  readonly pins = new Set<number>();
  readonly #viewer: Viewer;
  readonly #label = h("div", { class: "grip-name", hidden: true, "aria-hidden": "true" });
  readonly #material: THREE.ShaderMaterial;
  readonly #cloud: THREE.Points<THREE.BufferGeometry, THREE.ShaderMaterial>;
  #grips: readonly Grip[] = [];
  #places = new Float32Array(0);
  #facing: ((index: number) => boolean) | null = null;
  #chosen = -1;
  #hover = -1;
  /** Fingers and what they hold. */
  readonly #held = new Map<number, { index: number; view: number; from: THREE.Vector3; offset: { x: number; y: number }; at: { x: number; y: number } }>();
  #waiting = 0;
  /** The view that the cursor was in last. */
  #view = 0;

  constructor(viewer: Viewer) {
    this.#viewer = viewer;
    this.#material = new THREE.ShaderMaterial({
      vertexShader: VERTEX, fragmentShader: FRAGMENT, transparent: true, depthWrite: false,
      uniforms: { size: { value: 12 }, colour: { value: new THREE.Color(0x1f8fff) }, pinned: { value: new THREE.Color(0xf0a020) } },
    });
    this.#cloud = new THREE.Points(new THREE.BufferGeometry(), this.#material);
    this.#cloud.frustumCulled = false;
    this.#cloud.renderOrder = 10;
    this.#cloud.visible = false;
    viewer.overlay.add(this.#cloud);
    const { canvas } = viewer;
    canvas.parentElement!.append(this.#label);
    // The camera listens on the canvas: what takes a point must be heard before.
    canvas.parentElement!.addEventListener("pointerdown", (event) => this.#down(event), { capture: true });
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"] as const) {
      canvas.addEventListener(name, (event) => this.#up(event, name !== "pointercancel"));
    }
    canvas.addEventListener("pointerleave", () => this.#point(-1));
    canvas.addEventListener("dblclick", (event) => {
      const index = this.find(event.clientX, event.clientY, NEAR.mouse);
      if (index >= 0) this.onpin(index);
    });
  }

  /** Which points there are; none are shown of an empty list. `facing` says which can be seen from where one looks. */
  set(grips: readonly Grip[], facing: ((index: number) => boolean) | null = null): void {
    this.#grips = grips;
    this.#facing = facing;
    this.#places = new Float32Array(grips.length * 3);
    this.#chosen = this.#hover = -1;
    this.pins.clear();
    this.#held.clear();
    const geometry = new THREE.BufferGeometry();
    const moving = (array: Float32Array, size: number) => new THREE.BufferAttribute(array, size).setUsage(THREE.DynamicDrawUsage);
    geometry.setAttribute("position", moving(this.#places, 3));
    geometry.setAttribute("look", moving(new Float32Array(grips.length), 1));
    geometry.setAttribute("through", new THREE.BufferAttribute(Float32Array.from(grips, ({ through }) => Number(through)), 1));
    this.#cloud.geometry.dispose();
    this.#cloud.geometry = geometry;
    this.#draw();
  }

  get list(): readonly Grip[] {
    return this.#grips;
  }

  set visible(visible: boolean) {
    this.#cloud.visible = visible && this.#grips.length > 0;
    if (!visible) this.#point(-1);
    this.#viewer.redraw();
  }

  get visible(): boolean {
    return this.#cloud.visible;
  }

  get dragging(): boolean {
    return this.#held.size > 0;
  }

  get chosen(): number {
    return this.#chosen;
  }

  set chosen(index: number) {
    if (index === this.#chosen) return;
    this.#chosen = index;
    this.#draw();
    this.onchoose(index);
  }

  /** Where the points are, cm, three numbers each. */
  place(places: ArrayLike<number>): void {
    this.#places.set(places);
    const position = this.#cloud.geometry.getAttribute("position") as THREE.BufferAttribute | undefined;
    if (position) position.needsUpdate = true;
    this.#labelled();
  }

  at(index: number): THREE.Vector3 {
    return new THREE.Vector3().fromArray(this.#places, index * 3);
  }

  /** Where a point is seen, CSS pixels of the window. */
  seen(index: number, view = 0): { x: number; y: number } {
    return this.#viewer.project(this.at(index), view);
  }

  pin(index: number, on = !this.pins.has(index)): void {
    if (on) this.pins.add(index);
    else this.pins.delete(index);
    this.#draw();
  }

  /** The point that is nearest to a place of the window, −1 where none is near. */
  find(x: number, y: number, near: number): number {
    if (!this.visible) return -1;
    const { view } = this.#viewer.sight(x, y);
    this.#view = view;
    let best = -1, least = near;
    for (let index = 0; index < this.#grips.length; index++) {
      if (!this.#grips[index]!.through && this.#facing && !this.#facing(index)) continue;
      const seen = this.seen(index, view);
      const distance = Math.hypot(seen.x - x, seen.y - y);
      // A chosen point is easier to take again.
      if (distance - (index === this.#chosen ? 3 : 0) < least) [best, least] = [index, distance];
    }
    return best;
  }

  /** Moves the chosen point on the screen, CSS pixels: keys do what fingers do. */
  nudge(x: number, y: number): boolean {
    const index = this.#chosen;
    if (index < 0 || !this.visible || this.dragging || !this.ondrag.begin(index)) return false;
    const from = this.at(index);
    const seen = this.seen(index);
    const { place, sight } = this.#viewer.unproject(this.#viewer.sight(seen.x + x, seen.y + y, 0), from);
    this.ondrag.move(new Map([[index, { place, sight }]]));
    this.ondrag.end(true);
    return true;
  }

  #down(event: PointerEvent): void {
    if (event.target !== this.#viewer.canvas || (event.pointerType === "mouse" && (event.button !== 0 || event.shiftKey))) return;
    const index = this.find(event.clientX, event.clientY, NEAR[event.pointerType as keyof typeof NEAR] ?? NEAR.mouse);
    if (index < 0 || [...this.#held.values()].some((held) => held.index === index)) {
      // A second finger beside one that holds a point shall not turn the camera.
      if (this.dragging) event.stopPropagation();
      return;
    }
    event.stopPropagation();
    event.preventDefault();
    this.#viewer.canvas.focus({ preventScroll: true });
    this.chosen = index;
    if (!this.dragging && !this.ondrag.begin(index)) return;
    const { view } = this.#viewer.sight(event.clientX, event.clientY);
    const seen = this.seen(index, view);
    const at = { x: event.clientX, y: event.clientY };
    this.#held.set(event.pointerId, { index, view, from: this.at(index), offset: { x: seen.x - at.x, y: seen.y - at.y }, at });
    this.#viewer.canvas.setPointerCapture(event.pointerId);
    this.#draw();
  }

  #move(event: PointerEvent): void {
    const held = this.#held.get(event.pointerId);
    if (!held) {
      if (!this.dragging && event.pointerType !== "touch" && event.buttons === 0) this.#point(this.find(event.clientX, event.clientY, NEAR.mouse));
      return;
    }
    held.at = { x: event.clientX, y: event.clientY };
    // Cursors speak more often than frames are drawn.
    this.#waiting ||= requestAnimationFrame(() => this.#pull());
  }

  #pull(): void {
    cancelAnimationFrame(this.#waiting);
    this.#waiting = 0;
    if (this.#held.size === 0) return;
    const pulls = new Map<number, Pull>();
    for (const { index, view, from, offset, at } of this.#held.values()) {
      pulls.set(index, this.#viewer.unproject(this.#viewer.sight(at.x + offset.x, at.y + offset.y, view), from));
    }
    this.ondrag.move(pulls);
  }

  #up(event: PointerEvent, kept: boolean): void {
    if (!this.#held.has(event.pointerId)) return;
    if (this.#waiting) this.#pull();
    this.#held.delete(event.pointerId);
    this.#draw();
    if (!this.dragging) this.ondrag.end(kept);
  }

  #point(index: number): void {
    if (index === this.#hover) return;
    this.#hover = index;
    this.#viewer.canvas.style.cursor = index < 0 ? "" : "grab";
    this.#draw();
  }

  #draw(): void {
    const look = this.#cloud.geometry.getAttribute("look") as THREE.BufferAttribute | undefined;
    if (look) {
      const held = new Set([...this.#held.values()].map(({ index }) => index));
      for (let index = 0; index < this.#grips.length; index++) {
        look.setX(index, Number(index === this.#hover) + 2 * Number(index === this.#chosen) + 4 * Number(held.has(index)) + 8 * Number(this.pins.has(index)));
      }
      look.needsUpdate = true;
    }
    this.#material.uniforms["size"]!.value = 12 * Math.min(devicePixelRatio, 2);
    this.#labelled();
    this.#viewer.redraw();
  }

  /** The name of the point under the cursor, or in the hand. */
  #labelled(): void {
    const index = this.#held.values().next().value?.index ?? this.#hover;
    const grip = this.visible ? this.#grips[index] : undefined;
    this.#label.hidden = !grip;
    if (!grip) return;
    const seen = this.seen(index, this.#view), box = this.#viewer.canvas.getBoundingClientRect();
    this.#label.textContent = grip.name;
    this.#label.style.transform = `translate(${Math.round(seen.x - box.left + 12)}px, ${Math.round(seen.y - box.top - 26)}px)`;
  }
}
