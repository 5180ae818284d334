// The Motion tab: a character that acts on command, the latent space that she acts in, scripts, and a game against her.

import * as THREE from "three";
import type { Context, Tab, TabKind } from "../lib/context";
import { acceptDrops, complain, fileButton, fill, h, toast } from "../lib/dom";
import { readRig } from "../lib/rig";
import type { Project, Run } from "../lib/server";
import { Actor } from "../stage/actor";
import { rampTexture } from "../stage/material";
import { VIEW_KEYS, Viewer } from "../stage/viewer";
import { Board } from "./board";
import { FRAME, frameMessage, readFrame, type Cloud, type Frame, type MotionFacts } from "./frames";
import { LatentView } from "./latent";
import "./motion.css";
import { Played } from "./played";
import { ScriptEditor, type Wrong } from "./script";

/** Frames that are asked for and not yet answered. */
const UNDER_WAY = 2;
/** An answer that takes longer was lost. */
const PATIENCE_MS = 4000;
/** Seconds without a move after which she grows tired. */
const TIRES_AFTER = 14;
/** The rig whose motion is learned where nobody chooses. */
const FIRST_RIG = "mira";

export const motionTab: TabKind = { id: "motion", title: "Motion", make: (panel, context) => new MotionTab(panel, context) };

class MotionTab implements Tab {
  readonly #context: Context;
  readonly #stage = h("div", { class: "stage" });
  readonly #space = h("div", { class: "stage latent" });
  readonly #viewer: Viewer;
  readonly #latent: LatentView;
  readonly #board = new Board();
  readonly #editor = new ScriptEditor();
  readonly #played = new Played();
  readonly #notice = h("div", { class: "notice" });
  readonly #fileChoice = h("select", { "aria-label": "File of motion" });
  readonly #rigChoice = h("select", { "aria-label": "Rig whose clips are learned" });
  readonly #speed = h("select", { "aria-label": "Speed" }, ...[0.5, 1, 2, 4, 8].map((speed) => h("option", { value: speed, selected: speed === 1 }, `${speed}×`)));
  readonly #run = h("button", { type: "button", class: "icon primary", "aria-label": "Pause", disabled: true }, "❚❚");
  readonly #labels = h("div", { class: "labels", role: "group", "aria-label": "Labels" });
  readonly #clip = h("select", { "aria-label": "Clip" });
  readonly #chip = h("div", { class: "chip", style: "top: 8px; left: 8px", hidden: true });
  readonly #spaceChip = h("div", { class: "chip", style: "top: 8px; left: 8px", hidden: true });
  readonly #cloudBox = h("input", { type: "checkbox", id: "cloud", checked: true });
  readonly #ramp: THREE.IUniform<THREE.Texture> = { value: rampTexture([[60, 40, 120], [240, 230, 60]]) };
  #facts: MotionFacts | null = null;
  #file = "";
  #actor: Actor | null = null;
  #clouds = new Map<string, Cloud>();
  #label = -1;
  #visible = false;
  #running = false;
  #owed = 0;
  #then = 0;
  #next = 1;
  #underWay = new Map<number, { steps: number; since: number }>();
  #turn = 0;
  #waited = 0;
  #shown = 0;

