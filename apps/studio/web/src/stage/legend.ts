// The legend of the error colours, in millimetres; its end follows the largest error, or is chosen.

import * as THREE from "three";
import { fill, h } from "../lib/dom";

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500];

export class HeatLegend {
  /** The end of the scale changed. */
  onscale: () => void = () => {};
  readonly scale: THREE.IUniform<number> = { value: 1 };
  readonly element: HTMLElement;
  readonly #bar = h("div", { class: "ramp" });
  readonly #ticks = h("div", { class: "ticks number" });
  readonly #choice = h("select", { "aria-label": "End of the scale" });
  #largest = 0;

  constructor() {
    fill(this.#choice, [["auto", "auto"], ...STEPS.map((step) => [String(step), `${step} mm`] as const)], "auto");
    this.#choice.addEventListener("change", () => this.#set());
    this.element = h("div", { class: "legend", hidden: true, role: "group", "aria-label": "Error colours" },
      h("div", { class: "row" }, "Error, mm", h("span", { class: "spread" }), this.#choice), this.#bar, this.#ticks);
    this.#set();
  }

  colours(ramp: readonly (readonly [number, number, number])[]): void {
    this.#bar.style.background = `linear-gradient(90deg, ${ramp.map((colour) => `rgb(${colour.join(" ")})`).join(", ")})`;
  }

  /** Another pair is compared. */
  restart(): void {
    this.#largest = 0;
    this.#set();
  }

  /** The largest error of a pose, mm. The scale grows with it and does not flicker back. */
  seen(largest: number): void {
    if (largest <= this.#largest) return;
    this.#largest = largest;
    this.#set();
  }

  #set(): void {
    const auto = STEPS.find((step) => step >= this.#largest * 0.8) ?? STEPS[STEPS.length - 1]!;
    const end = this.#choice.value === "auto" ? auto : Number(this.#choice.value);
    if (end === this.scale.value && this.#ticks.childElementCount > 0) return;
    this.scale.value = end;
    const digits = end < 1 ? 2 : end < 10 ? 1 : 0;
    this.#ticks.replaceChildren(...[0, 0.5, 1].map((share) => h("span", {}, (end * share).toFixed(share === 0 ? 0 : digits))));
    this.onscale();
  }
}
