// The board of tic-tac-toe, what the game says, and how forgetful she is.

import { h } from "../lib/dom";
import type { Cell, End, GameState, Mood } from "./frames";

const SAYS: Readonly<Record<Mood, string>> = {
  greets: "greets you",
  waits: "waits for you",
  tires: "grows tired of waiting",
  ponders: "ponders her move",
  intimidates: "tries to frighten you",
  objects: "does not like that move",
  marvels: "did not see that coming",
  loses: "has lost, and says so",
  wins: "has won, and shows it",
  shrugs: "shrugs: nobody has won",
};
const ENDS: Readonly<Record<End, string>> = { she: "She has won.", you: "You have won.", nobody: "Nobody has won." };
const MARKS: Readonly<Record<Cell, string>> = { free: "", hers: "○", yours: "✕" };
const CELLS: Readonly<Record<Cell, string>> = { free: "free", hers: "hers", yours: "yours" };

export interface GameWish {
  readonly forgetful: number;
  readonly seed: number;
  readonly she_begins: boolean;
}

export class Board {
  readonly element: HTMLElement;
  onbegin: (wish: GameWish) => void = () => {};
  ontake: (square: number) => void = () => {};
  onend: () => void = () => {};
  readonly #cells = Array.from({ length: 9 }, (_, square) => h("button", { type: "button", class: "cell", disabled: true, onclick: () => this.ontake(square) }));
  readonly #status = h("p", { role: "status", class: "said" }, "A game of tic-tac-toe against her.");
  readonly #score = h("span", { class: "soft" });
  readonly #forget = h("input", { type: "range", id: "forget", min: 0, max: 100, step: 5, value: 25 });
  readonly #forgetText = h("span", { class: "number" });
  readonly #first = h("input", { type: "checkbox", id: "she-begins" });
  readonly #begin = h("button", { type: "button", class: "primary" }, "New game");
  readonly #give = h("button", { type: "button", disabled: true }, "End game");
  #wins = { she: 0, you: 0, nobody: 0 };
  #counted = true;
  #seed = Math.floor(Math.random() * 1e9);
  /** For tests and pictures: the seed of the next game. */
  set seed(seed: number) {
    this.#seed = seed;
  }

  constructor() {
    this.element = h("section", { class: "stack", "aria-label": "Game" },
      h("div", { class: "row" }, h("h3", {}, "Tic-tac-toe"), h("span", { class: "spread" }), this.#score),
      h("div", { class: "board", role: "group", "aria-label": "Board" }, ...this.#cells),
      this.#status,
      h("label", { class: "field", for: "forget" }, h("span", {}, "She moves without looking ", this.#forgetText), this.#forget),
      h("div", { class: "row" }, h("label", { class: "check" }, this.#first, "She begins"), h("span", { class: "spread" }), this.#give, this.#begin));
    const showForget = () => {
      const value = `${this.#forget.value} %`;
      this.#forgetText.textContent = value;
      this.#forget.setAttribute("aria-valuetext", value);
    };
    this.#forget.addEventListener("input", showForget);
    showForget();
    this.#begin.addEventListener("click", () => {
      this.#counted = false;
      this.onbegin({ forgetful: Number(this.#forget.value) / 100, seed: this.#seed++, she_begins: this.#first.checked });
    });
    this.#give.addEventListener("click", () => this.onend());
    this.show(null);
  }

  /** Shows how the game stands. */
  show(game: GameState | null): void {
    const board = game?.board ?? Array.from({ length: 9 }, () => "free" as const);
    this.#cells.forEach((cell, square) => {
      const held = board[square]!;
      const label = `Square ${square + 1}, ${CELLS[held]}`;
      if (cell.getAttribute("aria-label") === label && cell.disabled === !(game?.yourTurn && held === "free")) return;
      cell.textContent = MARKS[held];
      cell.dataset["mark"] = held;
      cell.disabled = !(game?.yourTurn && held === "free");
      cell.setAttribute("aria-label", label);
    });
    this.#give.disabled = !game;
    const turn = game?.yourTurn ? " Your move." : "";
    const said = !game ? "A game of tic-tac-toe against her." : game.end ? ENDS[game.end] + (game.mood ? ` She ${SAYS[game.mood]}.` : "") : game.mood ? `She ${SAYS[game.mood]}.${turn}` : "";
    if (this.#status.textContent !== said) this.#status.textContent = said;
    this.#status.dataset["mood"] = game?.mood ?? "";
    this.#status.dataset["end"] = game?.end ?? "";
    if (game?.end && !this.#counted) {
      this.#counted = true;
      this.#wins[game.end] += 1;
      this.#score.textContent = `you ${this.#wins.you}, she ${this.#wins.she}, nobody ${this.#wins.nobody}`;
    }
  }
}
