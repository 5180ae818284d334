// The Invert tab: scans or an animation in, blendshape weights out; α moves, and everything is solved again.

import * as THREE from "three";
import type { Context, Tab, TabKind } from "../lib/context";
import { acceptDrops, complain, download, fileButton, fill, fillRigs, h, toast } from "../lib/dom";
import { FRAME, frameMessage, readFrame, type FrameAnswer } from "../lib/packet";
import { readRig, type RigScene } from "../lib/rig";
import { chart } from "../learn/chart";
import { Actor } from "../stage/actor";
import { HeatLegend } from "../stage/legend";
import { rampTexture } from "../stage/material";
import { VIEW_KEYS, Viewer } from "../stage/viewer";

interface Facts {
  readonly frames: number;
  readonly rate: number | null;
  readonly shapes: readonly string[];
  readonly notes: readonly string[];
}

interface Solved {
  readonly weights: readonly (readonly number[])[];
  readonly rmse_mm: number;
  readonly max_mm: number;
  readonly active: number;
  readonly frame_rmse_mm: readonly number[];
  readonly ms_per_frame: number;
}

/** α as a share of the shapes' mean energy: the slider is its logarithm. The usual value is the command's. */
const [ALPHA_LOW, ALPHA_USUAL, ALPHA_HIGH] = [-7, -5, 0];
const BARS = 24;
const CURVES = 5;

export const invertTab: TabKind = { id: "invert", title: "Invert", make: (panel, context) => new InvertTab(panel, context) };

class InvertTab implements Tab {
  readonly #context: Context;
  readonly #stage = h("div", { class: "stage" });
  readonly #viewer: Viewer;
  readonly #legend = new HeatLegend();
  readonly #ramp: THREE.IUniform<THREE.Texture> = { value: rampTexture([[60, 40, 120], [240, 230, 60]]) };
  readonly #rigChoice = h("select", { "aria-label": "Rig" });
  readonly #clipChoice = h("select", { "aria-label": "Clip of the rig" });
  readonly #alpha = h("input", { type: "range", id: "alpha", min: ALPHA_LOW, max: ALPHA_HIGH, step: 0.05, value: ALPHA_USUAL });
  readonly #alphaText = h("span", { class: "number" });
  readonly #smooth = h("input", { type: "number", id: "smooth", min: 0, step: "any", value: 0 });
  readonly #heat = h("button", { type: "button", "aria-pressed": "true", title: "Colours by the distance from the target (H)" }, "Error");
  readonly #export = h("button", { type: "button", disabled: true }, "Export CSV");
  readonly #keep = h("button", { type: "button", disabled: true, title: "Solves the files again as a job, which writes their weights into the project" }, "Keep in the project");
  readonly #scrub = h("input", { type: "range", min: 0, max: 0, step: 1, value: 0, disabled: true, "aria-label": "Frame" });
  readonly #frameText = h("span", { class: "number" }, "–");
  readonly #play = h("button", { type: "button", class: "icon primary", "aria-label": "Play", disabled: true }, "▶");
  readonly #figures = h("div", { class: "figures", role: "status" });
  readonly #bars = h("div", { class: "bars" });
  readonly #curves = h("div", {});
  readonly #notice = h("div", { class: "notice" });
  readonly #chips = ["Target", "From weights"].map((text) => h("div", { class: "chip", hidden: true }, h("b", {}, text)));
  #rig: RigScene | null = null;
  #actors: [Actor, Actor] | null = null;
  #facts: Facts | null = null;
  /** Files of the project that the take was read from; none for a clip. */
  #targets: readonly string[] = [];
  #solved: Solved | null = null;
  #weights: readonly number[] = [];
  #heatOn = true;
  #playing = false;
  #next = 1;
  /** What the take was opened from. */
  #source: { targets: string[] } | { clip: string } | null = null;
  /** α moved since a frame was asked for last. */
  #moved = false;
  #asking = false;
  #solving: ReturnType<typeof setTimeout> | undefined;
  #turn = 0;
  #then = 0;
  #seconds = 0;

