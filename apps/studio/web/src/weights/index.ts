// The Weights tab: handles are placed on a mesh by clicking, examples dropped, weights solved as a job, painted per handle and
// tried by dragging the handles; the skinned mesh leaves as a GLB.

import * as THREE from "three";
import type { Context, Tab, TabKind } from "../lib/context";
import { acceptDrops, complain, download, fileButton, fill, fillRigs, h, toast } from "../lib/dom";
import { readRig, type RigScene } from "../lib/rig";
import type { Run } from "../lib/server";
import { Actor } from "../stage/actor";
import { Grips } from "../stage/grips";
import { rampTexture } from "../stage/material";
import { VIEW_KEYS, Viewer } from "../stage/viewer";
import { Handles, spread, type Handle, type Triple } from "./handles";
import { Placer, type PlaceMode } from "./place";

/** The first number of this tab's binary messages, and what they ask for. */
const WEIGHTS = 3;
const [MAP, DRAG] = [0, 1];
const MODES: readonly (readonly [PlaceMode, string, string])[] = [
  ["turn", "Look and drag", "Turn the view; drag handles once weights are solved (V)"],
  ["point", "Point", "A click puts a point on a vertex (P)"],
  ["bone", "Bone", "Two clicks put a bone inside: its head, then its tail (B)"],
  ["region", "Region", "A stroke paints vertices that follow as one (R)"],
];
const KINDS = [["bbw", "Bounded biharmonic"], ["quasi", "Quasi-harmonic, fast"], ["heat", "Bone heat"]] as const;
const DOMAINS = [["auto", "Where it fits best"], ["surface", "On the surface"], ["volume", "In the volume"]] as const;

interface Opened {
  readonly names: readonly string[];
  readonly places: readonly Triple[];
  readonly vertices: number;
  readonly notes: readonly string[];
}

/** What a finished job says. */
interface Solved {
  readonly file: string;
  readonly arrays: string;
  readonly handle_file: string;
  readonly influences: number;
  readonly near_zero_share: number;
  readonly seconds: number;
  readonly rmse_mm: number | null;
  readonly examples: number | null;
  readonly notes: readonly string[];
}

export const weightsTab: TabKind = { id: "weights", title: "Weights", make: (panel, context) => new WeightsTab(panel, context) };

class WeightsTab implements Tab {
  readonly #context: Context;
  readonly #stage = h("div", { class: "stage" });
  readonly #viewer: Viewer;
  readonly #grips: Grips;
  readonly #placer: Placer;
  readonly #handles = new Handles();
  readonly #ramp: THREE.IUniform<THREE.Texture> = { value: rampTexture([[60, 40, 120], [240, 230, 60]]) };
  readonly #rigChoice = h("select", { "aria-label": "Mesh" });
  readonly #modes = h("div", { class: "segmented", role: "radiogroup", "aria-label": "What a click does" });
  readonly #brush = h("input", { type: "range", min: 0.01, max: 0.25, step: 0.005, value: 0.06, "aria-label": "Size of the brush" });
  readonly #brushRow = h("label", { class: "row", hidden: true }, "Brush", this.#brush);
  readonly #kind = h("select", { id: "weights-kind" });
  readonly #domain = h("select", { id: "weights-domain" });
  readonly #most = h("input", { type: "number", id: "weights-most", min: 1, max: 255, step: 1, placeholder: "all" });
  readonly #solve = h("button", { type: "button", class: "primary", disabled: true }, "Solve");
  readonly #cancel = h("button", { type: "button", "data-action": "cancel-weights" }, "Cancel");
  readonly #export = h("button", { type: "button", disabled: true }, "Export GLB");
  readonly #rest = h("button", { type: "button", disabled: true, title: "Handles back to where they rest (0)" }, "Back to rest");
  readonly #list = h("div", { class: "stack" });
  readonly #examplesList = h("div", { class: "stack" });
  readonly #bar = h("div", {});
  readonly #progressText = h("p", { class: "soft" });
  readonly #progress = h("div", { class: "stack", hidden: true }, h("div", { class: "progress" }, this.#bar), h("div", { class: "row" }, this.#progressText, h("span", { class: "spread" }), this.#cancel));
  readonly #figures = h("div", { class: "figures", role: "status" });
  readonly #notice = h("div", { class: "notice" });
  readonly #hint = h("div", { class: "chip", style: "top: 8px; left: 8px", role: "status" });
  readonly #legend = h("div", { class: "legend", hidden: true });
  readonly #bones = new THREE.LineSegments(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({ color: 0xf0a020, depthTest: false, transparent: true }));
  #rig: RigScene | null = null;
  #actor: Actor | null = null;
  #examples: string[] = [];
  #run: number | null = null;
  #solved: (Solved & Opened) | null = null;
  #free = new Set<number>();
  /** Where handles are now, three numbers each. */
  #places = new Float32Array(0);
  #chosen = -1;
  #head: Triple | null = null;
  #stroke: ReadonlySet<number> = new Set();
  #turn = 0;
  #next = 1;
  /** A drag that waits for its answer, and whether handles moved since. */
  #asked = false;
  #moved = false;

