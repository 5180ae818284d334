// Binary messages of the server (`apps/studio/src/packet.rs`): little-endian, four bytes per number.

export const POSE = 1;
export const FRAME = 2;

/** Views of a pose, as bits. */
export const ORIGINAL = 1;
export const TWIN = 2;
export const SKINNING = 4;
export const BONES = 8;

/** Reads a packet with a header, array after array. */
export class PacketReader<H> {
  readonly header: H;
  readonly #buffer: ArrayBuffer;
  #at: number;

  constructor(buffer: ArrayBuffer) {
    const length = new DataView(buffer).getUint32(0, true);
    this.header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as H;
    this.#buffer = buffer;
    this.#at = 4 + length;
  }

  floats(count: number): Float32Array<ArrayBuffer> {
    return new Float32Array(this.#buffer, this.#take(count * 4), count);
  }

  numbers(count: number): Uint32Array<ArrayBuffer> {
    return new Uint32Array(this.#buffer, this.#take(count * 4), count);
  }

  bytes(count: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#buffer, this.#take(count), count);
  }

  #take(bytes: number): number {
    const at = this.#at;
    this.#at += Math.ceil(bytes / 4) * 4;
    return at;
  }
}

/** Asks for a pose. */
export function poseMessage(number: number, views: number, controls: Float32Array): ArrayBuffer {
  const buffer = new ArrayBuffer(12 + controls.length * 4);
  new Uint32Array(buffer, 0, 3).set([POSE, number, views]);
  new Float32Array(buffer, 12).set(controls);
  return buffer;
}

/** Asks for a frame of the take, as these weights make it. */
export function frameMessage(number: number, frame: number, weights: ArrayLike<number>): ArrayBuffer {
  const buffer = new ArrayBuffer(12 + weights.length * 4);
  new Uint32Array(buffer, 0, 3).set([FRAME, number, frame]);
  new Float32Array(buffer, 12).set(weights);
  return buffer;
}

/** A pose, answered. */
export interface PoseAnswer {
  readonly number: number;
  readonly views: number;
  readonly originalMs: number;
  readonly twinMs: number;
  readonly skinningMs: number;
  readonly original: Float32Array | null;
  readonly twin: Float32Array | null;
  readonly skinning: Float32Array | null;
  /** Twelve numbers per bone. */
  readonly bones: Float32Array | null;
}

export function readPose(buffer: ArrayBuffer): PoseAnswer {
  const [, number = 0, views = 0, vertices = 0, boneCount = 0] = new Uint32Array(buffer, 0, 5);
  const [originalMs = 0, twinMs = 0, skinningMs = 0] = new Float32Array(buffer, 20, 3);
  let at = 32;
  const take = (bit: number, count: number) => {
    if ((views & bit) === 0) return null;
    const array = new Float32Array(buffer, at, count);
    at += count * 4;
    return array;
  };
  const original = take(ORIGINAL, vertices * 3);
  const twin = take(TWIN, vertices * 3);
  const skinning = take(SKINNING, vertices * 3);
  const bones = take(BONES, boneCount * 12);
  return { number, views, originalMs, twinMs, skinningMs, original, twin, skinning, bones };
}

/** A frame of the take: as it was given, and as weights make it. */
export interface FrameAnswer {
  readonly number: number;
  readonly frame: number;
  readonly target: Float32Array;
  readonly fit: Float32Array;
}

export function readFrame(buffer: ArrayBuffer): FrameAnswer {
  const [, number = 0, vertices = 0, frame = 0] = new Uint32Array(buffer, 0, 4);
  const target = new Float32Array(buffer, 16, vertices * 3);
  const fit = new Float32Array(buffer, 16 + vertices * 12, vertices * 3);
  return { number, frame, target, fit };
}
