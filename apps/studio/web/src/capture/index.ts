// The Capture tab: a webcam or a video drives a twin. Points of the face come from MediaPipe in the page, our run time makes controls
// and vertices of them. Nothing is sent anywhere but what is exported, and that to the studio's own server.

import * as THREE from "three";
import { ARKIT_SHAPES, type Performance, type SeenFace } from "understudy-twin";
import type { Context, Tab, TabKind } from "../lib/context";
import { acceptDrops, complain, download, fileButton, fill, h, toast } from "../lib/dom";
import { readRig, type RigScene } from "../lib/rig";
import { BrowserTwin } from "../lib/twin";
import { Actor } from "../stage/actor";
import { rampTexture } from "../stage/material";
import { Viewer } from "../stage/viewer";
import { Recording } from "./recording";
import { canonicalFace } from "./task";
import type { Watcher } from "./watcher";

/** Scores that are shown. */
const BARS = 12;
/** Frames over which the rate is told. */
const PACE = 20;

export const captureTab: TabKind = { id: "capture", title: "Capture", make: (panel, context) => new CaptureTab(panel, context) };

class CaptureTab implements Tab {
  readonly #context: Context;
  readonly #stage = h("div", { class: "stage" });
  readonly #viewer: Viewer;
  readonly #ramp: THREE.IUniform<THREE.Texture> = { value: rampTexture([[60, 40, 120], [240, 230, 60]]) };
  readonly #twinChoice = h("select", { "aria-label": "Twin" });
  readonly #webcam = h("button", { type: "button", disabled: true }, "Webcam");
  readonly #neutral = h("button", { type: "button", disabled: true, title: "Takes the face in sight as the actor at rest (N)" }, "Neutral");
  readonly #mirror = h("button", { type: "button", "aria-pressed": "false", title: "Left and right exchanged, as in a mirror (M)" }, "Mirror");
  readonly #record = h("button", { type: "button", class: "primary", disabled: true, "aria-pressed": "false" }, "Record");
  readonly #csv = h("button", { type: "button", disabled: true }, "Export CSV");
  readonly #glb = h("button", { type: "button", disabled: true }, "Export GLB");
  readonly #figures = h("div", { class: "figures", role: "status" });
  readonly #bars = h("div", { class: "bars" });
  readonly #notice = h("div", { class: "notice" });
  readonly #sight = h("div", { class: "sight", hidden: true });
  readonly #takeText = h("span", { class: "number" }, "no take");
  readonly #video = h("video", { muted: true, playsinline: true, class: "visually-hidden", "aria-hidden": "true", tabindex: -1 });
  #rig: RigScene | null = null;
  #twin: BrowserTwin | null = null;
  #actor: Actor | null = null;
  #controls = new Float32Array(0);
  #vertices = new Float32Array(0);
  #task: ArrayBuffer | null = null;
  #watcher: Watcher | null = null;
  #last: SeenFace | null = null;
  #then = 0;
  #moments: number[] = [];
  #recording: Recording | null = null;
  #recorded: Recording | null = null;
  #running = false;
  #turn = 0;
  /** Of the camera or video that is wanted: what an older one brings comes too late. */
  #source = 0;

