// The timeline: which clip plays, where it is, how fast, and whether it begins again.

import { fill, h } from "../lib/dom";
import { sampleClip, type Clip, type ClipEntry } from "../lib/rig";
import { Keys, type Key } from "./keys";

/** The choice of a clip of one's own. */
export const NEW_TAKE = "+take";
const SPEEDS = ["0.1", "0.25", "0.5", "1", "2"] as const;

export class Timeline {
  /** A clip was chosen; the empty name stands for none. */
  onchoose: (name: string) => void = () => {};
  /** A key shall be set here. */
  onkey: () => void = () => {};
  /** Keys were removed. */
  onunkey: () => void = () => {};
  readonly keys = new Keys();
  readonly element: HTMLElement;
  readonly choice = h("select", { "aria-label": "Clip" });
  readonly #play = h("button", { type: "button", class: "icon primary", "aria-label": "Play", title: "Play or pause (space)" }, "▶");
  readonly #scrub = h("input", { type: "range", min: 0, max: 1, step: 0.001, value: 0, "aria-label": "Time in the clip" });
  readonly #clock = h("span", { class: "number" });
  readonly #loop = h("input", { type: "checkbox", checked: true });
  readonly #speed = h("select", { "aria-label": "Speed" });
  readonly #key = h("button", { type: "button", title: "Keeps the pose at this moment (K)" }, "◆ Key");
  readonly #drop = h("button", { type: "button", title: "Removes the key at this moment" }, "Remove key");
  readonly #auto = h("input", { type: "checkbox" });
  readonly #marks = h("div", { class: "marks", role: "group", "aria-label": "Keys" });
  readonly #files: [value: string, text: string][] = [];
  #own: readonly ClipEntry[] = [];
  #clip: Clip | null = null;
  #seconds = 0;
  #playing = false;

  constructor(openButton: HTMLElement) {
    fill(this.#speed, SPEEDS.map((speed) => [speed, `${speed}×`] as const), "1");
    this.element = h("section", { class: "time", "aria-label": "Timeline" },
      h("div", { class: "transport" },
        this.#play,
        h("div", { class: "row" }, this.choice, openButton),
        h("div", { class: "scrub" }, this.#scrub, this.#marks),
        h("div", { class: "row" }, this.#clock, h("label", { class: "check" }, this.#loop, "Loop"), this.#speed, this.#key, this.#drop,
          h("label", { class: "check", title: "Every pose that is made by hand is kept at its moment" }, this.#auto, "Auto"))));
    this.#key.addEventListener("click", () => this.onkey());
    this.#drop.addEventListener("click", () => this.#unkey());
    this.#play.addEventListener("click", () => this.toggle());
    this.choice.addEventListener("change", () => this.onchoose(this.choice.value));
    this.#scrub.addEventListener("input", () => {
      // Pausing draws the old time into the field.
      const seconds = Number(this.#scrub.value);
      this.pause();
      this.seek(seconds);
    });
    this.#draw();
  }

  /** The clips of a rig; files that were opened for it before are forgotten. */
  open(clips: readonly ClipEntry[]): void {
    this.#own = clips;
    this.#files.length = 0;
    this.#list("");
    this.load(null);
  }

  /** A file that may be chosen from now on. */
  addFile(path: string, name: string): void {
    if (!this.#files.some(([known]) => known === path)) this.#files.push([path, `${name} (file)`]);
    this.#list(path);
  }

  #list(chosen: string): void {
    const own = this.#own.map((clip) => [clip.name, clip.test ? `${clip.name} (test)` : clip.name] as const);
    fill(this.choice, [["", "No clip"], [NEW_TAKE, "A take of keys"], ...own, ...this.#files], chosen);
  }

  /** What plays from now on. */
  load(clip: Clip | null): void {
    this.#clip = clip;
    this.keys.list = [];
    this.#seconds = 0;
    this.#playing = false;
    this.#scrub.max = String(clip?.duration ?? 1);
    this.redraw();
  }

  get clip(): Clip | null {
    return this.#clip;
  }

  get playing(): boolean {
    return this.#playing;
  }

  get seconds(): number {
    return this.#seconds;
  }

  play(): void {
    if (!this.#clip) return;
    if (this.#seconds >= this.#clip.duration) this.#seconds = 0;
    this.#playing = true;
    this.#draw();
  }

  pause(): void {
    this.#playing = false;
    this.#draw();
  }

  toggle(): void {
    if (this.#playing) this.pause();
    else this.play();
  }

  /** Called when the time was changed by hand. */
  onseek: () => void = () => {};

  seek(seconds: number): void {
    this.#seconds = Math.min(Math.max(seconds, 0), this.#clip?.duration ?? 0);
    this.#draw();
    this.onseek();
  }

  step(frames: number): void {
    if (!this.#clip) return;
    this.pause();
    this.seek((Math.round(this.#seconds * this.#clip.rate) + frames) / this.#clip.rate);
  }

  /** Moves on; whether there is something new to show. */
  advance(seconds: number): boolean {
    const clip = this.#clip;
    if (!this.#playing || !clip) return false;
    this.#seconds += seconds * Number(this.#speed.value);
    if (this.#seconds > clip.duration) {
      if (this.#loop.checked && clip.duration > 0) this.#seconds %= clip.duration;
      else {
        this.#seconds = clip.duration;
        this.#playing = false;
      }
    }
    this.#draw();
    return true;
  }

  /** The controls now, keys and all. */
  sample(out: Float32Array, seconds = this.#seconds): void {
    if (!this.#clip) return;
    sampleClip(this.#clip, seconds, out);
    this.keys.add(seconds, out);
  }

  /** The controls of the clip below the keys. */
  below(out: Float32Array): void {
    if (this.#clip) sampleClip(this.#clip, this.#seconds, out);
  }

  /** Whether poses made by hand become keys by themselves. */
  get auto(): boolean {
    return this.#auto.checked;
  }

  /** Keys changed. */
  redraw(): void {
    this.#marks.replaceChildren(...this.keys.list.map((key) => this.#mark(key)));
    this.#draw();
  }

  #mark(key: Key): HTMLElement {
    const share = key.time / Math.max(this.#clip?.duration ?? 1, 1e-6);
    const mark = h("button", { type: "button", "aria-label": `Key at ${key.time.toFixed(2)} s`, title: `Key at ${key.time.toFixed(2)} s`, style: `left: calc(8px + ${share} * (100% - 16px))` });
    mark.addEventListener("click", () => {
      this.pause();
      this.seek(key.time);
    });
    return mark;
  }

  #unkey(): void {
    const key = this.keys.at(this.#seconds);
    if (!key) return;
    this.keys.remove(key);
    this.redraw();
    this.onunkey();
  }

  #draw(): void {
    const clip = this.#clip;
    this.#play.textContent = this.#playing ? "❚❚" : "▶";
    this.#play.setAttribute("aria-label", this.#playing ? "Pause" : "Play");
    this.#play.disabled = this.#scrub.disabled = !clip;
    this.#drop.disabled = !this.keys.at(this.#seconds);
    this.#marks.hidden = this.keys.list.length === 0;
    this.#scrub.value = String(this.#seconds);
    const frame = clip ? Math.round(this.#seconds * clip.rate) : 0;
    this.#scrub.setAttribute("aria-valuetext", clip ? `${this.#seconds.toFixed(2)} seconds, frame ${frame}` : "no clip");
    this.#clock.textContent = clip ? `${this.#seconds.toFixed(2)} / ${clip.duration.toFixed(2)} s` : "– s";
  }
}
