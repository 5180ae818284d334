// Undo: states one after another, and where one stands among them.

const MOST = 200;

export class History<T> {
  /** What can be done changed. */
  onchange: () => void = () => {};
  #states: T[] = [];
  #at = -1;

  /** Forgets everything but this state. */
  restart(state: T): void {
    this.#states = [state];
    this.#at = 0;
    this.onchange();
  }

  /** A gesture ended in this state; what was undone before it is gone. */
  commit(state: T): void {
    this.#states = [...this.#states.slice(Math.max(0, this.#at + 2 - MOST), this.#at + 1), state];
    this.#at = this.#states.length - 1;
    this.onchange();
  }

  /** This is what is seen now, before a gesture: it takes the place of the state that one stands at. */
  amend(state: T): void {
    if (this.#at >= 0) this.#states[this.#at] = state;
  }

  get canUndo(): boolean {
    return this.#at > 0;
  }

  get canRedo(): boolean {
    return this.#at < this.#states.length - 1;
  }

  /** The state before or after this one, where there is one. */
  step(by: -1 | 1): T | undefined {
    const state = this.#states[this.#at + by];
    if (state !== undefined) this.#at += by;
    this.onchange();
    return state;
  }
}
