// Posing by hand: grips on hands, feet and torso, which the server solves with the rig itself, and on the points of a face,
// which a twin that has learned to follow them solves here. Where the rig is what is seen, the server takes the twin's pose on to
// where the rig's own points are under the cursor. The bar below the stage names, pins and chooses them.

import * as THREE from "three";
import { complain, fill, h } from "../lib/dom";
import type { RigScene } from "../lib/rig";
import type { Server } from "../lib/server";
import type { BrowserTwin } from "../lib/twin";
import { Grips, type Grip, type Pull } from "../stage/grips";
import type { Viewer } from "../stage/viewer";
import { otherSide } from "./sliders";

interface Handle {
  readonly name: string;
  readonly bone: number;
}

interface Reached {
  readonly handle: string;
  readonly distance_mm: number;
  readonly reach?: string;
  readonly at_limits?: readonly string[];
}

/** What of a face the server corrects with the rig itself. */
interface FaceWish {
  readonly start: number[];
  readonly free: number[];
  readonly move: { vertex: number; place: number[]; sight: number[] }[];
  readonly pinned: number[];
  readonly loose: number[];
}

/** What waits for the server: a face first, then limbs, from these controls. */
interface Wish {
  readonly controls: Float32Array;
  readonly face: FaceWish | null;
  readonly reach: Record<string, number[]>;
  readonly lock: string[];
  /** The point that is spoken of. */
  readonly name: string;
}

/** What the tab gives and takes. */
export interface HandHost {
  readonly controls: () => Float32Array;
  /** Whether left and right move together. */
  readonly both: () => boolean;
  /** A drag begins: nothing else moves the character now. */
  readonly hold: () => void;
  /** The drag's pose. */
  readonly pose: (controls: Float32Array) => void;
  /** The drag ended: its pose is worth an undo. */
  readonly done: () => void;
  /** Whether the points are seen on the rig itself, not on its twin. */
  readonly byRig: () => boolean;
  /** Whether a vertex faces the one who looks. */
  readonly facing: (vertex: number) => boolean;
  /** Points became visible, or not. */
  readonly shown: () => void;
  /** Asks for a twin that follows points. */
  readonly teach: () => Promise<void>;
}

/** Corrections where a point is let go: two bring a good network's answer home, one that learned for minutes needs more. */
const MOST_STEPS = 6;
/** While it moves there are as many as fit into so many milliseconds of a frame, none where the network takes all of them. */
const FRAME_MS = 4.5;

export class Hand {
  readonly grips: Grips;
  readonly element = h("div", { class: "hand", hidden: true, role: "group", "aria-label": "Points to drag" });
  readonly toggle = h("button", { type: "button", "aria-pressed": "false", title: "Points to drag on the character (G)" }, "Drag");
  readonly #host: HandHost;
  readonly #server: Server;
  readonly #choice = h("select", { "aria-label": "Point" });
  readonly #pin = h("button", { type: "button", "aria-pressed": "false", title: "Keeps the point where it is while others are dragged (P, or a double click)" }, "Pin");
  readonly #unpin = h("button", { type: "button", title: "Lets all points go" }, "Unpin all");
  readonly #said = h("span", { class: "soft", role: "status" });
  readonly #teach = h("button", { type: "button", class: "primary" }, "Teach a twin to follow points");
  readonly #tools = h("div", { class: "row" }, this.#choice, this.#pin, this.#unpin);
  #rig: RigScene | null = null;
  #handles: readonly Handle[] = [];
  #twin: BrowserTwin | null = null;
  #others: number[] = [];
  #on = false;
  #opening = 0;
  #start = new Float32Array(0);
  /** The solve that waits for the server, and the newest wish beside it. */
  #asking = false;
  #asked: Wish | null = null;
  #drag = 0;
  /** Controls that the twin has moved in this drag, and what the rig says of its newest pose beyond it. */
  readonly #free = new Set<number>();
  #beyond: Float32Array | null = null;

