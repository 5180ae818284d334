// The Pose tab: a character large on the stage, its controls, its clips, and its twin and its skinning beside the original.

import * as THREE from "three";
import type { Context, Tab, TabKind } from "../lib/context";
import { acceptDrops, complain, fileButton, fill, h, toast } from "../lib/dom";
import { BONES, ORIGINAL, SKINNING, TWIN } from "../lib/packet";
import { readClip, readRig, type Clip, type RigScene } from "../lib/rig";
import type { Project, TwinFacts } from "../lib/server";
import { BrowserTwin } from "../lib/twin";
import { Actor } from "../stage/actor";
import { HeatLegend } from "../stage/legend";
import { rampTexture } from "../stage/material";
import { VIEW_KEYS, Viewer, type Layout } from "../stage/viewer";
import { Hand } from "./hand";
import { History } from "./history";
import { clipTable, stillClip, type Key } from "./keys";
import { Poser, type Posed } from "./poser";
import { saveMenu } from "./save";
import { Sliders } from "./sliders";
import { NEW_TAKE, Timeline } from "./timeline";

/** What a visitor sees first: the character and the clip that she plays. */
const FIRST_RIG = "mira";
const FIRST_CLIP = "talk";

/** Seconds of a take that is made of keys. */
const TAKE_SECONDS = 4;

/** What an undo brings back. */
interface State {
  readonly controls: Float32Array;
  readonly clip: Clip | null;
  readonly keys: readonly Key[];
}

type Mode = "original" | "twin" | "skinning" | "beside" | "wipe";
type Which = "original" | "twin" | "skinning";
const MODES: readonly (readonly [Mode, string, string])[] = [
  ["original", "Original", "The rig itself, evaluated by the server"],
  ["twin", "Twin", "The twin, played in this browser"],
  ["skinning", "Skinning", "Linear blend skinning with the rig's own weights"],
  ["beside", "Side by side", "All that there is, beside each other"],
  ["wipe", "Overlay", "The original on the left, the other on the right of a line that you move"],
];
const TITLES: Readonly<Record<Which, string>> = { original: "Original", twin: "Twin", skinning: "Skinning" };

export const poseTab: TabKind = { id: "pose", title: "Pose", make: (panel, context) => new PoseTab(panel, context) };

class PoseTab implements Tab {
  readonly #context: Context;
  readonly #stage = h("div", { class: "stage" });
  readonly #viewer: Viewer;
  readonly #undo = h("button", { type: "button", class: "icon", "aria-label": "Undo", title: "Undo (Ctrl+Z)" }, "↶");
  readonly #redo = h("button", { type: "button", class: "icon", "aria-label": "Redo", title: "Redo (Ctrl+Shift+Z)" }, "↷");
  readonly #sliders = new Sliders(this.#undo, this.#redo);
  readonly #history = new History<State>();
  readonly #hand: Hand;
  readonly #timeline: Timeline;
  readonly #poser: Poser;
  readonly #legend = new HeatLegend();
  readonly #rigChoice = h("select", { "aria-label": "Character" });
  readonly #twinChoice = h("select", { "aria-label": "Twin" });
  readonly #against = h("select", { "aria-label": "Compare with" });
  readonly #heat = h("button", { type: "button", "aria-pressed": "false", title: "Colours by the distance from the original (H)" }, "Error");
  readonly #modes = new Map<Mode, HTMLButtonElement>();
  readonly #chips = new Map<Which, HTMLElement>();
  readonly #wipe = h("div", { class: "wipe", role: "slider", tabindex: 0, "aria-label": "Overlay line", "aria-valuemin": 0, "aria-valuemax": 100, hidden: true });
  readonly #notice = h("div", { class: "notice" });
  readonly #dropNotice = h("div", { class: "notice drop", hidden: true }, h("div", { class: "box" }, h("h2", {}, "Drop it here"), h("p", {}, "A clip (Live Link .csv, .bvh, .fbx, .glb), a rig (.glb, .fbx, .usd, .npz, .obj, .blend), a twin, or a saved pose")));
  readonly #ramp: THREE.IUniform<THREE.Texture> = { value: rampTexture([[60, 40, 120], [240, 230, 60]]) };
  readonly #times: Record<Which, number[]> = { original: [], twin: [], skinning: [] };
  #rig: RigScene | null = null;
  #rigName = "";
  #twinPath: string | null = null;
  #twinFacts: TwinFacts | null = null;
  #browserTwin: BrowserTwin | null = null;
  #actors = new Map<Which, Actor>();
  #mode: Mode = "original";
  #heatOn = false;
  #visible = false;
  #opening = 0;
  #then = performance.now();
  #chipsDrawn = 0;

