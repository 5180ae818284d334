// Handles that were placed on a mesh, as the Weights tab keeps them and as a handle file has them (`docs/methods/skinning-weights.md`).

export type Triple = readonly [number, number, number];

export type Handle =
  | { name: string; readonly kind: "point"; readonly vertex: number }
  | { name: string; readonly kind: "bone"; readonly head: Triple; readonly tail: Triple }
  | { name: string; readonly kind: "region"; readonly vertices: Set<number> };

export type HandleKind = Handle["kind"];

const ORDER: readonly HandleKind[] = ["point", "bone", "region"];

/** Placed handles, in the order in which weights have their columns: points, bones, regions. */
export class Handles {
  /** Something was added, named or taken away. */
  onchange: () => void = () => {};
  #list: Handle[] = [];

  get list(): readonly Handle[] {
    return this.#list;
  }

  add(handle: Handle): number {
    this.#list.push(handle);
    this.#list.sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
    this.onchange();
    return this.#list.indexOf(handle);
  }

  remove(index: number): void {
    this.#list.splice(index, 1);
    this.onchange();
  }

  clear(): void {
    this.#list = [];
    this.onchange();
  }

  /** Gives a handle another name, where no other one has it. */
  rename(index: number, name: string): boolean {
    const clean = name.trim();
    if (!clean || this.#list.some((handle, other) => other !== index && handle.name === clean)) return false;
    this.#list[index]!.name = clean;
    this.onchange();
    return true;
  }

  /** A name that is free: `point 3`. */
  free(kind: HandleKind): string {
    for (let number = 1; ; number++) {
      const name = `${kind} ${number}`;
      if (!this.#list.some((handle) => handle.name === name)) return name;
    }
  }

  /** As the server's handle file. */
  file(): Record<string, unknown> {
    const of = (kind: HandleKind) => this.#list.filter((handle) => handle.kind === kind).map((handle) => {
      const { kind: _, ...entry } = handle;
      return "vertices" in entry ? { ...entry, vertices: [...entry.vertices].sort((a, b) => a - b) } : entry;
    });
    return { point: of("point"), bone: of("bone"), region: of("region") };
  }

  /** Where a handle is taken, from the vertices as they lie: a bone at its head. */
  place(index: number, vertices: Float32Array): Triple {
    const handle = this.#list[index]!;
    if (handle.kind === "bone") return handle.head;
    const chosen = handle.kind === "point" ? [handle.vertex] : [...handle.vertices];
    const sum = [0, 0, 0];
    for (const vertex of chosen) for (let axis = 0; axis < 3; axis++) sum[axis]! += vertices[vertex * 3 + axis]!;
    const count = Math.max(chosen.length, 1);
    return [sum[0]! / count, sum[1]! / count, sum[2]! / count];
  }
}

/** Vertices spread over a mesh, each as far as can be from those before it; the first is the highest. */
export function spread(positions: Float32Array, count: number): number[] {
  const vertices = positions.length / 3;
  let next = 0;
  for (let vertex = 1; vertex < vertices; vertex++) if (positions[vertex * 3 + 1]! > positions[next * 3 + 1]!) next = vertex;
  const farness = new Float32Array(vertices).fill(Infinity);
  const chosen: number[] = [];
  while (chosen.length < Math.min(count, vertices)) {
    chosen.push(next);
    let best = 0;
    for (let vertex = 0; vertex < vertices; vertex++) {
      let squared = 0;
      for (let axis = 0; axis < 3; axis++) squared += (positions[vertex * 3 + axis]! - positions[next * 3 + axis]!) ** 2;
      farness[vertex] = Math.min(farness[vertex]!, squared);
      if (farness[vertex]! > farness[best]!) best = vertex;
    }
    next = best;
  }
  return chosen;
}
