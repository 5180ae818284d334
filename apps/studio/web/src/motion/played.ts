// What was played: a strip of the last forty seconds, a piece per label or situation, the newest at the right.

import { h } from "../lib/dom";

/** Seconds that are shown. */
const SPAN = 40;
/** A piece that is narrower has no room for its name, pixels. */
const ROOM = 54;

interface Piece {
  readonly name: string;
  readonly doing: string;
  readonly colour: number;
  from: number;
  to: number;
}

export class Played {
  readonly element = h("div", { class: "played", role: "img", "aria-label": "Nothing was played yet" });
  #pieces: Piece[] = [];
  #now = 0;

  clear(): void {
    this.#pieces = [];
    this.#now = 0;
    this.#draw();
  }

  /** Goes on by some seconds with something. */
  add(seconds: number, name: string, doing: string, colour: number): void {
    const last = this.#pieces.at(-1);
    const from = this.#now;
    this.#now += seconds;
    if (last && last.name === name && last.doing === doing) last.to = this.#now;
    else this.#pieces.push({ name, doing, colour, from, to: this.#now });
    while (this.#pieces[0] && this.#pieces[0].to < this.#now - SPAN) this.#pieces.shift();
    this.#draw();
  }

  #draw(): void {
    const width = this.element.clientWidth;
    const start = Math.max(this.#now - SPAN, 0);
    this.element.replaceChildren(...this.#pieces.map((piece) => {
      const left = ((Math.max(piece.from, start) - start) / SPAN) * 100;
      const wide = ((piece.to - Math.max(piece.from, start)) / SPAN) * 100;
      const text = (wide / 100) * width >= ROOM ? piece.name : "";
      return h("div", {
        class: "piece", "data-doing": piece.doing, title: `${piece.name}, ${piece.doing}, ${(piece.to - piece.from).toFixed(1)} s`,
        style: `left: ${left}%; width: ${wide}%; --hue: var(--series-${(piece.colour % 5) + 1})`,
      }, text);
    }));
    const names = this.#pieces.map((piece) => piece.name);
    if (names.length > 0) this.element.setAttribute("aria-label", `Played: ${names.slice(-6).join(", ")}`);
  }
}
