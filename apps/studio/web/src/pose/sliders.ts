// The rig's controls as sliders: grouped by what they move, searchable, each with a reset; left and right may move together.

import { h } from "../lib/dom";
import type { Control, RigScene } from "../lib/rig";

const SIDES: readonly (readonly [RegExp, string])[] = [
  [/_L$/, "_R"], [/_R$/, "_L"], [/\.L$/, ".R"], [/\.R$/, ".L"], [/_l$/, "_r"], [/_r$/, "_l"],
  [/_L(?=[_.])/, "_R"], [/_R(?=[_.])/, "_L"], [/\.L(?=[_.])/, ".R"], [/\.R(?=[_.])/, ".L"],
  [/Left/, "Right"], [/Right/, "Left"], [/left/, "right"], [/right/, "left"],
];

/** The place of the name that is this one's on the other side, where there is one. */
export function otherSide(name: string, names: readonly string[]): number | undefined {
  for (const [pattern, other] of SIDES) {
    const found = pattern.test(name) ? names.indexOf(name.replace(pattern, other)) : -1;
    if (found >= 0) return found;
  }
  return undefined;
}

/** For every control the one on the other side, or itself. */
export function mirrored(controls: readonly Control[]): number[] {
  const names = controls.map(({ name }) => name);
  return names.map((name, place) => otherSide(name, names) ?? place);
}

/** Rotations about, and moves along, the axes across the body change their sign on the other side of it. */
const FLIPPED = new Set(["rotate_y", "rotate_z", "translate_x"]);

/** The value on the other side. A control of the middle that turns or moves sideways is turned over by it. */
export function mirrorValue(control: Control, other: Control, value: number): number {
  if (control.channel === null || !FLIPPED.has(control.channel)) return value;
  // Ranges tell whether a rig counts both sides the same way: then they are equal, else they are each other's negative.
  const equal = control !== other && control.low === other.low && control.high === other.high && control.low !== -control.high;
  return equal ? value : -value;
}

/** The first word of a name: `mouth` of `mouthSmile_L`, `left arm` of a bone. */
function groupOf(control: Control): string {
  const name = control.name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[_.\-:]+/g, " ").trim();
  const words = name.toLowerCase().split(/\s+/);
  const first = words[0] ?? "other";
  return first.replace(/\d+$/, "") || "other";
}

const title = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function readable(value: number, control: Control): string {
  const span = control.high - control.low;
  return value.toFixed(span >= 20 ? 1 : 2) + (control.channel?.startsWith("rotate") ? "°" : "");
}

interface Slider {
  readonly row: HTMLElement;
  readonly input: HTMLInputElement;
  readonly text: HTMLElement;
}

export class Sliders {
  /** A slider was moved by hand. */
  onmove: () => void = () => {};
  /** What was moved is let go: worth an undo. */
  oncommit: () => void = () => {};
  readonly element = h("aside", { class: "side", "aria-label": "Controls" });
  readonly values = { current: new Float32Array(0) };
  readonly #list = h("div", { class: "scroll", tabindex: 0, "aria-label": "Sliders" });
  readonly #search = h("input", { type: "search", placeholder: "Search controls", "aria-label": "Search controls" });
  readonly #mirror = h("input", { type: "checkbox" });
  readonly #count = h("span", { class: "soft", role: "status" });
  #rig: RigScene | null = null;
  #others: number[] = [];
  #sliders: Slider[] = [];
  #groups: { element: HTMLDetailsElement; sliders: number[] }[] = [];

