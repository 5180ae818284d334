// A rig as the server describes it: mesh, colours, controls, clips.

import { PacketReader } from "./packet";

export interface Control {
  readonly name: string;
  readonly low: number;
  readonly high: number;
  readonly default: number;
  readonly bone: string | null;
  readonly channel: string | null;
}

export interface ClipEntry {
  readonly name: string;
  readonly duration: number;
  readonly rate: number;
  readonly test: boolean;
}

interface RigHeader {
  readonly name: string;
  readonly vertices: number;
  readonly triangles: number;
  readonly bones: number;
  readonly boneNames: readonly string[];
  readonly skinning: boolean;
  readonly shapes: number;
  readonly controls: readonly Control[];
  readonly clips: readonly ClipEntry[];
  readonly segments: readonly string[];
  readonly coloured: boolean;
  readonly topology: string;
  readonly notes: readonly string[];
}

export interface RigScene extends RigHeader {
  readonly positions: Float32Array<ArrayBuffer>;
  readonly indices: Uint32Array<ArrayBuffer>;
  readonly segmentOf: Uint32Array<ArrayBuffer>;
  /** sRGB bytes. */
  readonly colours: Uint8Array<ArrayBuffer>;
  /** How open each vertex is to the light, 0 to 255. */
  readonly openness: Uint8Array<ArrayBuffer>;
  readonly defaults: Float32Array<ArrayBuffer>;
}

export function readRig(buffer: ArrayBuffer): RigScene {
  const packet = new PacketReader<RigHeader>(buffer);
  const { vertices, triangles, controls } = packet.header;
  const positions = packet.floats(vertices * 3);
  const indices = packet.numbers(triangles * 3);
  const segmentOf = packet.numbers(vertices);
  const colours = packet.bytes(vertices * 3);
  const openness = packet.bytes(vertices);
  const defaults = Float32Array.from(controls, (control) => control.default);
  return { ...packet.header, positions, indices, segmentOf, colours, openness, defaults };
}

/** A clip: all controls, frame by frame. */
export interface Clip {
  readonly name: string;
  readonly rate: number;
  readonly frames: number;
  readonly controls: number;
  readonly notes: readonly string[];
  readonly values: Float32Array;
  /** Seconds from the first frame to the last. */
  readonly duration: number;
}

export function readClip(buffer: ArrayBuffer): Clip {
  const packet = new PacketReader<Omit<Clip, "values" | "duration">>(buffer);
  const { frames, controls, rate } = packet.header;
  return { ...packet.header, values: packet.floats(frames * controls), duration: Math.max(frames - 1, 0) / rate };
}

/** The controls at a time, between two frames. */
export function sampleClip(clip: Clip, seconds: number, out: Float32Array): void {
  const place = Math.min(Math.max(seconds * clip.rate, 0), clip.frames - 1);
  const first = Math.floor(place);
  const next = Math.min(first + 1, clip.frames - 1);
  const part = place - first;
  const { values, controls } = clip;
  for (let control = 0; control < controls; control++) {
    const a = values[first * controls + control]!;
    out[control] = a + (values[next * controls + control]! - a) * part;
  }
}
