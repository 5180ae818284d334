// Keys on the timeline: what was posed by hand at some moments, as offsets from the clip below, so that a clip can be corrected
// as well as made from nothing. Between keys a curve goes through them that never overshoots.

import type { Clip } from "../lib/rig";

export interface Key {
  readonly time: number;
  /** What is added to the clip's controls. */
  readonly offsets: Float32Array;
}

/** Keys nearer than this are one, seconds. */
const SAME = 1e-3;

export class Keys {
  #list: readonly Key[] = [];

  get list(): readonly Key[] {
    return this.#list;
  }

  /** For undo: lists are never changed, only replaced. */
  set list(list: readonly Key[]) {
    this.#list = list;
  }

  /** Sets a key, in place of one at the same moment. */
  set(time: number, offsets: Float32Array): void {
    const others = this.#list.filter((key) => Math.abs(key.time - time) >= SAME);
    this.#list = [...others, { time, offsets }].sort((a, b) => a.time - b.time);
  }

  at(time: number): Key | undefined {
    return this.#list.find((key) => Math.abs(key.time - time) < SAME);
  }

  remove(key: Key): void {
    this.#list = this.#list.filter((other) => other !== key);
  }

  /** Adds what the keys say of a moment. */
  add(time: number, out: Float32Array): void {
    const keys = this.#list;
    if (keys.length === 0) return;
    let after = keys.findIndex((key) => key.time > time);
    if (after < 0) after = keys.length;
    if (after === 0 || after === keys.length) {
      const { offsets } = keys[Math.min(after, keys.length - 1)]!;
      offsets.forEach((offset, place) => { out[place]! += offset; });
      return;
    }
    const [a, b] = [keys[after - 1]!, keys[after]!];
    const span = b.time - a.time, x = (time - a.time) / span;
    const square = x * x, cube = square * x;
    const [toA, toB, slopeA, slopeB] = [2 * cube - 3 * square + 1, 3 * square - 2 * cube, cube - 2 * square + x, cube - square];
    const before = keys[after - 2], next = keys[after + 1];
    for (let place = 0; place < out.length; place++) {
      const p = a.offsets[place]!, q = b.offsets[place]!;
      if (p === 0 && q === 0) continue;
      const own = (q - p) / span;
      const left = before ? harmonic((p - before.offsets[place]!) / (a.time - before.time), own) : 0;
      const right = next ? harmonic(own, (next.offsets[place]! - q) / (next.time - b.time)) : 0;
      out[place]! += toA * p + toB * q + span * (slopeA * left + slopeB * right);
    }
  }
}

/** The slope at a key between two others: level at a peak, and never so steep that the curve overshoots. */
function harmonic(a: number, b: number): number {
  return a * b <= 0 ? 0 : (2 * a * b) / (a + b);
}

/** A clip in which nothing happens: what keys are set on where no other plays. */
export function stillClip(defaults: Float32Array, seconds: number, rate = 30): Clip {
  const frames = Math.round(seconds * rate) + 1;
  const values = new Float32Array(frames * defaults.length);
  for (let frame = 0; frame < frames; frame++) values.set(defaults, frame * defaults.length);
  return { name: "take", rate, frames, controls: defaults.length, notes: [], values, duration: seconds };
}

/** A table of controls over time, as the clips of files are read. */
export function clipTable(names: readonly string[], clip: Clip, sample: (seconds: number, out: Float32Array) => void): string {
  const lines = [`time,${names.join(",")}`];
  const row = new Float32Array(names.length);
  for (let frame = 0; frame < clip.frames; frame++) {
    const time = frame / clip.rate;
    sample(time, row);
    lines.push(`${time.toFixed(6)},${Array.from(row, (value) => String(Math.fround(value))).join(",")}`);
  }
  return `${lines.join("\n")}\n`;
}