  constructor(panel: HTMLElement, context: Context) {
    this.#context = context;
    const learn = h("button", { type: "button", title: "Learns latent spaces from the rig's own clips, in the background" }, "Learn");
    const files = fileButton("Open…", ".motion", (taken) => void this.#take(taken));
    const tools = h("div", { class: "tools", role: "toolbar", "aria-label": "What acts" }, this.#fileChoice, files, this.#rigChoice, learn, h("span", { class: "spread" }), h("label", { class: "check" }, "Speed", this.#speed));
    const act = (text: string, title: string, make: () => Record<string, unknown>) => h("button", { type: "button", title, onclick: () => void this.#command(make()) }, text);
    const commands = h("section", { class: "stack", "aria-label": "Commands" },
      h("h3", {}, "Commands"), this.#labels,
      h("div", { class: "row" }, this.#clip,
        act("Play", "The clip as it was made", () => ({ command: "play", clip: this.#clip.value })),
        act("Move", "To the clip's strongest pose", () => ({ command: "move", pose: this.#clip.value, seconds: 0.8 })),
        act("Idle", "Around the clip's strongest pose", () => ({ command: "idle", seconds: 4, around: [this.#clip.value] })),
        act("Stop", "Leaves whatever she does", () => ({ command: "stop" }))));
    const side = h("aside", { class: "side", "aria-label": "Game and commands" },
      h("div", { class: "scroll", tabindex: 0, "aria-label": "Game, commands and script" }, this.#board.element, commands, this.#editor.element));
    this.#space.append(h("div", { class: "row" }, h("label", { class: "check" }, this.#cloudBox, "Density")));
    const time = h("section", { class: "time", "aria-label": "What was played" }, h("div", { class: "strip" }, this.#run, h("span", {}, "Played"), this.#played.element));
    panel.append(h("div", { class: "work" }, tools, h("div", { class: "stages" }, this.#stage, this.#space), time, side));
    this.#viewer = new Viewer(this.#stage, "The character that acts; drag to turn, wheel to zoom");
    this.#latent = new LatentView(this.#space);
    this.#stage.append(this.#chip, this.#notice);
    this.#space.append(this.#spaceChip);
    acceptDrops(panel, (taken) => void this.#take(taken), (over) => this.#stage.classList.toggle("over", over));

    context.server.onbinary(FRAME, (message) => this.#hear(readFrame(message)));
    context.project.follow((project) => this.#list(project));
    context.runs.follow((runs) => this.#runs(runs));
    context.server.whenOpen(() => { if (this.#file) void this.#open(this.#file).catch(complain); });
    this.#fileChoice.addEventListener("change", () => { if (this.#fileChoice.value) void this.#open(this.#fileChoice.value).catch(complain); });
    learn.addEventListener("click", () => void this.#learn());
    this.#run.addEventListener("click", () => this.#setRunning(!this.#running));
    this.#cloudBox.addEventListener("change", () => { this.#latent.cloudShown = this.#cloudBox.checked; });
    this.#latent.onpick = (frame) => this.#goTo(frame);
    this.#editor.oncheck = (text) => (this.#facts ? context.server.command<Wrong>("motion_check", { text }) : Promise.resolve({}));
    this.#editor.onrun = (text) => void this.#script(text).catch(complain);
    this.#board.onbegin = (game) => void this.#game(game).catch(complain);
    this.#board.ontake = (square) => void context.server.command("motion_take", { square }).then(() => { this.#waited = 0; }).catch(complain);
    this.#board.onend = () => void context.server.command("motion_end").catch(complain);
    requestAnimationFrame((now) => this.#tick(now));
  }

  show(visible: boolean): void {
    this.#visible = visible;
    this.#viewer.visible = this.#latent.visible = visible;
  }

  key(event: KeyboardEvent): boolean {
    if (event.key === "f" || event.key === "F") this.#viewer.frame();
    else if (event.key === " ") this.#run.click();
    else if (VIEW_KEYS[event.key]) this.#viewer.look(VIEW_KEYS[event.key]!);
    else return false;
    return true;
  }

  #say(...content: Node[]): void {
    this.#notice.hidden = content.length === 0;
    this.#notice.replaceChildren(h("div", { class: "box" }, ...content));
  }

  #list(project: Project | null): void {
    if (!project) return;
    this.#ramp.value = rampTexture(project.ramp);
    const names = project.motions.map((name) => [name, name] as const);
    fill(this.#fileChoice, names.length > 0 ? names : [["", "No motion yet"]], this.#file);
    this.#fileChoice.disabled = names.length === 0;
    fill(this.#rigChoice, project.rigs.map(({ name }) => [name, name] as const), this.#rigChoice.value || FIRST_RIG);
    if (this.#file) return;
    if (names.length > 0) void this.#open(names[0]![0]).catch(complain);
    else {
      this.#say(h("h2", {}, "A character that acts"),
        h("p", {}, "Learn the latent spaces of a character's clips, or drop a file of motion (.motion) here. Then command her, write scripts, play against her."),
        h("button", { type: "button", class: "primary", "data-action": "learn", onclick: () => { this.#rigChoice.value = FIRST_RIG; void this.#learn(); } }, "Learn Mira's motion"));
    }
  }

  async #learn(): Promise<void> {
    try {
      const rig = this.#rigChoice.value || FIRST_RIG;
      await this.#context.server.start({ job: "motion", rig });
      toast("Motion is learned in the background: the Learn tab shows how far it is.");
      if (!this.#file) this.#say(h("div", { class: "spinner" }), h("p", {}, `Learning the motion of ${rig}…`));
    } catch (error) {
      complain(error);
    }
  }

  #opened = new Set<number>();

  /** What was just learned is opened. */
  #runs(runs: readonly Run[]): void {
    for (const run of runs) {
      const file = run.result?.["motion"];
      if (run.state !== "done" || typeof file !== "string" || this.#opened.has(run.id)) continue;
      this.#opened.add(run.id);
      if (!this.#file) void this.#context.refresh().then(() => this.#open(file)).catch(complain);
    }
  }

  async #take(files: File[]): Promise<void> {
    try {
      const file = files.find(({ name }) => name.toLowerCase().endsWith(".motion"));
      if (!file) throw new Error("a file of motion (.motion) is wanted");
      const name = await this.#context.server.upload(file);
      await this.#open(name);
      await this.#context.refresh();
    } catch (error) {
      complain(error);
    }
  }

  async #open(file: string): Promise<void> {
    const turn = ++this.#turn;
    this.#file = file;
    const first = !this.#facts;
    if (first) this.#say(h("div", { class: "spinner" }), h("p", {}, `Opening ${file}…`));
    try {
      const facts = await this.#context.server.command<MotionFacts>("motion_open", { file });
      const rig = readRig(await this.#context.server.rig(facts.rig));
      if (turn !== this.#turn) return;
      this.#facts = facts;
      this.#actor?.dispose();
      this.#actor = new Actor(rig, this.#ramp, { value: 1 });
      this.#viewer.setHome(rig.positions);
      this.#viewer.look("front");
      this.#viewer.show([this.#actor], "single");
      this.#clouds.clear();
      this.#label = -1;
      this.#underWay.clear();
      this.#owed = 1;
      this.#played.clear();
      this.#board.show(null);
      fill(this.#fileChoice, (this.#context.project.value?.motions ?? [file]).map((name) => [name, name] as const), file);
      this.#labels.replaceChildren(...facts.labels.map(({ label }) => h("button", { type: "button", "data-label": label, onclick: () => void this.#command({ command: "transition", label }) }, label)));
      fill(this.#clip, facts.labels.flatMap(({ clips }) => clips.map(({ name }) => [name, name] as const)));
      if (!this.#editor.value) this.#editor.value = this.#example(facts);
      this.#say();
      this.#run.disabled = false;
      this.#setRunning(!matchMedia("(prefers-reduced-motion: reduce)").matches);
    } catch (error) {
      if (first) {
        this.#file = "";
        this.#say(h("h2", {}, "This file cannot be played"), h("p", {}, error instanceof Error ? error.message : String(error)));
      }
      throw error;
    }
  }

  /** A script that shows each command once. */
  #example({ labels }: MotionFacts): string {
    const [first, second] = [labels[0]!, labels[1] ?? labels[0]!];
    return `transition ${second.label}\nplay ${second.clips[0]!.name}\nmove ${first.clips[0]!.name} in 1s\nidle 3s around ${first.clips.slice(0, 2).map(({ name }) => name).join(", ")}\n`;
  }

  async #command(command: Record<string, unknown>): Promise<void> {
    if (!this.#facts) return;
    try {
      await this.#context.server.command("motion_command", { command });
      this.#setRunning(true);
    } catch (error) {
      complain(error);
    }
  }

  async #script(text: string): Promise<void> {
    const wrong = await this.#context.server.command<Wrong>("motion_script", { text });
    if (wrong.problem) toast(`Line ${wrong.line}: ${wrong.problem}`, true);
    else this.#setRunning(true);
  }

  async #game(game: object): Promise<void> {
    if (!this.#facts) return toast("Open a file of motion first.", true);
    await this.#context.server.command("motion_game", { game });
    this.#waited = 0;
    this.#setRunning(true);
  }

  /** To a training frame that was clicked. */
  #goTo(frame: number): void {
    const label = this.#facts?.labels[this.#label];
    const clip = label?.clips.find(({ first, frames }) => frame >= first && frame < first + frames);
    if (clip) void this.#command({ command: "move", pose: `${clip.name}@${((frame - clip.first) / this.#facts!.rate).toFixed(3)}s` });
  }

  #setRunning(running: boolean): void {
    this.#running = running;
    this.#then = 0;
    this.#run.textContent = running ? "❚❚" : "▶";
    this.#run.setAttribute("aria-label", running ? "Pause" : "Play");
  }

  /** Asks for as many frames as time has passed; one message for all of them. */
  #tick(now: number): void {
    requestAnimationFrame((then) => this.#tick(then));
    if (!this.#visible || !this.#facts || !this.#context.server.open) return;
    const passed = this.#then === 0 ? 0 : Math.min((now - this.#then) / 1000, 0.5);
    this.#then = now;
    if (this.#running) this.#owed += passed * this.#facts.rate * Number(this.#speed.value);
    for (const [number, { since }] of this.#underWay) if (now - since > PATIENCE_MS) this.#underWay.delete(number);
    const steps = Math.floor(this.#owed);
    if (steps < 1 || this.#underWay.size >= UNDER_WAY) return;
    const number = this.#next++ >>> 0;
    if (!this.#context.server.send(frameMessage(number, steps))) return;
    this.#owed -= steps;
    this.#underWay.set(number, { steps, since: now });
  }

  #hear(frame: Frame): void {
    const asked = this.#underWay.get(frame.number);
    this.#underWay.delete(frame.number);
    const facts = this.#facts;
    if (!asked || !facts || !this.#actor || frame.vertices.length !== this.#actor.vertices.length) return;
    const label = facts.labels[frame.label];
    if (!label) return;
    if (frame.label !== this.#label) this.#enter(frame.label);
    this.#actor.move(frame.vertices);
    this.#viewer.redraw();
    this.#latent.follow(frame);
    const doing = facts.doing[frame.doing] ?? "idle";
    const seconds = asked.steps / facts.rate;
    const mood = frame.game?.mood;
    this.#played.add(seconds, mood ? `${mood}: ${label.label}` : label.label, doing, frame.label);
    this.#chip.hidden = this.#spaceChip.hidden = false;
    this.#chip.replaceChildren(h("b", {}, label.label), ` ${doing}`);
    this.#spaceChip.replaceChildren(h("b", {}, `${label.dimensions} dimensions`), ` ${label.points.length / 3} frames, ${frame.distance.toFixed(2)} r from the path`);
    this.#board.show(frame.game);
    this.#wait(frame, seconds);
    this.#stage.dataset["label"] = label.label;
    this.#stage.dataset["doing"] = doing;
    this.#stage.dataset["busy"] = String(frame.busy);
    this.#stage.dataset["drawn"] = String(++this.#shown);
  }

  /** Who waits for long is told so by her. */
  #wait(frame: Frame, seconds: number): void {
    this.#waited = frame.game?.yourTurn ? this.#waited + seconds : 0;
    if (this.#waited < TIRES_AFTER) return;
    this.#waited = 0;
    void this.#context.server.command("motion_linger").catch(complain);
  }

  /** Another label: its space is shown. */
  #enter(place: number): void {
    this.#label = place;
    const facts = this.#facts!;
    const label = facts.labels[place]!;
    this.#latent.show(label, place, facts.bridges);
    for (const button of this.#labels.children) button.setAttribute("aria-pressed", String((button as HTMLElement).dataset["label"] === label.label));
    const known = this.#clouds.get(label.label);
    const show = (cloud: Cloud) => {
      this.#clouds.set(cloud.label, cloud);
      this.#latent.cloud(cloud);
      this.#latent.cloudShown = this.#cloudBox.checked;
    };
    if (known) show(known);
    else void this.#context.server.command<Cloud>("motion_cloud", { label: label.label }).then(show).catch(complain);
  }
}
