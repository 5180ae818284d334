// Turns controls into vertices: the original and its skinning on the server, the twin in the browser. The newest pose
// counts; at most two are on their way, so that a slow rig is never asked faster than it answers.

import { BONES, ORIGINAL, TWIN, poseMessage, type PoseAnswer } from "../lib/packet";
import type { Server } from "../lib/server";
import type { BrowserTwin } from "../lib/twin";

/** A pose, evaluated: all of it belongs to the same controls. */
export interface Posed {
  readonly original: Float32Array | null;
  readonly twin: Float32Array | null;
  readonly skinning: Float32Array | null;
  /** Twelve numbers per bone of the rig, where they were asked for. */
  readonly bones: Float32Array | null;
  readonly originalMs: number;
  readonly twinMs: number;
  readonly skinningMs: number;
}

const UNDER_WAY = 2;
/** An answer that takes longer was lost: with a connection, or in a server that was started anew. */
const PATIENCE_MS = 4000;

export class Poser {
  onposed: (posed: Posed) => void = () => {};
  onproblem: (problem: string) => void = () => {};
  /** Which of ORIGINAL, TWIN and SKINNING are shown. */
  views = ORIGINAL;
  /** Set where the twin runs in the browser; on the server otherwise. */
  twin: BrowserTwin | null = null;
  #twinOut = new Float32Array(0);
  #waiting: Float32Array | null = null;
  #underWay = new Map<number, { controls: Float32Array; since: number }>();
  #next = 1;

  constructor(readonly server: Server) {
    server.onpose = (answer) => this.#hear(answer);
    server.onproblem = (problem, number) => {
      if (number === undefined || !this.#underWay.delete(number)) return;
      this.onproblem(problem);
      this.#send();
    };
  }

  /** Forgets what is on its way: it belongs to another rig. */
  reset(vertices: number): void {
    this.#underWay.clear();
    this.#waiting = null;
    this.#twinOut = new Float32Array(vertices * 3);
  }

  pose(controls: Float32Array): void {
    this.#waiting = controls.slice();
    this.#send();
  }

  #send(): void {
    const now = performance.now();
    for (const [number, { since }] of this.#underWay) if (now - since > PATIENCE_MS) this.#underWay.delete(number);
    const controls = this.#waiting;
    if (!controls || this.#underWay.size >= UNDER_WAY) return;
    const views = this.#wanted();
    if (views === 0) {
      this.#waiting = null;
      this.#give(controls, null);
      return;
    }
    const number = this.#next++ >>> 0;
    if (!this.server.send(poseMessage(number, views, controls))) return;
    this.#waiting = null;
    this.#underWay.set(number, { controls, since: now });
  }

  /** What the server has to evaluate. */
  #wanted(): number {
    let views = this.views;
    if (this.twin && views & TWIN) {
      views &= ~TWIN;
      if (this.twin.wantsBones) views |= BONES;
    }
    return views;
  }

  #hear(answer: PoseAnswer): void {
    const sent = this.#underWay.get(answer.number);
    // Answers come in order; what was asked before is not awaited any more.
    for (const number of this.#underWay.keys()) if (number <= answer.number) this.#underWay.delete(number);
    this.#send();
    if (sent) this.#give(sent.controls, answer);
  }

  #give(controls: Float32Array, answer: PoseAnswer | null): void {
    let twin = answer?.twin ?? null;
    let twinMs = answer?.twinMs ?? 0;
    if (this.twin && this.views & TWIN && (answer?.bones || !this.twin.wantsBones)) {
      try {
        twinMs = this.twin.pose(controls, answer?.bones ?? null, this.#twinOut);
        twin = this.#twinOut;
      } catch (error) {
        this.onproblem(error instanceof Error ? error.message : String(error));
      }
    }
    this.onposed({
      original: answer?.original ?? null, twin, skinning: answer?.skinning ?? null, bones: answer?.bones ?? null,
      originalMs: answer?.originalMs ?? 0, twinMs, skinningMs: answer?.skinningMs ?? 0,
    });
  }
}