  constructor(panel: HTMLElement, context: Context) {
    this.#context = context;
    const task = fileButton("Face landmarker (.task)…", ".task", ([file]) => { if (file) void this.#openTask(file); });
    const video = fileButton("Video…", "video/*,.mp4,.webm,.mov", ([file]) => { if (file) void this.#openVideo(file); });
    const tools = h("div", { class: "tools", role: "toolbar", "aria-label": "Who drives whom" },
      this.#twinChoice, task, this.#webcam, video, this.#mirror, this.#neutral, h("span", { class: "spread" }), this.#csv, this.#glb);
    const side = h("aside", { class: "side", "aria-label": "What the actor does" },
      h("header", {}, h("h2", {}, "The actor"), this.#figures),
      h("div", { class: "scroll", tabindex: 0, "aria-label": "Scores of this frame" }, h("h3", {}, "Strongest scores"), this.#bars));
    const time = h("section", { class: "time", "aria-label": "Take" }, h("div", { class: "transport" }, this.#record, h("span", {}, "Take"), this.#takeText));
    panel.append(h("div", { class: "work" }, tools, this.#stage, time, side));
    this.#viewer = new Viewer(this.#stage, "The character; drag to turn, shift-drag to move, wheel to zoom");
    this.#stage.append(this.#sight, this.#video, this.#notice);
    acceptDrops(panel, (files) => this.#dropped(files), (over) => this.#stage.classList.toggle("over", over));

    context.project.follow((project) => {
      if (!project) return;
      this.#ramp.value = rampTexture(project.ramp);
      const twins = project.twins.filter(({ kind }) => kind !== "body");
      const before = this.#twinChoice.value;
      fill(this.#twinChoice, [["", twins.length ? "Choose a twin…" : "No face twin in the project"], ...twins.map(({ path }) => [path, path] as const)], before);
      if (!this.#twin && twins.length > 0) {
        // One that has been taught to follow points says so by its name, usually.
        const best = twins.find(({ path }) => /ik/i.test(path)) ?? twins[0]!;
        this.#twinChoice.value = best.path;
        void this.#openTwin(best.path).catch(complain);
      }
    });
    this.#twinChoice.addEventListener("change", () => { if (this.#twinChoice.value) void this.#openTwin(this.#twinChoice.value).catch(complain); });
    this.#webcam.addEventListener("click", () => void (this.#running ? this.#stop() : this.#openWebcam()));
    this.#neutral.addEventListener("click", () => this.#setNeutral());
    this.#mirror.addEventListener("click", () => this.#setMirror(this.#mirror.getAttribute("aria-pressed") !== "true"));
    this.#record.addEventListener("click", () => this.#toggleRecord());
    this.#csv.addEventListener("click", () => { if (this.#recorded && this.#rig) download("take.csv", this.#table(), "text/csv"); });
    this.#glb.addEventListener("click", () => void this.#saveModel().catch(complain));
    this.#video.addEventListener("ended", () => this.#stop());
    this.#guide();
  }

  show(visible: boolean): void {
    this.#viewer.visible = visible;
    // A camera must not run where nobody sees that it does.
    if (!visible) this.#stop();
  }

  key(event: KeyboardEvent): boolean {
    if (event.key === "f" || event.key === "F") this.#viewer.frame();
    else if (event.key === "n" || event.key === "N") this.#setNeutral();
    else if (event.key === "m" || event.key === "M") this.#mirror.click();
    else if (event.key === "r" || event.key === "R") this.#toggleRecord();
    else return false;
    return true;
  }

  #say(...content: Node[]): void {
    this.#notice.hidden = content.length === 0;
    this.#notice.replaceChildren(h("div", { class: "box" }, ...content));
  }

  /** What is still missing. */
  #guide(): void {
    const missing = [
      !this.#twin && "a face twin in the project: learn one on the Learn tab, then let it follow points with understudy learn ik",
      !this.#task && "MediaPipe's face landmarker: drop face_landmarker.task here",
      this.#task && this.#twin && !this.#running && "an actor: start the webcam or drop a video",
    ].filter((text) => typeof text === "string");
    this.#webcam.disabled = !this.#task || !this.#twin;
    if (this.#running || missing.length === 0) return this.#say();
    this.#say(h("h2", {}, "Drive a character with a face"), h("p", {}, `Needed: ${missing.join("; ")}.`),
      h("p", { class: "soft" }, "Frames and points stay in this page."));
  }

  #dropped(files: File[]): void {
    for (const file of files) {
      if (file.name.endsWith(".task")) void this.#openTask(file);
      else if (file.type.startsWith("video/") || /\.(mp4|webm|mov|mkv)$/i.test(file.name)) void this.#openVideo(file);
      else toast(`${file.name}: a .task file or a video is wanted`, true);
    }
  }

  async #openTwin(path: string): Promise<void> {
    const turn = ++this.#turn;
    const entry = this.#context.project.value?.twins.find((twin) => twin.path === path);
    const rigs = this.#context.project.value?.rigs ?? [];
    const bytes = await this.#context.server.twin(path);
    const name = await BrowserTwin.rigOf(bytes);
    if (!rigs.some((rig) => rig.name === name)) throw new Error(`${path}: its rig '${name}' is not in the project`);
    const rig = readRig(await this.#context.server.rig(name));
    if (entry && entry.topology !== rig.topology) throw new Error(`${path} was learned from another '${name}'`);
    const twin = await BrowserTwin.load(bytes, rig);
    if (turn !== this.#turn) return twin.free();
    this.#twin?.free();
    this.#actor?.dispose();
    [this.#rig, this.#twin] = [rig, twin];
    this.#controls = rig.defaults.slice();
    this.#vertices = new Float32Array(rig.vertices * 3);
    this.#actor = new Actor(rig, this.#ramp, { value: 1 });
    this.#viewer.setHome(rig.positions);
    this.#viewer.show([this.#actor], "single");
    this.#viewer.look("front");
    this.#recorded = this.#recording = null;
    this.#begin();
    this.#guide();
  }

  async #openTask(file: File): Promise<void> {
    try {
      const bytes = await file.arrayBuffer();
      canonicalFace(bytes);
      this.#say(h("div", { class: "spinner" }), h("p", {}, "Loading the face landmarker…"));
      const { Watcher } = await import("./watcher");
      const watcher = await Watcher.load(bytes);
      this.#watcher?.close();
      [this.#task, this.#watcher] = [bytes, watcher];
      this.#sight.replaceChildren(watcher.canvas);
      this.#stage.dataset["task"] = "ready";
      this.#begin();
    } catch (error) {
      complain(error);
    }
    this.#guide();
  }

  /** Twin and landmarker are both there: the actor's rest is to be found anew. */
  #begin(): void {
    if (this.#twin && this.#task) this.#twin.beginLive(canonicalFace(this.#task));
  }

  async #openWebcam(): Promise<void> {
    this.#stop();
    const own = this.#source;
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 480, frameRate: 30 }, audio: false });
      // While the browser asked, somebody left the tab or asked again.
      if (own !== this.#source) return stream.getTracks().forEach((track) => track.stop());
      this.#video.srcObject = stream;
      this.#setMirror(true);
      await this.#start(own);
    } catch (error) {
      this.#failed(own, error, "The camera cannot be used");
    }
  }

  /** Says what went wrong with a camera or a video, where anybody still wants it. */
  #failed(own: number, error: unknown, what: string): void {
    if (own !== this.#source) return;
    this.#stop();
    complain(error instanceof DOMException ? new Error(`${what}: ${error.message}`) : error);
  }

  async #openVideo(file: File): Promise<void> {
    if (!this.#task || !this.#twin) return toast("A twin and a face landmarker come first.", true);
    this.#stop();
    const own = this.#source;
    try {
      this.#video.src = URL.createObjectURL(file);
      this.#setMirror(false);
      await this.#start(own);
    } catch (error) {
      this.#failed(own, error, `${file.name} cannot be played`);
    }
  }

  async #start(own: number): Promise<void> {
    await this.#video.play();
    if (own !== this.#source) return;
    this.#running = true;
    this.#then = performance.now();
    this.#moments = [];
    this.#sight.hidden = false;
    this.#webcam.textContent = "Stop";
    this.#record.disabled = this.#neutral.disabled = false;
    this.#begin();
    this.#guide();
    this.#wait();
  }

  #stop(): void {
    // What is being opened is not wanted any more.
    this.#source += 1;
    this.#release();
    if (!this.#running) return;
    this.#running = false;
    if (this.#recording) this.#toggleRecord();
    this.#sight.hidden = true;
    this.#webcam.textContent = "Webcam";
    this.#record.disabled = this.#neutral.disabled = true;
    this.#guide();
  }

  /** Lets the camera or the file go. */
  #release(): void {
    const stream = this.#video.srcObject;
    if (stream instanceof MediaStream) stream.getTracks().forEach((track) => track.stop());
    else if (this.#video.src) URL.revokeObjectURL(this.#video.src);
    this.#video.pause();
    this.#video.srcObject = null;
    this.#video.removeAttribute("src");
  }

  #wait(): void {
    if (this.#running) this.#video.requestVideoFrameCallback(() => this.#frame());
  }

  #frame(): void {
    const { watcher, twin, rig, actor } = { watcher: this.#watcher, twin: this.#twin, rig: this.#rig, actor: this.#actor };
    if (!this.#running || !watcher || !twin || !rig || !actor) return;
    try {
      const now = performance.now();
      const face = watcher.look(this.#video, this.#mirror.getAttribute("aria-pressed") === "true");
      const watched = performance.now() - now;
      const performed = twin.follow(face, (now - this.#then) / 1000, this.#controls);
      twin.pose(this.#controls, null, this.#vertices);
      const driven = performance.now() - now - watched;
      this.#then = now;
      this.#last = face ?? this.#last;
      actor.move(this.#vertices);
      this.#viewer.redraw();
      this.#recording?.add(now / 1000, this.#controls);
      this.#tell(performed, face !== null, watched, driven);
    } catch (error) {
      this.#stop();
      return complain(error);
    }
    this.#wait();
  }

  #tell(now: Performance, seen: boolean, watched: number, driven: number): void {
    this.#moments.push(performance.now());
    if (this.#moments.length > PACE) this.#moments.shift();
    const span = this.#moments[this.#moments.length - 1]! - this.#moments[0]!;
    const rate = span > 0 ? ((this.#moments.length - 1) / span) * 1000 : 0;
    const cell = (name: string, text: string) => h("div", {}, h("span", { class: "soft" }, name), h("b", {}, text));
    const [yaw, pitch, roll] = now.head.map((angle) => `${angle.toFixed(0)}°`);
    this.#figures.replaceChildren(
      cell("face", seen ? "seen" : now.strength > 0 ? "lost: held" : "lost"), cell("per second", rate.toFixed(0)),
      cell("watching", `${watched.toFixed(1)} ms`), cell("driving", `${driven.toFixed(1)} ms`),
      cell("head", `${yaw} ${pitch} ${roll}`),
      ...(now.pointsMm ? [cell("points off", `${now.pointsMm[0].toFixed(1)} mm`), cell("by scores", `${now.pointsMm[1].toFixed(1)} mm`)] : []));
    const order = Array.from(now.shapes, (score, shape) => [score, shape] as const).filter(([score]) => score > 0.02).sort((a, b) => b[0] - a[0]);
    this.#bars.replaceChildren(...order.slice(0, BARS).map(([score, shape]) => h("div", { class: "weight", "data-shape": ARKIT_SHAPES[shape]! },
      h("span", { title: ARKIT_SHAPES[shape]! }, ARKIT_SHAPES[shape]!), h("div", { class: "track" }, h("i", { style: `width: ${score * 100}%` })), h("span", { class: "number" }, score.toFixed(2)))));
    const { dataset } = this.#stage;
    dataset["frames"] = String(Number(dataset["frames"] ?? 0) + 1);
    dataset["seen"] = String(Number(dataset["seen"] ?? 0) + (seen ? 1 : 0));
    dataset["shapes"] = JSON.stringify(Object.fromEntries(order.map(([score, shape]) => [ARKIT_SHAPES[shape]!, Number(score.toFixed(3))])));
    dataset["head"] = now.head.map((angle) => angle.toFixed(2)).join(" ");
    if (this.#recording) this.#takeText.textContent = `${this.#recording.seconds.toFixed(1)} s`;
  }

  #setNeutral(): void {
    if (!this.#last || !this.#twin || !this.#running) return toast("No face has been seen yet.", true);
    try {
      this.#twin.setRest(this.#last);
      toast("This face is the actor at rest from now on.");
    } catch (error) {
      complain(error);
    }
  }

  #setMirror(on: boolean): void {
    this.#mirror.setAttribute("aria-pressed", String(on));
    // Another face, as it were: its rest is mirrored too.
    if (this.#running) this.#begin();
  }

  #toggleRecord(): void {
    if (this.#recording) {
      if (this.#recording.frames > 1) this.#recorded = this.#recording;
      this.#recording = null;
    } else if (this.#running) {
      this.#recording = new Recording();
    }
    const on = this.#recording !== null;
    this.#record.textContent = on ? "Stop" : "Record";
    this.#record.setAttribute("aria-pressed", String(on));
    if (!on && this.#recorded) this.#takeText.textContent = `${this.#recorded.seconds.toFixed(1)} s, ${this.#recorded.frames} frames`;
    this.#csv.disabled = this.#glb.disabled = on || !this.#recorded;
  }

  #table(): string {
    return this.#recorded!.table(this.#rig!.controls.map(({ name }) => name));
  }

  async #saveModel(): Promise<void> {
    if (!this.#recorded || !this.#rig) return;
    const clip = await this.#context.server.upload(new File([this.#table()], "take.csv", { type: "text/csv" }));
    download("take.glb", await this.#context.server.export({ what: "clip", rig: this.#rig.name, clip, format: "glb" }));
  }
}
