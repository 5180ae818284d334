// A script and what is wrong in it: line numbers beside the text, the wrong line marked, the reason below.

import { h } from "../lib/dom";

export interface Wrong {
  readonly line?: number;
  readonly problem?: string;
}

const PAUSE_MS = 250;

export class ScriptEditor {
  readonly element: HTMLElement;
  /** What is wrong with a text; nothing where it is sound. */
  oncheck: (text: string) => Promise<Wrong> = async () => ({});
  onrun: (text: string) => void = () => {};
  readonly #text = h("textarea", { id: "script", spellcheck: "false", rows: 7, "aria-describedby": "script-problem", wrap: "off" });
  readonly #gutter = h("div", { class: "gutter", "aria-hidden": "true" });
  readonly #problem = h("p", { id: "script-problem", class: "problem", role: "status" });
  readonly #run = h("button", { type: "button", class: "primary", title: "Plays it after what she does now (Ctrl and Enter)" }, "Play script");
  #wrong: number | null = null;
  #turn = 0;
  #waiting: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.element = h("section", { class: "stack", "aria-label": "Script" },
      h("div", { class: "row" }, h("label", { for: "script" }, h("h3", {}, "Script")), h("span", { class: "spread" }), this.#run),
      h("div", { class: "editor" }, this.#gutter, this.#text),
      this.#problem);
    this.#text.addEventListener("input", () => this.#changed());
    this.#text.addEventListener("scroll", () => { this.#gutter.scrollTop = this.#text.scrollTop; });
    this.#text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.#run.click();
    });
    this.#run.addEventListener("click", () => void this.#play());
    this.#number();
  }

  get value(): string {
    return this.#text.value;
  }

  set value(text: string) {
    this.#text.value = text;
    this.#changed();
  }

  #changed(): void {
    this.#number();
    clearTimeout(this.#waiting);
    this.#waiting = setTimeout(() => void this.#check().catch(() => {}), PAUSE_MS);
  }

  async #check(): Promise<boolean> {
    const turn = ++this.#turn;
    const wrong = await this.oncheck(this.#text.value);
    if (turn !== this.#turn) return false;
    this.#wrong = wrong.line ?? null;
    this.#problem.textContent = wrong.problem ? `Line ${wrong.line}: ${wrong.problem}` : "";
    this.#text.setAttribute("aria-invalid", String(wrong.problem !== undefined));
    this.#number();
    return wrong.problem === undefined;
  }

  async #play(): Promise<void> {
    if (await this.#check().catch(() => false)) this.onrun(this.#text.value);
  }

  #number(): void {
    const lines = this.#text.value.split("\n").length;
    this.#gutter.replaceChildren(...Array.from({ length: lines }, (_, line) => h("span", { class: line + 1 === this.#wrong ? "wrong" : "" }, line + 1)));
    this.#gutter.scrollTop = this.#text.scrollTop;
  }
}
