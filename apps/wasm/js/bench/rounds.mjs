// What is measured, in Node.js and in a browser alike: the vertices of poses against those that the run time gave
// natively, and ms per pose, round by round.

/** Reads a file that `apps/wasm/examples/native.rs` wrote. */
export function parsePoses(buffer) {
  const [poses, controls, bones, vertices] = new Uint32Array(buffer, 0, 4);
  const numbers = new Float32Array(buffer, 16);
  let at = 0;
  const take = (count, size) =>
    Array.from({ length: count }, () => numbers.subarray(at, (at += size)));
  return {
    controls: take(poses, controls),
    bones: take(poses, 16 * bones),
    vertices: take(poses, 3 * vertices),
    poses: Array.from({ length: poses }, (_, pose) => pose),
    byBones: bones > 0,
  };
}

export const poseOf = (data, pose) =>
  data.byBones ? { bones: data.bones[pose], controls: data.controls[pose] } : { controls: data.controls[pose] };

/** The largest distance between vertices over all poses, mm. */
export function largestDifference(twin, data) {
  const out = new Float32Array(3 * twin.vertexCount);
  let most = 0;
  for (const pose of data.poses) {
    twin.pose(poseOf(data, pose), out);
    const want = data.vertices[pose];
    for (let first = 0; first < out.length; first += 3) {
      const apart = Math.hypot(out[first] - want[first], out[first + 1] - want[first + 1], out[first + 2] - want[first + 2]);
      // A NaN is no small difference.
      if (!(apart <= most)) most = apart;
    }
  }
  return 10 * most;
}

/** A run lasts about so long, ms: long for the coarse clocks of browsers, short between two interruptions. */
const RUN = 2;

/** ms per pose of the best run in so many seconds: what other programs do to the machine is left out. */
export function timeRound(twin, data, seconds = 0.15) {
  const out = new Float32Array(3 * twin.vertexCount);
  let [best, pose, count] = [Infinity, 0, 1];
  const start = performance.now();
  for (let runs = 0; runs < 3 || performance.now() - start < 1000 * seconds; runs++) {
    const begin = performance.now();
    for (let done = 0; done < count; done++) twin.pose(poseOf(data, pose++ % data.poses.length), out);
    const took = performance.now() - begin;
    if (took < RUN) count *= 2;
    else best = Math.min(best, took / count);
  }
  return best;
}
