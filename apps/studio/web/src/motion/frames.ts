// The frames of a character that acts: asked for by a number of steps, answered with the particle, the game and the
// vertices. `apps/studio/src/motion.rs` is the other end.

export const FRAME = 4;

/** What the server says of a file of motion. */
export interface MotionFacts {
  readonly rig: string;
  readonly rate: number;
  readonly labels: readonly LabelFacts[];
  readonly bridges: readonly BridgeFacts[];
  readonly doing: readonly string[];
}

export interface LabelFacts {
  readonly label: string;
  readonly dimensions: number;
  readonly radius: number;
  /** Three coordinates per training frame. */
  readonly points: readonly number[];
  readonly clips: readonly { readonly name: string; readonly first: number; readonly frames: number }[];
}

export interface BridgeFacts {
  readonly from: number;
  readonly to: number;
  readonly millimetres: number;
  readonly from_point: readonly number[];
  readonly to_point: readonly number[];
}

export interface Cloud {
  readonly label: string;
  readonly points: readonly number[];
  readonly sure: readonly number[];
  readonly step: readonly number[];
}

/** Situations of a game, in the order of the server's numbers. */
export const MOODS = ["greets", "waits", "tires", "ponders", "intimidates", "objects", "marvels", "loses", "wins", "shrugs"] as const;
export type Mood = (typeof MOODS)[number];

export type Cell = "free" | "hers" | "yours";
export type End = "she" | "you" | "nobody";

export interface GameState {
  readonly mood: Mood | null;
  readonly board: readonly Cell[];
  readonly yourTurn: boolean;
  readonly end: End | null;
}

/** A frame, answered. */
export interface Frame {
  readonly number: number;
  readonly label: number;
  readonly doing: number;
  readonly busy: boolean;
  readonly game: GameState | null;
  readonly position: Float32Array;
  readonly path: Float32Array;
  readonly radius: number;
  /** From the path, in radii. */
  readonly distance: number;
  readonly density: number;
  readonly corners: Float32Array;
  readonly vertices: Float32Array;
}

export function frameMessage(number: number, steps: number): ArrayBuffer {
  return new Uint32Array([FRAME, number, steps]).buffer;
}

const CELLS: readonly Cell[] = ["free", "hers", "yours"];

export function readFrame(buffer: ArrayBuffer): Frame {
  const [, number = 0, label = 0, doing = 0, mood = 0, cells = 0, flags = 0, corners = 0, vertices = 0] = new Uint32Array(buffer, 0, 9);
  let at = 36;
  const take = (count: number) => {
    const array = new Float32Array(buffer, at, count);
    at += count * 4;
    return array;
  };
  const [position, path] = [take(3), take(3)];
  const [radius = 0, distance = 0, density = 0] = take(3);
  const end: End | null = flags & 8 ? "she" : flags & 16 ? "you" : flags & 32 ? "nobody" : null;
  const game: GameState | null = flags & 2 ? {
    mood: mood > 0 ? MOODS[mood - 1]! : null,
    board: Array.from({ length: 9 }, (_, square) => CELLS[(cells >> (2 * square)) & 3]!),
    yourTurn: (flags & 4) !== 0,
    end,
  } : null;
  return { number, label, doing, busy: (flags & 1) !== 0, game, position, path, radius, distance, density, corners: take(corners * 3), vertices: take(vertices * 3) };
}