  constructor(panel: HTMLElement, context: Context) {
    this.#context = context;
    fill(this.#kind, KINDS, "bbw");
    fill(this.#domain, DOMAINS, "auto");
    const open = fileButton("Open mesh…", ".obj,.glb,.gltf", (files) => void this.#openFile(files));
    const examples = fileButton("Add examples…", ".obj,.glb,.gltf,.npz", (files) => void this.#takeExamples(files), true);
    this.#modes.append(...MODES.map(([mode, text, title]) => h("button", { type: "button", role: "radio", "data-mode": mode, title, "aria-checked": String(mode === "turn"), onclick: () => this.#setMode(mode) }, text)));
    const tools = h("div", { class: "tools", role: "toolbar", "aria-label": "Mesh and handles" },
      this.#rigChoice, open, this.#modes, this.#brushRow, h("span", { class: "spread" }), this.#rest, this.#export);
    const side = h("aside", { class: "side", "aria-label": "Handles and weights" },
      h("header", {},
        h("div", { class: "row" }, this.#solve, h("span", { class: "spread" }), examples),
        this.#progress, this.#figures),
      h("div", { class: "scroll stack", tabindex: 0, "aria-label": "Handles" },
        h("h2", {}, "Handles"), this.#list,
        h("h2", {}, "Examples"), this.#examplesList,
        h("h2", {}, "Settings"),
        h("label", { class: "field", for: "weights-kind" }, h("span", {}, "Kind of weights"), this.#kind),
        h("label", { class: "field", for: "weights-domain" }, h("span", {}, "Where they are solved"), this.#domain),
        h("label", { class: "field", for: "weights-most" }, h("span", {}, "Handles per vertex at most"), this.#most)));
    panel.append(h("div", { class: "work" }, tools, this.#stage, side));
    this.#viewer = new Viewer(this.#stage, "The mesh with its handles; click to place, drag to turn, wheel to zoom");
    this.#grips = new Grips(this.#viewer);
    this.#placer = new Placer(this.#viewer, {
      point: (vertex) => this.#place({ kind: "point", name: this.#handles.free("point"), vertex }),
      bone: (head, tail) => this.#place({ kind: "bone", name: this.#handles.free("bone"), head, tail }),
      head: (place) => { this.#head = place; this.#drawBones(); this.#tell(); },
      stroke: (vertices, done) => {
        this.#stroke = vertices;
        this.#paint();
        if (!done) return;
        this.#stroke = new Set();
        this.#place({ kind: "region", name: this.#handles.free("region"), vertices: new Set(vertices) });
      },
      missed: () => toast("There is no mesh under that click."),
    });
    this.#placer.taken = (x, y) => this.#grips.find(x, y, 8) >= 0;
    this.#bones.renderOrder = 9;
    this.#bones.frustumCulled = false;
    this.#viewer.overlay.add(this.#bones);
    this.#stage.append(this.#hint, this.#legend, this.#notice);
    acceptDrops(panel, (files) => void this.#takeExamples(files), (over) => this.#stage.classList.toggle("over", over));

    this.#grips.onchoose = (index) => this.#choose(index);
    this.#grips.ondrag = {
      begin: (index) => this.#solved !== null && !this.#free.has(index),
      move: (pulls) => {
        for (const [index, { place }] of pulls) place.toArray(this.#places, index * 3);
        this.#drag();
      },
      end: () => {},
    };
    this.#handles.onchange = () => this.#changed();
    context.server.onbinary(WEIGHTS, (message) => this.#hear(message));
    context.project.follow((project) => {
      if (!project) return;
      this.#ramp.value = rampTexture(project.ramp);
      if (this.#actor) this.#actor.look.ramp.value = this.#ramp.value;
      const colours = project.ramp.map((colour) => `rgb(${colour.join(" ")})`).join(", ");
      this.#legend.style.setProperty("--ramp", `linear-gradient(90deg, ${colours})`);
      fillRigs(this.#rigChoice, project);
    });
    context.runs.follow((runs) => this.#follow(runs));
    this.#rigChoice.addEventListener("change", () => void this.#open(this.#rigChoice.value).catch(complain));
    this.#brush.addEventListener("input", () => { this.#placer.brush = Number(this.#brush.value); });
    this.#solve.addEventListener("click", () => void this.#start().catch(complain));
    this.#cancel.addEventListener("click", () => { if (this.#run !== null) void context.server.cancel(this.#run).catch(complain); });
    this.#export.addEventListener("click", () => void this.#save().catch(complain));
    this.#rest.addEventListener("click", () => this.#toRest());
    this.#changed();
    void this.#open("mira").catch(complain);
  }

  show(visible: boolean): void {
    this.#viewer.visible = visible;
  }

  key(event: KeyboardEvent): boolean {
    const mode = { v: "turn", p: "point", b: "bone", r: "region" }[event.key.toLowerCase()] as PlaceMode | undefined;
    const arrow = { ArrowLeft: [-6, 0], ArrowRight: [6, 0], ArrowUp: [0, -6], ArrowDown: [0, 6] }[event.key] as [number, number] | undefined;
    if (mode) this.#setMode(mode);
    else if (event.key === "f" || event.key === "F") this.#viewer.frame();
    else if (VIEW_KEYS[event.key]) this.#viewer.look(VIEW_KEYS[event.key]!);
    else if (event.key === "0") this.#toRest();
    else if (event.key === "Escape") { if (!this.#placer.cancel()) this.#setMode("turn"); }
    else if ((event.key === "Delete" || event.key === "Backspace") && this.#chosen >= 0 && this.#run === null) this.#handles.remove(this.#chosen);
    else if (arrow && this.#solved) return this.#grips.nudge(...arrow);
    else return false;
    return true;
  }

  // The mesh and its handles.

  async #openFile(files: File[]): Promise<void> {
    try {
      if (!files[0]) return;
      const name = await this.#context.server.upload(files[0]);
      await this.#context.refresh();
      if (![...this.#rigChoice.options].some(({ value }) => value === name)) this.#rigChoice.append(h("option", { value: name }, name));
      this.#rigChoice.value = name;
      await this.#open(name);
    } catch (error) {
      complain(error);
    }
  }

  async #open(name: string): Promise<void> {
    const turn = ++this.#turn;
    const rig = readRig(await this.#context.server.rig(name));
    if (turn !== this.#turn) return;
    this.#rig = rig;
    this.#actor?.dispose();
    this.#actor = new Actor(rig, this.#ramp, { value: 1 });
    this.#viewer.setHome(rig.positions);
    this.#viewer.look("front");
    this.#viewer.show([this.#actor], "single");
    this.#placer.mesh(rig.positions);
    this.#examples = [];
    this.#drawExamples();
    this.#handles.clear();
    this.#stage.dataset["mesh"] = name;
  }

  #setMode(mode: PlaceMode): void {
    if (this.#run !== null && mode !== "turn") return;
    // Handles are placed on the mesh at rest.
    if (mode !== "turn") this.#toRest();
    this.#placer.mode = mode;
    for (const button of this.#modes.children) button.setAttribute("aria-checked", String((button as HTMLElement).dataset["mode"] === mode));
    this.#brushRow.hidden = mode !== "region";
    this.#tell();
  }

  #place(handle: Handle): void {
    if (this.#run !== null) return toast("Weights are being solved: wait, or cancel.");
    const index = this.#handles.add(handle);
    this.#choose(index);
  }

  /** Handles changed: what was solved for others is gone. */
  #changed(): void {
    this.#solved = null;
    this.#free.clear();
    this.#figures.replaceChildren();
    this.#export.disabled = this.#rest.disabled = true;
    const list = this.#handles.list;
    this.#solve.disabled = list.length === 0 || this.#run !== null;
    this.#chosen = Math.min(this.#chosen, list.length - 1);
    this.#grips.set(list.map(({ name, kind }) => ({ name, through: kind !== "point" })));
    if (this.#rig && this.#actor) {
      this.#actor.move(this.#rig.positions);
      this.#places = new Float32Array(list.flatMap((_, index) => [...this.#handles.place(index, this.#rig!.positions)]));
      this.#grips.place(this.#places);
    }
    this.#grips.visible = list.length > 0;
    this.#stage.dataset["state"] = "placing";
    this.#drawList();
    this.#drawBones();
    this.#paint();
    this.#empty();
  }

  #empty(): void {
    const empty = this.#handles.list.length === 0 && this.#run === null;
    this.#notice.hidden = !empty;
    // The mesh below has to be clicked.
    this.#notice.style.pointerEvents = "none";
    if (!empty) return this.#tell();
    this.#notice.replaceChildren(h("div", { class: "box", style: "pointer-events: auto" },
      h("h2", {}, "Weights for handles that you place"),
      h("p", {}, "Choose Point, Bone or Region above and click on the mesh. Drop deformed meshes of the same topology here, and weights learn from them."),
      h("div", { class: "row" },
        h("button", { type: "button", class: "primary", "data-action": "spread", onclick: () => this.#spread() }, "Try it with six points"),
        h("button", { type: "button", "data-action": "begin", onclick: () => { this.#setMode("point"); this.#notice.hidden = true; } }, "Place handles"))));
    this.#tell();
  }

  #spread(): void {
    if (!this.#rig) return;
    for (const vertex of spread(this.#rig.positions, 6)) this.#handles.add({ kind: "point", name: this.#handles.free("point"), vertex });
    this.#choose(0);
  }

  #tell(): void {
    const mode = this.#placer?.mode ?? "turn";
    const text = this.#run !== null ? "" : mode === "point" ? "Click a vertex" : mode === "region" ? "Paint over the vertices that follow as one"
      : mode === "bone" ? (this.#head ? "Click where the bone ends (Esc gives it up)" : "Click where the bone begins")
      : this.#solved ? "Drag a handle" : this.#handles.list.length > 0 ? "Solve, then drag the handles" : "";
    this.#hint.textContent = text;
    this.#hint.hidden = text === "" || (!this.#notice.hidden && this.#handles.list.length === 0);
  }

  #choose(index: number): void {
    if (index === this.#chosen && this.#grips.chosen === index) return this.#paint();
    this.#chosen = index;
    this.#grips.chosen = index;
    this.#drawList();
    this.#paint();
  }

  #drawList(): void {
    const rows = this.#handles.list.map((handle, index) => {
      const name = h("input", { type: "text", value: handle.name, "aria-label": `Name of ${handle.name}`, disabled: this.#solved !== null });
      name.addEventListener("change", () => { if (!this.#handles.rename(index, name.value)) { toast("Every handle needs a name of its own.", true); name.value = handle.name; } });
      const detail = handle.kind === "point" ? `vertex ${handle.vertex}` : handle.kind === "bone" ? "bone" : `${handle.vertices.size} vertices`;
      const free = h("input", { type: "checkbox", checked: this.#free.has(index), disabled: !this.#solved });
      free.addEventListener("change", () => void this.#setFree(index, free.checked).catch(complain));
      return h("div", { class: "card handle", "data-handle": handle.name, style: "padding: var(--space-2)" },
        h("div", { class: "row" },
          h("button", { type: "button", class: "icon", "aria-pressed": String(index === this.#chosen), "aria-label": `Show the weights of ${handle.name}`, title: "Show its weights", onclick: () => this.#choose(index) }, "●"),
          h("div", { style: "flex: 1; min-width: 0" }, name),
          h("button", { type: "button", class: "icon quiet", "aria-label": `Remove ${handle.name}`, onclick: () => { if (this.#run === null) this.#handles.remove(index); } }, "✕")),
        h("div", { class: "row" }, h("span", { class: "soft" }, detail), h("span", { class: "spread" }), this.#solved ? h("label", { class: "check soft", title: "It goes where the other handles leave it" }, free, "free") : null));
    });
    this.#list.replaceChildren(...(rows.length > 0 ? rows : [h("p", { class: "soft" }, "None is placed yet.")]));
  }

  #drawBones(): void {
    const ends: number[] = [];
    if (!this.#solved) {
      for (const handle of this.#handles.list) if (handle.kind === "bone") ends.push(...handle.head, ...handle.tail);
      if (this.#head) {
        // A cross where the second end is waited for.
        const reach = 0.02 * (this.#rig ? new THREE.Box3().setFromArray(this.#rig.positions as unknown as number[]).getSize(new THREE.Vector3()).length() : 1);
        for (let axis = 0; axis < 3; axis++) {
          for (const sign of [-1, 1]) ends.push(...this.#head.map((x, other) => x + (other === axis ? sign * reach : 0)));
        }
      }
    }
    this.#bones.geometry.dispose();
    this.#bones.geometry = new THREE.BufferGeometry().setAttribute("position", new THREE.Float32BufferAttribute(ends, 3));
    this.#viewer?.redraw();
  }

  /** Weights of the chosen handle, or the vertices that are being painted. */
  #paint(): void {
    if (!this.#actor || !this.#rig) return;
    const handle = this.#handles.list[this.#chosen];
    if (this.#solved && this.#chosen >= 0) {
      const message = new ArrayBuffer(16);
      new Uint32Array(message).set([WEIGHTS, this.#next++, MAP, this.#chosen]);
      this.#context.server.send(message);
      this.#setLegend(`Weight of ${this.#solved.names[this.#chosen]}`);
      return;
    }
    const shown = this.#stroke.size > 0 ? this.#stroke : handle?.kind === "region" ? handle.vertices : null;
    if (shown) {
      const values = new Float32Array(this.#rig.vertices);
      shown.forEach((vertex) => { values[vertex] = 1; });
      this.#actor.paint(values);
    }
    this.#actor.heat = shown !== null;
    this.#setLegend(null);
    this.#viewer.redraw();
  }

  #setLegend(text: string | null): void {
    this.#legend.hidden = text === null;
    if (text !== null) this.#legend.replaceChildren(h("div", { class: "row" }, text), h("div", { class: "ramp", style: "background: var(--ramp)" }), h("div", { class: "ticks number" }, ...["0", "0.5", "1"].map((tick) => h("span", {}, tick))));
  }

  // Examples.

  async #takeExamples(files: File[]): Promise<void> {
    try {
      for (const file of files) this.#examples.push(await this.#context.server.upload(file));
      this.#drawExamples();
      this.#figures.replaceChildren();
      toast(`${files.length === 1 ? "The example is" : `${files.length} examples are`} used at the next Solve.`);
    } catch (error) {
      complain(error);
    }
  }

  #drawExamples(): void {
    const rows = this.#examples.map((name, index) => h("div", { class: "row", "data-example": name },
      h("span", { class: "soft", style: "overflow-wrap: anywhere; flex: 1" }, name),
      h("button", { type: "button", class: "icon quiet", "aria-label": `Leave out ${name}`, onclick: () => { this.#examples.splice(index, 1); this.#drawExamples(); } }, "✕")));
    this.#examplesList.replaceChildren(...(rows.length > 0 ? rows : [h("p", { class: "soft" }, "None: weights come from the mesh alone. Drop deformed meshes of the same topology to improve them.")]));
  }

  // Solving.

  async #start(): Promise<void> {
    if (!this.#rig || this.#run !== null) return;
    this.#setMode("turn");
    this.#solve.disabled = true;
    try {
      const most = Number(this.#most.value);
      this.#run = await this.#context.server.start({
        job: "weights", rig: this.#rigChoice.value, handles: this.#handles.file(), examples: this.#examples,
        kind: this.#kind.value, domain: this.#domain.value, max_influences: most > 0 ? most : null,
      });
      this.#follow(this.#context.runs.value);
    } catch (error) {
      this.#solve.disabled = false;
      throw error;
    }
  }

  #follow(runs: readonly Run[]): void {
    const run = runs.find(({ id }) => id === this.#run);
    this.#progress.hidden = this.#run === null;
    if (!run) return;
    this.#bar.style.width = `${run.total > 0 ? (100 * run.done) / run.total : 0}%`;
    this.#progressText.textContent = `${run.what}: ${run.done} of ${run.total} ${run.unit}`;
    if (run.state === "running") return;
    this.#run = null;
    this.#progress.hidden = true;
    this.#solve.disabled = this.#handles.list.length === 0;
    if (run.state === "failed") toast(run.error ?? "Weights could not be solved.", true);
    else if (run.state === "done") void this.#take(run.result as unknown as Solved).catch(complain);
  }

  async #take(solved: Solved): Promise<void> {
    const turn = this.#turn;
    const opened = await this.#context.server.command<Opened>("weights_open", { rig: this.#rigChoice.value, file: solved.arrays });
    if (turn !== this.#turn || opened.names.length !== this.#handles.list.length) return;
    this.#solved = { ...solved, ...opened };
    this.#free.clear();
    this.#places = new Float32Array(opened.places.flat());
    this.#grips.set(opened.names.map((name, index) => ({ name, through: this.#handles.list[index]!.kind !== "point" })));
    this.#grips.place(this.#places);
    this.#grips.visible = true;
    this.#export.disabled = this.#rest.disabled = false;
    solved.notes.forEach((note) => toast(note));
    const cell = (name: string, text: string) => h("div", {}, h("span", { class: "soft" }, name), h("b", {}, text));
    this.#figures.replaceChildren(cell("solved in", `${solved.seconds.toFixed(1)} s`), cell("handles per vertex", `≤ ${solved.influences}`),
      cell("weights near 0", `${(100 * solved.near_zero_share).toFixed(0)} %`), ...(solved.rmse_mm === null ? [] : [cell(`of ${solved.examples} examples`, `${solved.rmse_mm.toFixed(2)} mm off`)]));
    this.#stage.dataset["state"] = "solved";
    this.#drawList();
    this.#drawBones();
    this.#choose(Math.max(this.#chosen, 0));
    this.#tell();
  }

  async #save(): Promise<void> {
    if (!this.#solved) return;
    const name = this.#solved.file.split("/").pop() ?? "skinned.glb";
    download(name, await this.#context.server.export({ what: "file", file: this.#solved.file }), "model/gltf-binary");
  }

  // Dragging.

  async #setFree(index: number, on: boolean): Promise<void> {
    if (on) this.#free.add(index);
    else this.#free.delete(index);
    if (this.#free.size === this.#handles.list.length) {
      this.#free.delete(index);
      this.#drawList();
      return toast("One handle at least has to hold the mesh.", true);
    }
    this.#grips.pin(index, this.#free.has(index));
    await this.#context.server.command("weights_free", { free: [...this.#free] });
    this.#drag();
  }

  #toRest(): void {
    if (!this.#solved || !this.#rig || !this.#actor) return;
    this.#places = new Float32Array(this.#solved.places.flat());
    this.#drag();
  }

  /** Asks for the mesh as handles pull it; one question at a time, the newest places in the next. */
  #drag(): void {
    this.#grips.place(this.#places);
    this.#viewer.redraw();
    if (this.#asked) {
      this.#moved = true;
      return;
    }
    const message = new ArrayBuffer(12 + this.#places.length * 4);
    new Uint32Array(message, 0, 3).set([WEIGHTS, this.#next++, DRAG]);
    new Float32Array(message, 12).set(this.#places);
    this.#asked = this.#context.server.send(message);
    this.#moved = false;
  }

  #hear(message: ArrayBuffer): void {
    const [, , what = 0, vertices = 0] = new Uint32Array(message, 0, 4);
    const [ms = 0] = new Float32Array(message, 16, 1);
    if (what === DRAG) this.#asked = false;
    if (!this.#actor || !this.#solved || vertices !== this.#rig?.vertices) return;
    if (what === MAP) {
      this.#actor.paint(new Float32Array(message, 20, vertices));
      this.#actor.heat = true;
      this.#stage.dataset["painted"] = String(this.#chosen);
    } else {
      this.#actor.move(new Float32Array(message, 20, vertices * 3));
      this.#hint.textContent = `${ms.toFixed(2)} ms per update`;
      this.#stage.dataset["dragged"] = String(Number(this.#stage.dataset["dragged"] ?? 0) + 1);
      if (this.#moved) this.#drag();
    }
    this.#viewer.redraw();
  }
}