  /** `buttons` stand beside the title. */
  constructor(...buttons: HTMLElement[]) {
    this.element.append(
      h("header", {},
        h("div", { class: "row" }, h("h2", {}, "Controls"), this.#count, h("span", { class: "spread" }), ...buttons),
        this.#search,
        h("div", { class: "row" },
          h("label", { class: "check", title: "Moves left and right together" }, this.#mirror, "Both sides"),
          h("span", { class: "spread" }),
          h("button", { type: "button", title: "Exchanges left and right", onclick: () => this.flip() }, "Flip"),
          h("button", { type: "button", title: "All controls to their defaults (R)", onclick: () => this.reset() }, "Reset all"))),
      this.#list,
    );
    this.#search.addEventListener("input", () => this.#filter());
  }

  /** A rig's controls, at their defaults. */
  open(rig: RigScene): void {
    this.#rig = rig;
    this.values.current = rig.defaults.slice();
    this.#others = mirrored(rig.controls);
    const groups = new Map<string, number[]>();
    rig.controls.forEach((control, place) => {
      const name = groupOf(control);
      groups.set(name, [...(groups.get(name) ?? []), place]);
    });
    this.#sliders = [];
    this.#groups = [];
    // Lone controls would be a group each.
    const lone = [...groups].filter(([, places]) => places.length === 1).flatMap(([name, places]) => (groups.delete(name), places));
    const all: [string, number[]][] = [...groups];
    if (lone.length > 0) all.push(["more", lone]);
    const elements = all.map(([name, places], index) => {
      const element = h("details", { class: "group", open: index === 0 || rig.controls.length <= 24 },
        h("summary", {}, title(name), h("span", { class: "soft" }, places.length)));
      // Hundreds of sliders that nobody has asked for yet need not be made.
      const make = () => {
        if (element.childElementCount === 1) element.append(...places.map((place) => this.#slider(place)));
      };
      element.addEventListener("toggle", () => { if (element.open) make(); });
      if (element.open) make();
      this.#groups.push({ element, sliders: places });
      return element;
    });
    this.#list.replaceChildren(...elements);
    if (rig.controls.length === 0) this.#list.append(h("p", { class: "soft" }, "This rig has no controls: it is a mesh at rest."));
    this.#search.value = "";
    this.#filter();
  }

  #slider(place: number): HTMLElement {
    const control = this.#rig!.controls[place]!;
    const id = `control-${place}`;
    const step = (control.high - control.low) / 1000;
    const input = h("input", { type: "range", id, min: control.low, max: control.high, step });
    const text = h("span", { class: "value number" });
    const back = h("button", { type: "button", class: "quiet", "aria-label": `Reset ${control.name}`, title: "Reset" }, "↺");
    const row = h("div", { class: "slider" }, h("label", { for: id, title: control.name }, control.name), text, back, input);
    const reset = () => {
      this.#set(place, control.default);
      this.oncommit();
    };
    input.addEventListener("input", () => this.#set(place, Number(input.value)));
    input.addEventListener("change", () => this.oncommit());
    back.addEventListener("click", reset);
    input.addEventListener("dblclick", reset);
    this.#sliders[place] = { row, input, text };
    this.#draw(place);
    return row;
  }

  #set(place: number, value: number): void {
    const controls = this.#rig!.controls;
    this.values.current[place] = value;
    this.#draw(place);
    const other = this.#others[place]!;
    if (this.#mirror.checked && other !== place) {
      this.values.current[other] = mirrorValue(controls[place]!, controls[other]!, value);
      this.#draw(other);
    }
    this.onmove();
  }

  #draw(place: number): void {
    const slider = this.#sliders[place];
    if (!slider) return;
    const control = this.#rig!.controls[place]!;
    const value = this.values.current[place]!;
    slider.input.value = String(value);
    slider.text.textContent = readable(value, control);
    slider.row.classList.toggle("moved", Math.abs(value - control.default) > 1e-4);
  }

  /** Shows values that came from elsewhere: a clip, a file. Closed groups are left alone. */
  show(values: Float32Array): void {
    this.values.current.set(values);
    this.refresh();
  }

  refresh(): void {
    for (const { element, sliders } of this.#groups) if (element.open) sliders.forEach((place) => this.#draw(place));
  }

  reset(): void {
    if (!this.#rig) return;
    this.show(this.#rig.defaults);
    this.onmove();
    this.oncommit();
  }

  /** Left becomes right and right becomes left. */
  flip(): void {
    if (!this.#rig) return;
    const { controls } = this.#rig;
    const before = this.values.current.slice();
    controls.forEach((control, place) => {
      const other = this.#others[place]!;
      this.values.current[place] = mirrorValue(controls[other]!, control, before[other]!);
    });
    this.refresh();
    this.onmove();
    this.oncommit();
  }

  /** Whether left and right move together. */
  get both(): boolean {
    return this.#mirror.checked;
  }

  #filter(): void {
    const words = this.#search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const controls = this.#rig?.controls ?? [];
    let shown = 0;
    for (const { element, sliders } of this.#groups) {
      const hits = sliders.filter((place) => words.every((word) => controls[place]!.name.toLowerCase().includes(word)));
      shown += hits.length;
      element.hidden = hits.length === 0;
      if (words.length > 0 && hits.length > 0) {
        element.open = true;
        if (element.childElementCount === 1) element.append(...sliders.map((place) => this.#slider(place)));
      }
      if (element.childElementCount > 1) sliders.forEach((place) => { this.#sliders[place]!.row.hidden = !hits.includes(place); });
    }
    this.#count.textContent = words.length > 0 ? `${shown} of ${controls.length}` : `${controls.length}`;
  }
}