  constructor(panel: HTMLElement, context: Context) {
    this.#context = context;
    this.#timeline = new Timeline(fileButton("Open…", ".csv,.bvh,.glb,.gltf,.fbx,.usda,.usdc,.usd,.npz,.obj,.blend,.twin,.json", (files) => void this.#take(files)));
    this.#viewer = new Viewer(this.#stage, "The character; drag to turn, shift-drag to move, wheel to zoom");
    this.#hand = new Hand(this.#viewer, context.server, {
      controls: () => this.#sliders.values.current,
      both: () => this.#sliders.both,
      hold: () => this.#timeline.pause(),
      pose: (controls) => this.#poseByHand(controls),
      done: () => this.#commit(),
      byRig: () => this.#shown()[0] === "original",
      facing: (vertex) => this.#facing(vertex),
      shown: () => this.#arrange(),
      teach: () => this.#teach(),
    });
    const tools = h("div", { class: "tools", role: "toolbar", "aria-label": "What is shown" },
      this.#rigChoice, this.#twinChoice, this.#modeButtons(), this.#against, this.#heat, this.#hand.toggle, h("span", { class: "spread" }),
      saveMenu({
        server: context.server,
        rig: () => this.#rig,
        controls: () => this.#sliders.values.current,
        clip: () => this.#timeline.choice.value,
        brought: () => this.#broughtClip(),
        canvas: () => this.#viewer.canvas,
      }));
    panel.append(h("div", { class: "work" }, tools, this.#stage, this.#timeline.element, this.#sliders.element));
    this.#stage.append(this.#hand.element, this.#wipe, this.#legend.element, this.#notice, this.#dropNotice);
    const keys = [["F", "frame"], ["1–7", "views"], ["Space", "play"], ["G", "drag points"], ["P", "pin"], ["K", "key"], ["H", "error"], ["R", "reset"]];
    this.#sliders.element.append(h("footer", { style: "padding: var(--space-2) var(--space-3); border-top: 1px solid var(--line)" },
      h("ul", { class: "keys", "aria-label": "Keys" }, ...keys.map(([key, what]) => h("li", {}, h("kbd", {}, key), ` ${what}`)))));

    this.#poser = new Poser(context.server);
    this.#poser.onposed = (posed) => this.#show(posed);
    this.#poser.onproblem = (problem) => toast(problem, true);
    this.#sliders.onmove = () => {
      this.#timeline.pause();
      this.#poser.pose(this.#sliders.values.current);
    };
    this.#sliders.oncommit = () => this.#commit();
    this.#history.onchange = () => {
      this.#undo.disabled = !this.#history.canUndo;
      this.#redo.disabled = !this.#history.canRedo;
    };
    this.#history.onchange();
    this.#undo.addEventListener("click", () => this.#step(-1));
    this.#redo.addEventListener("click", () => this.#step(1));
    this.#timeline.onseek = () => this.#sample();
    this.#timeline.onkey = () => this.#key();
    this.#timeline.onunkey = () => { this.#sample(); this.#commit(false); };
    this.#timeline.onchoose = (name) => void this.#play(name).catch(complain);
    this.#legend.onscale = () => this.#viewer.redraw();
    this.#heat.addEventListener("click", () => this.#setHeat(!this.#heatOn));
    this.#against.addEventListener("change", () => this.#arrange());
    this.#rigChoice.addEventListener("change", () => void this.open(this.#rigChoice.value, undefined));
    this.#twinChoice.addEventListener("change", () => void this.open(this.#rigName, this.#twinChoice.value || null));
    const drawn: number[] = [];
    this.#viewer.ondraw = (milliseconds) => {
      drawn.push(milliseconds);
      if (drawn.length > 120) drawn.shift();
      this.#stage.dataset["drawn"] = String(Number(this.#stage.dataset["drawn"] ?? 0) + 1);
    };
    // For those who measure: what a frame of a drag costs here.
    this.#stage.addEventListener("measure", (event) => Object.assign((event as CustomEvent<object>).detail, { drags: [...this.#hand.times], draws: [...drawn] }));
    this.#viewer.onlayout = (views) => this.#place(views);
    this.#wipeByHand();
    acceptDrops(panel, (files) => void this.#take(files), (over) => { this.#dropNotice.hidden = !over; });
    context.project.follow((project) => this.#listing(project));
    // A server that was started anew has forgotten the stage.
    let first = true;
    context.server.whenOpen(() => {
      if (!first || this.#rig) void this.#openOnServer().catch(complain);
      first = false;
    });
    context.stand.follow((stand) => { if (stand) void this.open(stand.rig, stand.twin); });
    if (!context.stand.value) void this.#firstVisit();
    requestAnimationFrame(() => this.#tick());
  }

  show(visible: boolean): void {
    this.#visible = visible;
    this.#viewer.visible = visible;
  }

  key(event: KeyboardEvent): boolean {
    const view = VIEW_KEYS[event.key];
    if (event.ctrlKey || event.metaKey) this.#step(event.key.toLowerCase() === "y" || event.shiftKey ? 1 : -1);
    else if (this.#hand.key(event)) return true;
    else if (event.key === "k" || event.key === "K") this.#key();
    else if (view) this.#viewer.look(view);
    else if (event.key === "f" || event.key === "F") this.#viewer.frame();
    else if (event.key === " ") this.#timeline.toggle();
    else if (event.key === "h" || event.key === "H") this.#setHeat(!this.#heatOn);
    else if (event.key === "r" || event.key === "R") this.#sliders.reset();
    else if (event.key === "," || event.key === ".") this.#timeline.step(event.key === "," ? -1 : 1);
    else return false;
    return true;
  }

  async #firstVisit(): Promise<void> {
    // What moves her is asked for together with herself.
    const clip = this.#context.server.clip(FIRST_RIG, FIRST_CLIP);
    clip.catch(() => {});
    await this.open(FIRST_RIG, undefined);
    const moves = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (this.#rigName !== FIRST_RIG || this.#timeline.clip) return;
    await this.#play(FIRST_CLIP, moves, clip).catch(complain);
  }

  #modeButtons(): HTMLElement {
    const group = h("div", { class: "segmented", role: "radiogroup", "aria-label": "View" });
    for (const [mode, text, title] of MODES) {
      const button = h("button", { type: "button", role: "radio", "aria-checked": "false", title }, text);
      button.addEventListener("click", () => this.#setMode(mode));
      this.#modes.set(mode, button);
      group.append(button);
    }
    return group;
  }

  #listing(project: Project | null): void {
    if (!project) return;
    this.#ramp.value = rampTexture(project.ramp);
    this.#legend.colours(project.ramp);
    this.#actors.forEach((actor) => { actor.look.ramp.value = this.#ramp.value; });
    const names = project.rigs.map(({ name }) => [name, name] as const);
    if (this.#rigName && !names.some(([name]) => name === this.#rigName)) names.push([this.#rigName, this.#rigName]);
    fill(this.#rigChoice, names, this.#rigName || FIRST_RIG);
    this.#listTwins();
  }

  /** Twins of the mesh that is shown. */
  #listTwins(): void {
    const twins = this.#fittingTwins();
    const options = twins.map(({ path, kind }) => [path, `${path.split("/").pop()} (${kind})`] as const);
    fill(this.#twinChoice, [["", twins.length > 0 ? "No twin" : "No twin yet"], ...options], this.#twinPath ?? "");
    this.#twinChoice.disabled = twins.length === 0;
  }

  #fittingTwins() {
    const twins = this.#context.project.value?.twins ?? [];
    return twins.filter((twin) => this.#rig && twin.topology === this.#rig.topology);
  }

  /** Puts a rig on the stage; without a word about its twin, the newest that fits. */
  async open(name: string, twin: string | null | undefined): Promise<void> {
    const turn = ++this.#opening;
    const other = name !== this.#rigName;
    try {
      if (other) {
        this.#say(h("div", { class: "spinner" }), h("p", {}, `Opening ${name}…`));
        const rig = readRig(await this.#context.server.rig(name));
        if (turn !== this.#opening) return;
        this.#rig = rig;
        this.#rigName = name;
        this.#sliders.open(rig);
        this.#timeline.open(rig.clips);
        rig.notes.forEach((note) => toast(note));
      }
      const rig = this.#rig!;
      this.#twinPath = twin === undefined ? (this.#fittingTwins()[0]?.path ?? null) : twin;
      const file = this.#twinPath ? this.#context.server.twin(this.#twinPath) : null;
      file?.catch(() => {});
      await this.#openOnServer();
      if (turn !== this.#opening) return;
      this.#browserTwin?.free();
      this.#browserTwin = null;
      if (file) {
        try {
          this.#browserTwin = await BrowserTwin.load(await file, rig);
        } catch (error) {
          toast(`The twin is played on the server: ${error instanceof Error ? error.message : String(error)}`);
        }
        if (turn !== this.#opening) return;
      }
      this.#poser.reset(rig.vertices);
      this.#poser.twin = this.#browserTwin;
      this.#build(other);
      if (other) this.#history.restart(this.#state());
      void this.#hand.open(rig, name, this.#browserTwin);
      this.#say();
      this.#listing(this.#context.project.value);
      this.#pose();
    } catch (error) {
      if (turn !== this.#opening) return;
      const message = error instanceof Error ? error.message : String(error);
      fill(this.#rigChoice, [...this.#rigChoice.options].map((option) => [option.value, option.text] as const), this.#rigName);
      this.#twinChoice.value = this.#twinPath ?? "";
      if (this.#rig) {
        this.#say();
        toast(message, true);
      } else this.#say(h("h2", {}, `${name} could not be opened`), h("p", {}, message), h("button", { type: "button", onclick: () => void this.open(name, twin) }, "Try again"));
    }
  }

  async #openOnServer(): Promise<void> {
    await this.#context.server.opened();
    const answer = await this.#context.server.command<{ twin: TwinFacts | null }>("open", { rig: this.#rigName, twin: this.#twinPath });
    this.#twinFacts = answer.twin;
    this.#pose();
  }

  #build(newRig: boolean): void {
    const rig = this.#rig!;
    if (newRig) {
      this.#actors.forEach((actor) => actor.dispose());
      this.#actors.clear();
      this.#chips.forEach((chip) => chip.remove());
      this.#chips.clear();
      for (const which of ["original", "twin", "skinning"] as const) {
        this.#actors.set(which, new Actor(rig, this.#ramp, this.#legend.scale));
        const chip = h("div", { class: "chip", hidden: true });
        this.#chips.set(which, chip);
        this.#stage.append(chip);
      }
      this.#viewer.setHome(rig.positions);
    }
    this.#legend.restart();
    const able: Record<Mode, boolean> = {
      original: true, twin: !!this.#twinPath, skinning: rig.skinning,
      beside: !!this.#twinPath || rig.skinning, wipe: !!this.#twinPath || rig.skinning,
    };
    for (const [mode, button] of this.#modes) button.disabled = !able[mode];
    const others = this.#others();
    fill(this.#against, others.map((which) => [which, `with ${TITLES[which].toLowerCase()}`] as const));
    if (!able[this.#mode]) this.#mode = "original";
    this.#setMode(this.#mode);
  }

  #others(): ("twin" | "skinning")[] {
    return (["twin", "skinning"] as const).filter((which) => (which === "twin" ? !!this.#twinPath : this.#rig?.skinning));
  }

  #setMode(mode: Mode): void {
    this.#mode = mode;
    for (const [other, button] of this.#modes) {
      button.setAttribute("aria-checked", String(other === mode));
      button.tabIndex = other === mode ? 0 : -1;
    }
    this.#arrange();
  }

  #setHeat(on: boolean): void {
    if (this.#others().length === 0) return;
    this.#heatOn = on;
    this.#heat.setAttribute("aria-pressed", String(on));
    // The original alone has no error: show what it is compared with.
    if (on && this.#mode === "original") this.#setMode(this.#others()[0]!);
    else this.#arrange();
  }

  #shown(): Which[] {
    const other = (this.#against.value || this.#others()[0]) as Which | undefined;
    switch (this.#mode) {
      case "beside": return ["original", ...this.#others()];
      case "wipe": return other ? ["original", other] : ["original"];
      default: return [this.#mode];
    }
  }

  /** Who is on the stage, and where. */
  #arrange(): void {
    if (this.#actors.size === 0) return;
    const shown = this.#shown();
    const layout: Layout = this.#mode === "beside" ? "beside" : this.#mode === "wipe" ? "wipe" : "single";
    this.#viewer.show(shown.map((which) => this.#actors.get(which)!), layout);
    this.#chips.forEach((chip, which) => { chip.hidden = !shown.includes(which); });
    this.#wipe.hidden = layout !== "wipe";
    this.#against.hidden = layout !== "wipe" || this.#others().length < 2;
    this.#heat.disabled = this.#others().length === 0;
    this.#heat.title = this.#heat.disabled ? "Nothing to compare with: learn a twin first" : "Colours by the distance from the original (H)";
    const heat = this.#heatOn && shown.some((which) => which !== "original");
    this.#legend.element.hidden = !heat;
    this.#actors.forEach((actor, which) => { actor.heat = heat && which !== "original"; });
    const bits = { original: ORIGINAL, twin: TWIN, skinning: SKINNING };
    const own = (heat ? ORIGINAL : 0) | (this.#hand.needsBones ? BONES : 0);
    this.#poser.views = shown.reduce((views, which) => views | bits[which], own);
    this.#pose();
    this.#viewer.redraw();
  }

  #place(views: { x: number; width: number }[]): void {
    const shown = this.#shown();
    const width = this.#stage.clientWidth;
    shown.forEach((which, place) => {
      const chip = this.#chips.get(which);
      if (!chip) return;
      const right = this.#mode === "wipe" && place === 1;
      chip.style.cssText = right ? "right: 8px; top: 8px" : `left: ${(views[place]?.x ?? 0) + 8}px; top: 8px; max-width: ${(views[place]?.width ?? width) / (this.#mode === "wipe" ? 2 : 1) - 16}px`;
    });
    this.#wipe.style.left = `${width * this.#viewer.wipe}px`;
    this.#wipe.setAttribute("aria-valuenow", String(Math.round(this.#viewer.wipe * 100)));
  }

  #wipeByHand(): void {
    const move = (event: PointerEvent) => {
      const box = this.#stage.getBoundingClientRect();
      this.#viewer.wipe = (event.clientX - box.left) / box.width;
    };
    this.#wipe.addEventListener("pointerdown", (event) => {
      this.#wipe.setPointerCapture(event.pointerId);
      this.#wipe.addEventListener("pointermove", move);
    });
    this.#wipe.addEventListener("pointerup", () => this.#wipe.removeEventListener("pointermove", move));
    this.#wipe.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
      if (step) this.#viewer.wipe += step;
    });
  }

  #say(...content: Node[]): void {
    this.#notice.hidden = content.length === 0;
    this.#notice.replaceChildren(h("div", { class: "box", role: "status" }, ...content));
  }

  /** The pose of the sliders. */
  #pose(): void {
    if (!this.#rig || this.#actors.size === 0) return;
    this.#poser.pose(this.#sliders.values.current);
  }

  /** The pose of the timeline's moment. */
  #sample(): void {
    if (!this.#rig || !this.#timeline.clip) return;
    const values = this.#sliders.values.current;
    this.#timeline.sample(values);
    this.#keepInRange(values);
    this.#sliders.refresh();
    this.#pose();
    // What an undo goes back to is what is seen before a gesture.
    this.#history.amend(this.#state());
  }

  #keepInRange(values: Float32Array): void {
    if (this.#timeline.keys.list.length === 0) return;
    this.#rig!.controls.forEach(({ low, high }, place) => { values[place] = Math.min(Math.max(values[place]!, low), high); });
  }

  #tick(): void {
    const now = performance.now();
    const passed = Math.min((now - this.#then) / 1000, 0.25);
    this.#then = now;
    if (this.#visible && this.#timeline.advance(passed)) this.#sample();
    requestAnimationFrame(() => this.#tick());
  }

  #state(): State {
    return { controls: this.#sliders.values.current.slice(), clip: this.#timeline.clip, keys: this.#timeline.keys.list };
  }

  /** A gesture ended: it can be undone, and is kept as a key where that is asked for. */
  #commit(auto = this.#timeline.auto): void {
    if (auto) this.#key();
    else this.#history.commit(this.#state());
  }

  #step(by: -1 | 1): void {
    const state = this.#history.step(by);
    if (!state) return;
    this.#timeline.pause();
    // Keys belong to a clip: where another plays by now, its own stay.
    if (state.clip === this.#timeline.clip) {
      this.#timeline.keys.list = state.keys;
      this.#timeline.redraw();
    }
    this.#sliders.show(state.controls);
    this.#pose();
  }

  /** Keeps the pose at this moment of the clip; of a take of keys where none plays. */
  #key(): void {
    const rig = this.#rig;
    if (!rig || rig.controls.length === 0) return;
    if (!this.#timeline.clip) this.#newTake();
    this.#timeline.pause();
    const offsets = new Float32Array(rig.controls.length);
    this.#timeline.below(offsets);
    const values = this.#sliders.values.current;
    offsets.forEach((below, place) => { offsets[place] = values[place]! - below; });
    this.#timeline.keys.set(this.#timeline.seconds, offsets);
    this.#timeline.redraw();
    this.#history.commit(this.#state());
  }

  #newTake(): void {
    this.#timeline.load(stillClip(this.#rig!.defaults, TAKE_SECONDS));
    this.#timeline.choice.value = NEW_TAKE;
  }

  /** The clip by a name that the server knows; with keys it is brought there first. */
  async #broughtClip(): Promise<string> {
    const { clip, keys, choice } = this.#timeline;
    if (!clip || (keys.list.length === 0 && choice.value !== NEW_TAKE)) return choice.value;
    const table = clipTable(this.#rig!.controls.map(({ name }) => name), clip, (seconds, out) => {
      this.#timeline.sample(out, seconds);
      this.#keepInRange(out);
    });
    const stem = (choice.value.split("/").pop() ?? "").replace(/\.\w+$/, "").replace(/^\+/, "") || "take";
    return this.#context.server.upload(new File([table], `${stem}-keyed.csv`, { type: "text/csv" }));
  }

  #poseByHand(controls: Float32Array): void {
    this.#sliders.show(controls);
    this.#pose();
  }

  /** Whether a vertex of the character that is seen faces the one who looks. */
  #facing(vertex: number): boolean {
    const actor = this.#actors.get(this.#shown()[0]!);
    if (!actor) return true;
    const at = new THREE.Vector3().fromArray(actor.vertices, vertex * 3);
    return actor.normal(vertex).dot(this.#viewer.lookAt(at)) < 0.15;
  }

  async #teach(): Promise<void> {
    await this.#context.server.start({ job: "follow", rig: this.#rigName, twin: this.#twinPath, poses: 1500, minutes: 3 });
    toast("A twin is being taught. It comes to this tab when it is done; the Learn tab shows how far it is.");
  }

  #show(posed: Posed): void {
    for (const which of ["original", "twin", "skinning"] as const) {
      const vertices = posed[which];
      if (!vertices || vertices.length !== this.#rig!.vertices * 3) continue;
      this.#actors.get(which)?.move(vertices);
      const times = this.#times[which];
      times.push(posed[`${which}Ms`]);
      if (times.length > 30) times.shift();
    }
    const now = performance.now();
    const errors = new Map<Which, { mean: number; max: number }>();
    if (posed.original) {
      for (const which of ["twin", "skinning"] as const) {
        const actor = posed[which] && this.#actors.get(which);
        if (actor) errors.set(which, actor.compare(posed.original));
      }
      if (this.#heatOn) this.#legend.seen(Math.max(0, ...[...errors.values()].map(({ max }) => max)));
    }
    const first = this.#actors.get(this.#shown()[0]!);
    if (first) this.#hand.follow(first.vertices, posed.bones);
    this.#viewer.redraw();
    this.#stage.dataset["posed"] = String(Number(this.#stage.dataset["posed"] ?? 0) + 1);
    // Numbers that change sixty times per second cannot be read.
    if (now - this.#chipsDrawn < 200 && this.#timeline.playing) return;
    this.#chipsDrawn = now;
    for (const [which, chip] of this.#chips) {
      const times = [...this.#times[which]].sort((a, b) => a - b);
      const ms = times[times.length >> 1];
      const error = errors.get(which);
      const where = which === "twin" ? (this.#browserTwin ? " in the browser" : " on the server") : "";
      const kind = which === "twin" && this.#twinFacts ? ` (${this.#twinFacts.kind})` : "";
      chip.replaceChildren(h("b", {}, TITLES[which]), kind, ms === undefined ? "" : ` · ${ms.toFixed(2)} ms${where}`,
        error ? ` · error ${error.mean.toFixed(2)} mm, at most ${error.max.toFixed(1)} mm` : "");
    }
  }

  #fetchClip(name: string): Promise<ArrayBuffer> | null {
    return name && name !== NEW_TAKE ? this.#context.server.clip(this.#rigName, name) : null;
  }

  /** Plays one of the rig's clips, or a file of the project. */
  async #play(name: string, start = true, fetched: Promise<ArrayBuffer> | null = this.#fetchClip(name)): Promise<void> {
    if (!name) {
      this.#timeline.load(null);
      return;
    }
    if (name === NEW_TAKE) {
      this.#newTake();
      this.#sample();
      return;
    }
    const clip = readClip((await fetched)!);
    clip.notes.forEach((note) => toast(note));
    this.#timeline.load(clip);
    this.#timeline.choice.value = name;
    if (start) this.#timeline.play();
    else this.#timeline.seek(clip.duration * 0.4);
  }

  /** Files that were dropped or chosen. */
  async #take(files: File[]): Promise<void> {
    for (const file of files) {
      try {
        const ending = file.name.split(".").pop()?.toLowerCase() ?? "";
        if (ending === "json") await this.#takePose(file);
        else if (["csv", "bvh"].includes(ending)) await this.#takeClip(file, await this.#upload(file));
        else if (["glb", "gltf", "fbx", "usda", "usdc", "usd"].includes(ending)) await this.#takeModel(file);
        else if (ending === "twin") await this.#takeTwin(file);
        else if (["npz", "blend", "obj"].includes(ending)) await this.open(await this.#upload(file), undefined);
        else throw new Error(`${file.name}: files of this kind cannot be shown`);
      } catch (error) {
        complain(error);
      }
    }
  }

  async #upload(file: File): Promise<string> {
    const path = await this.#context.server.upload(file);
    await this.#context.refresh();
    return path;
  }

  async #takeClip(file: File, path: string): Promise<void> {
    await this.#play(path);
    this.#timeline.addFile(path, file.name);
  }

  /** A model is a clip where it moves what the character has, and another character otherwise. */
  async #takeModel(file: File): Promise<void> {
    const path = await this.#upload(file);
    try {
      await this.#takeClip(file, path);
      toast(`${file.name} plays on ${this.#rigName}. Choose it in the list of characters to see it itself.`);
    } catch {
      await this.open(path, undefined);
    }
  }

  async #takeTwin(file: File): Promise<void> {
    const path = await this.#upload(file);
    await this.open(this.#rigName, path);
    this.#setMode("beside");
  }

  async #takePose(file: File): Promise<void> {
    const saved = JSON.parse(await file.text()) as { rig?: unknown; controls?: unknown };
    if (typeof saved.controls !== "object" || saved.controls === null) throw new Error(`${file.name} holds no pose`);
    if (typeof saved.rig === "string" && saved.rig !== this.#rigName) await this.open(saved.rig, undefined);
    const values = this.#rig!.defaults.slice();
    const named = saved.controls as Record<string, unknown>;
    this.#rig!.controls.forEach(({ name, low, high }, place) => {
      const value = named[name];
      if (typeof value === "number" && Number.isFinite(value)) values[place] = Math.min(Math.max(value, low), high);
    });
    this.#timeline.load(null);
    this.#timeline.choice.value = "";
    this.#sliders.show(values);
    this.#poser.pose(values);
    this.#commit();
  }
}
