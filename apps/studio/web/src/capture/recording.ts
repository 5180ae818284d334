// A take while it is recorded: poses with the moments at which they came, and the table that becomes of them.

/** Frames per second of a table. */
export const RATE = 30;

export class Recording {
  readonly #times: number[] = [];
  readonly #poses: Float32Array[] = [];

  get frames(): number {
    return this.#poses.length;
  }

  /** From the first pose to the last, s. */
  get seconds(): number {
    return this.#times.length > 1 ? this.#times[this.#times.length - 1]! - this.#times[0]! : 0;
  }

  /** A pose at a moment, s; moments may only go on. */
  add(time: number, controls: Float32Array): void {
    const last = this.#times[this.#times.length - 1];
    if (last !== undefined && time <= last) return;
    this.#times.push(time);
    this.#poses.push(controls.slice());
  }

  /** The controls between two poses, `seconds` after the first. */
  at(seconds: number): Float32Array {
    const time = this.#times[0]! + seconds;
    let next = this.#times.findIndex((other) => other >= time);
    if (next < 0) next = this.#times.length - 1;
    const before = Math.max(next - 1, 0);
    const span = this.#times[next]! - this.#times[before]!;
    const part = span > 0 ? Math.min(Math.max((time - this.#times[before]!) / span, 0), 1) : 1;
    const [a, b] = [this.#poses[before]!, this.#poses[next]!];
    return a.map((value, control) => value + part * (b[control]! - value));
  }

  /** The table that `--clip` and engines read: a moment and all controls per row. */
  table(names: readonly string[]): string {
    const rows = Math.floor(this.seconds * RATE) + 1;
    const lines = [`time,${names.join(",")}`];
    for (let row = 0; row < rows; row++) {
      const values = Array.from(this.at(row / RATE), (value) => String(Math.fround(value)));
      lines.push(`${(row / RATE).toFixed(6)},${values.join(",")}`);
    }
    return `${lines.join("\n")}\n`;
  }
}
