// Vertex normals of a mesh that moves: sums of the triangles' area vectors, made unit. Called per frame, so that it
// allocates nothing.

/** `normals` [3V] of `positions` [3V]; `indices` has three corners per triangle. */
export function vertexNormals(positions: Float32Array, indices: Uint32Array, normals: Float32Array): void {
  normals.fill(0);
  for (let at = 0; at < indices.length; at += 3) {
    const a = indices[at]! * 3, b = indices[at + 1]! * 3, c = indices[at + 2]! * 3;
    const ax = positions[a]!, ay = positions[a + 1]!, az = positions[a + 2]!;
    const ux = positions[b]! - ax, uy = positions[b + 1]! - ay, uz = positions[b + 2]! - az;
    const vx = positions[c]! - ax, vy = positions[c + 1]! - ay, vz = positions[c + 2]! - az;
    const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
    normals[a]! += x; normals[a + 1]! += y; normals[a + 2]! += z;
    normals[b]! += x; normals[b + 1]! += y; normals[b + 2]! += z;
    normals[c]! += x; normals[c + 1]! += y; normals[c + 2]! += z;
  }
  for (let at = 0; at < normals.length; at += 3) {
    const x = normals[at]!, y = normals[at + 1]!, z = normals[at + 2]!;
    const scale = 1 / (Math.sqrt(x * x + y * y + z * z) || 1);
    normals[at] = x * scale; normals[at + 1] = y * scale; normals[at + 2] = z * scale;
  }
}

/** Distances between two sets of vertices, mm of centimetres; gives mean and largest. */
export function distancesMm(a: Float32Array, b: Float32Array, out: Float32Array): { mean: number; max: number } {
  let sum = 0, max = 0;
  for (let vertex = 0, at = 0; vertex < out.length; vertex++, at += 3) {
    const x = a[at]! - b[at]!, y = a[at + 1]! - b[at + 1]!, z = a[at + 2]! - b[at + 2]!;
    const distance = 10 * Math.sqrt(x * x + y * y + z * z);
    out[vertex] = distance;
    sum += distance;
    if (distance > max) max = distance;
  }
  return { mean: sum / Math.max(out.length, 1), max };
}