  constructor(viewer: Viewer, server: Server, host: HandHost) {
    this.#host = host;
    this.#server = server;
    this.grips = new Grips(viewer);
    this.element.append(this.#tools, this.#teach, this.#said);
    this.grips.ondrag = { begin: (index) => this.#begin(index), move: (pulls) => this.#move(pulls), end: (kept) => this.#end(kept) };
    this.grips.onchoose = (index) => this.#chosen(index);
    this.grips.onpin = (index) => this.pin(index);
    this.toggle.addEventListener("click", () => this.show(!this.#on));
    this.#choice.addEventListener("change", () => { this.grips.chosen = Number(this.#choice.value); });
    this.#pin.addEventListener("click", () => this.pin(this.grips.chosen));
    this.#unpin.addEventListener("click", () => {
      [...this.grips.pins].forEach((index) => this.grips.pin(index, false));
      this.#chosen(this.grips.chosen);
    });
    this.#teach.addEventListener("click", () => {
      this.#teach.disabled = true;
      void this.#host.teach().catch(complain).finally(() => { this.#teach.disabled = false; });
    });
  }

  /** Whether grips need the places of bones. */
  get needsBones(): boolean {
    return this.#on && this.#handles.length > 0;
  }

  /** A rig is on the stage, with a twin or without. */
  async open(rig: RigScene, name: string, twin: BrowserTwin | null): Promise<void> {
    const turn = ++this.#opening;
    this.#rig = rig;
    this.#twin = twin;
    this.#handles = [];
    this.#list(rig);
    try {
      const { handles } = await this.#server.command<{ handles: Handle[] }>("pose_handles", { rig: name });
      if (turn !== this.#opening) return;
      this.#handles = handles;
      this.#list(rig);
    } catch (error) {
      complain(error);
    }
  }

  #list(rig: RigScene): void {
    const points = this.#twin?.points ?? [];
    const list: Grip[] = [...this.#handles.map(({ name }) => ({ name, through: true })), ...points.map(({ name }) => ({ name, through: false }))];
    const names = list.map(({ name }) => name);
    this.#others = names.map((name, place) => otherSide(name, names) ?? place);
    const first = this.#handles.length;
    this.grips.set(list, (index) => index < first || this.#host.facing(points[index - first]!.vertex));
    fill(this.#choice, [["-1", "No point"], ...names.map((name, place) => [String(place), name] as const)], "-1");
    this.#tools.hidden = list.length === 0;
    // A body has its handles; what else there is to a head are points.
    const limbs = this.#handles.some(({ name }) => name !== "torso");
    this.#teach.hidden = points.length > 0 || limbs || rig.controls.length === 0;
    this.#said.textContent = list.length > 0 ? "Drag a point, or choose one and use the arrow keys" :
      rig.controls.length === 0 ? "This rig has no controls to pose" : `No limbs are known of ${rig.name}, and no twin of it follows points yet.`;
    this.grips.visible = this.#on;
    this.#chosen(-1);
    this.#host.shown();
  }

  show(on: boolean): void {
    this.#on = on;
    this.toggle.setAttribute("aria-pressed", String(on));
    this.element.hidden = !on;
    this.grips.visible = on;
    this.#host.shown();
  }

  key(event: KeyboardEvent): boolean {
    const { key } = event;
    if (key === "g" || key === "G") this.show(!this.#on);
    else if (!this.#on) return false;
    else if (key === "p" || key === "P") this.pin(this.grips.chosen);
    else {
      const arrows: Readonly<Record<string, readonly [number, number]>> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      const arrow = arrows[key];
      if (!arrow) return false;
      const far = event.shiftKey ? 12 : 3;
      const [x, y] = [arrow[0] * far, arrow[1] * far];
      if (!this.#asking) return this.grips.nudge(x, y);
      // Keys are pressed faster than a rig answers: on from where it will be.
      this.#later = { x: (this.#later?.x ?? 0) + x, y: (this.#later?.y ?? 0) + y };
    }
    return true;
  }

  /** Grips follow the character: its vertices, and twelve numbers per bone where they came. */
  follow(vertices: Float32Array, bones: Float32Array | null): void {
    if (!this.#on || this.grips.list.length === 0) return;
    const places = new Float32Array(this.grips.list.length * 3);
    const first = this.#handles.length;
    this.#handles.forEach(({ bone }, index) => {
      const old = this.grips.at(index);
      places.set(bones ? bones.subarray(bone * 12 + 9, bone * 12 + 12) : old.toArray(), index * 3);
    });
    (this.#twin?.points ?? []).forEach(({ vertex }, index) => places.set(vertices.subarray(vertex * 3, vertex * 3 + 3), (first + index) * 3));
    this.grips.place(places);
    this.#mark();
    const later = this.#asking ? null : this.#later;
    if (!later) return;
    this.#later = null;
    this.grips.nudge(later.x, later.y);
  }

  /** Where the chosen point is, in the window (CSS pixels) and in space (cm): for programs that drive the page. */
  #mark(): void {
    const { chosen } = this.grips;
    const { dataset } = this.element;
    if (chosen < 0) {
      delete dataset["at"];
      delete dataset["place"];
      return;
    }
    const { x, y } = this.grips.seen(chosen);
    dataset["at"] = `${x} ${y}`;
    dataset["place"] = this.grips.at(chosen).toArray().join(" ");
  }

  pin(index: number): void {
    if (index < 0) return;
    this.grips.pin(index);
    this.#chosen(this.grips.chosen);
  }

  #chosen(index: number): void {
    this.#choice.value = String(index);
    this.#pin.disabled = index < 0;
    this.#pin.setAttribute("aria-pressed", String(this.grips.pins.has(index)));
    this.#unpin.disabled = this.grips.pins.size === 0;
    this.#mark();
  }

  /** `index`: what the first finger took. */
  #begin(index: number): boolean {
    this.#host.hold();
    this.#start = this.#host.controls().slice();
    this.#drag += 1;
    this.#held = null;
    this.#took = [];
    this.#later = null;
    this.#free.clear();
    this.#beyond = null;
    // A second finger may take a point of the face while the first has a hand: every drag begins from its own pose.
    if ((this.#twin?.points ?? []).length > 0) {
      try {
        this.#twin!.hold(this.#start);
      } catch (error) {
        complain(error);
        return index < this.#handles.length;
      }
    }
    return true;
  }

  /** Chooses how many corrections the next place gets: one more where that is not known to take too long. */
  #pace(took: number): void {
    const known = this.#took[this.#steps];
    this.#took[this.#steps] = known === undefined ? took : 0.7 * known + 0.3 * took;
    if (took > FRAME_MS) this.#steps = Math.max(this.#steps - 1, 0);
    else if (this.#steps < MOST_STEPS && (this.#took[this.#steps + 1] ?? 0) < FRAME_MS) this.#steps += 1;
  }

  #move(held: ReadonlyMap<number, Pull>): void {
    const from = performance.now();
    this.#held = held;
    this.#solve(held, this.#steps);
    const took = performance.now() - from;
    this.#pace(took);
    this.#times.push(took);
    if (this.#times.length > 120) this.#times.shift();
  }

  /** Milliseconds of the newest frames of drags: solving and, where the twin plays here, its vertices and normals. */
  readonly #times: number[] = [];

  get times(): readonly number[] {
    return this.#times;
  }

  #solve(held: ReadonlyMap<number, Pull>, steps: number): void {
    const pulls = new Map(held);
    if (this.#host.both()) {
      for (const [index, { place, sight }] of held) {
        const other = this.#others[index]!;
        const turned = ({ x, y, z }: THREE.Vector3) => new THREE.Vector3(-x, y, z);
        if (other !== index && !held.has(other)) pulls.set(other, { place: turned(place), sight: turned(sight) });
      }
    }
    const first = this.#handles.length;
    const faces = [...pulls].filter(([index]) => index >= first), limbs = [...pulls].filter(([index]) => index < first);
    const controls = this.#start.slice();
    const pinned = [...this.grips.pins].filter((index) => !pulls.has(index));
    let face: FaceWish | null = null;
    if (faces.length > 0) {
      const held = pinned.filter((index) => index >= first).map((index) => index - first);
      try {
        const places = this.#twin!.drag({
          move: new Map(faces.map(([index, { place }]) => [index - first, place.toArray()])),
          sights: new Map(faces.map(([index, { sight }]) => [index - first, sight.toArray()])),
          pinned: held,
          steps,
        }, controls);
        if (this.#host.byRig()) face = this.#faceWish(faces.map(([index, pull]) => [index - first, pull]), held, controls);
        else {
          const [[index, { place, sight }]] = faces as [[number, Pull]];
          const off = new THREE.Vector3().fromArray(places, (index - first) * 3).sub(place);
          this.#tell(this.grips.list[index]!.name, off.addScaledVector(sight, -off.dot(sight)).length() * 10);
        }
      } catch (error) {
        complain(error);
      }
    }
    if (limbs.length === 0) this.#host.pose(face ? this.#corrected(controls) : controls);
    if (limbs.length === 0 && !face) return;
    this.#asked = {
      controls, face,
      reach: Object.fromEntries(limbs.map(([index, { place }]) => [this.#handles[index]!.name, place.toArray()])),
      lock: pinned.filter((index) => index < first).map((index) => this.#handles[index]!.name),
      name: this.grips.list[(faces[0] ?? limbs[0])![0]]!.name,
    };
    void this.#ask();
  }

  #faceWish(moved: readonly (readonly [number, Pull])[], pinned: readonly number[], controls: Float32Array): FaceWish {
    const vertex = (point: number) => this.#twin!.points[point]!.vertex;
    controls.forEach((value, place) => { if (value !== this.#start[place]) this.#free.add(place); });
    const named = new Set([...moved.map(([point]) => point), ...pinned]);
    return {
      start: [...this.#start],
      free: [...this.#free],
      move: moved.map(([point, { place, sight }]) => ({ vertex: vertex(point), place: place.toArray(), sight: sight.toArray() })),
      pinned: pinned.map(vertex),
      loose: this.#twin!.points.map((_, point) => point).filter((point) => !named.has(point)).map(vertex),
    };
  }

  /** The twin's controls, and what the rig said of the last ones beyond them: between its answers nothing jumps back. */
  #corrected(controls: Float32Array): Float32Array {
    const beyond = this.#beyond;
    if (!beyond) return controls;
    return controls.map((value, place) => {
      const { low, high } = this.#rig!.controls[place]!, start = this.#start[place]!;
      return Math.min(Math.max(value + beyond[place]!, Math.min(low, start)), Math.max(high, start));
    });
  }

  /** One wish at a time is with the server; only the newest waits. */
  async #ask(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    // For programs that drive the page.
    this.element.dataset["solving"] = "";
    try {
      for (let wish = this.#asked; wish; wish = this.#asked) {
        this.#asked = null;
        await this.#grant(wish, this.#drag);
      }
    } catch (error) {
      complain(error);
    } finally {
      this.#asking = false;
      delete this.element.dataset["solving"];
    }
    if (!this.grips.dragging && this.#ended) {
      this.#ended = false;
      this.#host.done();
    }
  }

  async #grant({ controls: asked, face, reach, lock, name }: Wish, drag: number): Promise<void> {
    let controls = asked;
    if (face) {
      const answer = await this.#server.command<{ controls: number[]; off_mm: number[] }>("pose_points", { ...face, controls: [...asked] });
      if (drag !== this.#drag) return;
      controls = Float32Array.from(answer.controls);
      this.#beyond = controls.map((value, place) => value - asked[place]!);
      this.#tell(name, answer.off_mm[0]!);
    }
    if (Object.keys(reach).length > 0) {
      const answer = await this.#server.command<{ controls: number[]; reached: Reached[] }>("pose_reach", { controls: [...controls], reach, lock });
      if (drag !== this.#drag) return;
      controls = Float32Array.from(answer.controls);
      const own = answer.reached.find(({ handle }) => handle in reach);
      if (own) this.#tell(own.handle, own.distance_mm, own.reach, own.at_limits);
    } else if (this.#asked) controls = this.#corrected(this.#asked.controls);
    this.#host.pose(controls);
  }

  #ended = false;
  /** Keys that wait for the rig, CSS pixels. */
  #later: { x: number; y: number } | null = null;
  /** Where the drag is now; nothing where it has not moved yet. */
  #held: ReadonlyMap<number, Pull> | null = null;
  #steps = 2;
  /** What places took with so many corrections, ms, in this drag. */
  #took: number[] = [];

  #end(kept: boolean): void {
    // A click is no pose.
    if (!this.#held) return;
    if (kept) this.#solve(this.#held, MOST_STEPS);
    else {
      this.#asked = null;
      this.#drag += 1;
      this.#host.pose(this.#start.slice());
    }
    // What the server still solves belongs to the gesture.
    if (this.#asking) this.#ended = true;
    else this.#host.done();
  }

  #told = 0;

  #tell(name: string, mm: number, reach?: string, limits: readonly string[] = []): void {
    // Words that change sixty times per second cannot be read, nor heard. What a drag ends with is said.
    const now = performance.now();
    if (this.grips.dragging && now - this.#told < 120) return;
    this.#told = now;
    const how = reach === "too far" || reach === "too near" ? `, ${reach}` : "";
    const ends = limits.length > 0 ? `; at its limit: ${limits.slice(0, 2).join(", ")}${limits.length > 2 ? " …" : ""}` : "";
    this.#said.textContent = `${name}: ${mm.toFixed(mm < 0.995 ? 2 : 1)} mm off${how}${ends}`;
  }
}