  constructor(panel: HTMLElement, context: Context) {
    this.#context = context;
    const files = fileButton("Open scans…", ".obj,.npz,.glb,.gltf", (taken) => void this.#take(taken), true);
    const tools = h("div", { class: "tools", role: "toolbar", "aria-label": "What is inverted" },
      this.#rigChoice, files, this.#clipChoice, this.#heat, h("span", { class: "spread" }), this.#keep, this.#export);
    const side = h("aside", { class: "side", "aria-label": "Weights" },
      h("header", {},
        h("h2", {}, "Weights"),
        h("label", { class: "field", for: "alpha" }, h("span", {}, "α: fewer weights to the right ", this.#alphaText), this.#alpha),
        h("label", { class: "field", for: "smooth" }, h("span", {}, "Smoothing in time, cm²"), this.#smooth),
        this.#figures),
      h("div", { class: "scroll", tabindex: 0, "aria-label": "Weights of this frame" }, this.#curves, h("h3", {}, "This frame"), this.#bars));
    const time = h("section", { class: "time", "aria-label": "Frames" }, h("div", { class: "transport" }, this.#play, h("span", {}, "Frame"), h("div", { class: "scrub row" }, this.#scrub), this.#frameText));
    panel.append(h("div", { class: "work" }, tools, this.#stage, time, side));
    this.#viewer = new Viewer(this.#stage, "Target and fit; drag to turn, shift-drag to move, wheel to zoom");
    this.#viewer.onlayout = (views) => this.#chips.forEach((chip, place) => { chip.style.cssText = `top: 8px; left: ${(views[place]?.x ?? 0) + 8}px`; });
    this.#stage.append(...this.#chips, this.#legend.element, this.#notice);
    this.#legend.onscale = () => this.#viewer.redraw();
    acceptDrops(panel, (taken) => void this.#take(taken), (over) => this.#stage.classList.toggle("over", over));

    context.server.onbinary(FRAME, (message) => this.#draw(readFrame(message)));
    context.project.follow((project) => {
      if (!project) return;
      this.#ramp.value = rampTexture(project.ramp);
      this.#legend.colours(project.ramp);
      this.#actors?.forEach((actor) => { actor.look.ramp.value = this.#ramp.value; });
      fillRigs(this.#rigChoice, project);
    });
    this.#rigChoice.addEventListener("change", () => void this.#openRig(this.#rigChoice.value).catch(complain));
    this.#clipChoice.addEventListener("change", () => { if (this.#clipChoice.value) void this.#openTake({ clip: this.#clipChoice.value }); });
    this.#alpha.addEventListener("input", () => this.#resolve());
    this.#smooth.addEventListener("change", () => this.#resolve());
    this.#scrub.addEventListener("input", () => { this.#pause(); this.#goTo(Number(this.#scrub.value)); });
    this.#play.addEventListener("click", () => (this.#playing ? this.#pause() : this.#run()));
    this.#heat.addEventListener("click", () => this.#setHeat(!this.#heatOn));
    this.#export.addEventListener("click", () => this.#save());
    this.#keep.addEventListener("click", () => void context.server.start({
      job: "invert", rig: this.#rig!.name, targets: this.#targets, alpha: this.#alphaValue, smooth: this.#smoothing,
    }).then(() => toast("The weights are written into the project: see the Learn tab.")).catch(complain));
    // A take ends with its connection.
    context.server.whenOpen(() => { if (this.#facts && this.#source && this.#rig) void context.server.command("invert_open", { rig: this.#rig.name, ...this.#source }).catch(complain); });
    this.#showAlpha();
    this.#empty();
    void this.#openRig("mira").catch(complain);
  }

  show(visible: boolean): void {
    this.#viewer.visible = visible;
    if (!visible) this.#pause();
  }

  key(event: KeyboardEvent): boolean {
    if (event.key === "f" || event.key === "F") this.#viewer.frame();
    else if (event.key === "h" || event.key === "H") this.#setHeat(!this.#heatOn);
    else if (event.key === " ") this.#play.click();
    else if (VIEW_KEYS[event.key]) this.#viewer.look(VIEW_KEYS[event.key]!);
    else return false;
    return true;
  }

  #say(...content: Node[]): void {
    this.#notice.hidden = content.length === 0;
    this.#notice.replaceChildren(h("div", { class: "box" }, ...content));
  }

  #empty(): void {
    this.#say(h("h2", {}, "Weights from meshes"),
      h("p", {}, "Drop scans (.obj), frames (.npz) or an animation (.glb) of the rig's mesh here. You get the blendshape weights that make the rig look like them."),
      h("button", { type: "button", class: "primary", "data-action": "try", onclick: () => void this.#tryOut() }, "Try it with a clip of the rig"));
  }

  async #tryOut(): Promise<void> {
    const clip = this.#rig?.clips.find(({ name }) => name === "smile") ?? this.#rig?.clips[0];
    if (!clip) return toast("This rig has no clip: open scans instead.", true);
    this.#clipChoice.value = clip.name;
    await this.#openTake({ clip: clip.name });
  }

  async #openRig(name: string): Promise<void> {
    const turn = ++this.#turn;
    const rig = readRig(await this.#context.server.rig(name));
    if (turn !== this.#turn) return;
    this.#rig = rig;
    this.#facts = this.#solved = null;
    this.#export.disabled = this.#keep.disabled = this.#scrub.disabled = this.#play.disabled = true;
    fill(this.#clipChoice, [["", "A clip of the rig…"], ...rig.clips.map((clip) => [clip.name, clip.name] as const)], "");
    this.#actors?.forEach((actor) => actor.dispose());
    this.#actors = [new Actor(rig, this.#ramp, this.#legend.scale), new Actor(rig, this.#ramp, this.#legend.scale)];
    this.#viewer.setHome(rig.positions);
    this.#viewer.look("front");
    this.#viewer.show([this.#actors[1]], "single");
    this.#chips.forEach((chip) => { chip.hidden = true; });
    this.#bars.replaceChildren(h("p", { class: "soft" }, "Nothing is solved yet."));
    this.#curves.replaceChildren();
    this.#figures.replaceChildren();
    this.#setHeat(this.#heatOn);
    if (rig.shapes === 0) this.#say(h("h2", {}, `${name} has no blendshapes`), h("p", {}, "Choose a rig whose shapes are blended by weights, such as mira."));
    else this.#empty();
  }

  async #take(files: File[]): Promise<void> {
    try {
      const targets: string[] = [];
      for (const file of [...files].sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))) targets.push(await this.#context.server.upload(file));
      this.#clipChoice.value = "";
      await this.#openTake({ targets });
    } catch (error) {
      complain(error);
    }
  }

  async #openTake(what: { targets: string[] } | { clip: string }): Promise<void> {
    if (!this.#rig || !this.#actors) return;
    this.#say(h("div", { class: "spinner" }), h("p", {}, "Reading the take…"));
    try {
      const facts = await this.#context.server.command<Facts>("invert_open", { rig: this.#rig.name, ...what });
      facts.notes.forEach((note) => toast(note));
      this.#source = what;
      this.#targets = "targets" in what ? what.targets : [];
      this.#keep.disabled = this.#targets.length === 0;
      this.#facts = facts;
      this.#solved = null;
      this.#legend.restart();
      this.#scrub.max = String(facts.frames - 1);
      this.#scrub.disabled = false;
      this.#play.disabled = facts.frames < 2;
      this.#say();
      this.#viewer.show(this.#actors, "beside");
      this.#chips.forEach((chip) => { chip.hidden = false; });
      this.#viewer.look("front");
      await this.#solveAll();
      this.#goTo(0);
    } catch (error) {
      this.#facts = null;
      this.#empty();
      complain(error);
    }
  }

  get #alphaValue(): number {
    return 10 ** Number(this.#alpha.value);
  }

  get #smoothing(): number {
    return Math.max(Number(this.#smooth.value) || 0, 0);
  }

  get #frame(): number {
    return Number(this.#scrub.value);
  }

  #showAlpha(): void {
    const value = this.#alphaValue.toExponential(1);
    this.#alphaText.textContent = value;
    this.#alpha.setAttribute("aria-valuetext", value);
  }

  /** α moved: the frame in sight at once, the whole take when the hand rests. */
  #resolve(): void {
    this.#showAlpha();
    if (!this.#facts) return;
    this.#moved = true;
    void this.#solveFrame().catch(complain);
    clearTimeout(this.#solving);
    this.#solving = setTimeout(() => void this.#solveAll().catch(complain), 350);
  }

  /** One frame is on its way at most: a slow rig must not lag behind the hand. */
  async #solveFrame(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    try {
      while (this.#moved && this.#facts) {
        this.#moved = false;
        const [facts, frame] = [this.#facts, this.#frame];
        const { weights } = await this.#context.server.command<{ weights: number[] }>("invert_frame", { frame, alpha: this.#alphaValue });
        if (this.#facts === facts && this.#frame === frame) this.#use(weights);
      }
    } finally {
      this.#asking = false;
    }
  }

  async #solveAll(): Promise<void> {
    const solved = await this.#context.server.command<Solved | null>("invert_take", { alpha: this.#alphaValue, smooth: this.#smoothing });
    if (!solved || !this.#facts) return;
    this.#solved = solved;
    this.#export.disabled = false;
    const cell = (name: string, text: string) => h("div", {}, h("span", { class: "soft" }, name), h("b", {}, text));
    this.#figures.replaceChildren(cell("error", `${solved.rmse_mm.toFixed(3)} mm`), cell("worst vertex", `${solved.max_mm.toFixed(2)} mm`),
      cell("weights in use", solved.active.toFixed(1)), cell("per frame", `${solved.ms_per_frame.toFixed(1)} ms`));
    this.#goTo(this.#frame);
  }

  #goTo(frame: number): void {
    if (!this.#facts) return;
    this.#scrub.value = String(frame);
    this.#frameText.textContent = `${frame + 1} / ${this.#facts.frames}`;
    const weights = this.#solved?.weights[frame];
    if (weights) this.#use(weights);
  }

  #use(weights: readonly number[]): void {
    this.#weights = weights;
    this.#context.server.send(frameMessage(this.#next++, this.#frame, weights));
    this.#drawBars();
    if (!this.#playing) this.#drawCurves();
  }

  #draw(answer: FrameAnswer): void {
    if (!this.#actors || answer.fit.length !== this.#rig!.vertices * 3) return;
    const [target, fit] = this.#actors;
    target.move(answer.target);
    fit.move(answer.fit);
    this.#legend.seen(fit.compare(answer.target).max);
    this.#stage.dataset["drawn"] = String(Number(this.#stage.dataset["drawn"] ?? 0) + 1);
    this.#viewer.redraw();
  }

  #setHeat(on: boolean): void {
    this.#heatOn = on;
    this.#heat.setAttribute("aria-pressed", String(on));
    this.#legend.element.hidden = !on || !this.#facts;
    if (this.#actors) this.#actors[1].heat = on && !!this.#facts;
    this.#viewer.redraw();
  }

  #drawBars(): void {
    this.#setHeat(this.#heatOn);
    const names = this.#facts!.shapes;
    const order = this.#weights.map((weight, shape) => [weight, shape] as const).filter(([weight]) => weight > 1e-4).sort((a, b) => b[0] - a[0]);
    const rows = order.slice(0, BARS).map(([weight, shape]) => h("div", { class: "weight", "data-shape": names[shape]! },
      h("span", { title: names[shape]! }, names[shape]!), h("div", { class: "track" }, h("i", { style: `width: ${Math.min(weight, 1) * 100}%` })), h("span", { class: "number" }, weight.toFixed(3))));
    const more = order.length - BARS;
    this.#bars.replaceChildren(...rows, ...(more > 0 ? [h("p", { class: "soft" }, `and ${more} more`)] : []), ...(order.length === 0 ? [h("p", { class: "soft" }, "All weights are zero: this is the face at rest.")] : []));
  }

  /** The shapes that move most, over the take. */
  #drawCurves(): void {
    const solved = this.#solved;
    if (!solved || solved.weights.length < 2) return this.#curves.replaceChildren();
    const names = this.#facts!.shapes;
    const spans = names.map((_, shape) => {
      const values = solved.weights.map((frame) => frame[shape]!);
      return Math.max(...values) - Math.min(...values);
    });
    const chosen = spans.map((span, shape) => [span, shape] as const).sort((a, b) => b[0] - a[0]).slice(0, CURVES);
    const curves = chosen.map(([, shape]) => ({ name: names[shape]!, points: solved.weights.map((frame, index) => [index, Math.max(frame[shape]!, 0)] as const) }));
    this.#curves.replaceChildren(h("h3", {}, "Over the take"), chart(curves, "Weights that move most, over the frames", 320, "", this.#frame));
  }

  #run(): void {
    if (!this.#facts) return;
    this.#playing = true;
    this.#play.textContent = "❚❚";
    this.#play.setAttribute("aria-label", "Pause");
    this.#then = performance.now();
    const rate = this.#facts.rate ?? 30;
    this.#seconds = this.#frame / rate;
    const tick = () => {
      if (!this.#playing || !this.#facts) return;
      const now = performance.now();
      this.#seconds += (now - this.#then) / 1000;
      this.#then = now;
      const frame = Math.floor(this.#seconds * rate) % this.#facts.frames;
      if (frame !== this.#frame) this.#goTo(frame);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  #pause(): void {
    this.#playing = false;
    this.#play.textContent = "▶";
    this.#play.setAttribute("aria-label", "Play");
    if (this.#solved) this.#drawCurves();
  }

  /** A header of shape names, a row per frame: what the command `invert` writes for such a rig. */
  #save(): void {
    if (!this.#solved || !this.#facts) return;
    const rows = [this.#facts.shapes, ...this.#solved.weights.map((frame) => frame.map((weight) => String(Math.fround(weight))))];
    download(`${this.#rig!.name.split("/").pop()}-weights.csv`, rows.map((row) => row.join(",")).join("\n") + "\n", "text/csv");
  }
}
