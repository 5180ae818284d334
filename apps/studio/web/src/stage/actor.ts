// One character on the stage: a mesh whose vertices are given per frame.

import * as THREE from "three";
import type { RigScene } from "../lib/rig";
import { characterMaterial, clayOf, leastOpen, shineOf, type Look } from "./material";
import { distancesMm, vertexNormals } from "./normals";

export class Actor {
  readonly mesh: THREE.Mesh<THREE.BufferGeometry, THREE.MeshStandardMaterial>;
  readonly look: Look;
  readonly #position: THREE.BufferAttribute;
  readonly #normal: THREE.BufferAttribute;
  readonly #error: THREE.BufferAttribute;
  readonly #indices: Uint32Array;

  constructor(rig: RigScene, ramp: THREE.IUniform<THREE.Texture>, scale: THREE.IUniform<number>) {
    const geometry = new THREE.BufferGeometry();
    this.#indices = rig.indices;
    const moving = (array: Float32Array, size: number) => new THREE.BufferAttribute(array, size).setUsage(THREE.DynamicDrawUsage);
    this.#position = moving(rig.positions.slice(), 3);
    this.#normal = moving(new Float32Array(rig.vertices * 3), 3);
    this.#error = moving(new Float32Array(rig.vertices), 1);
    geometry.setAttribute("position", this.#position);
    geometry.setAttribute("normal", this.#normal);
    geometry.setAttribute("error", this.#error);
    const least = rig.segments.map(leastOpen);
    const openness = rig.openness.map((open, vertex) => Math.max(open, least[rig.segmentOf[vertex]!] ?? 0));
    geometry.setAttribute("openness", new THREE.BufferAttribute(openness, 1, true));
    const shines = rig.segments.map(shineOf);
    const shine = Uint8Array.from(rig.segmentOf, (segment) => 255 * (shines[segment] ?? 0));
    geometry.setAttribute("shine", new THREE.BufferAttribute(shine, 1, true));
    geometry.setAttribute("color", new THREE.BufferAttribute(linearColours(rig), 3));
    geometry.setIndex(new THREE.BufferAttribute(rig.indices, 1));
    this.look = { heat: { value: 0 }, scale, ramp };
    this.mesh = new THREE.Mesh(geometry, characterMaterial(this.look));
    this.mesh.castShadow = this.mesh.receiveShadow = true;
    // Bounds change with every pose; the whole character is on the stage anyway.
    this.mesh.frustumCulled = false;
    this.move(rig.positions);
  }

  get vertices(): Float32Array {
    return this.#position.array as Float32Array;
  }

  /** The unit normal of a vertex. */
  normal(vertex: number): THREE.Vector3 {
    return new THREE.Vector3().fromBufferAttribute(this.#normal, vertex);
  }

  /** Puts the vertices, cm. */
  move(vertices: Float32Array): void {
    this.vertices.set(vertices);
    vertexNormals(this.vertices, this.#indices, this.#normal.array as Float32Array);
    this.#position.needsUpdate = this.#normal.needsUpdate = true;
  }

  /** Colours by the distance from other vertices; gives mean and largest, mm. */
  compare(reference: Float32Array): { mean: number; max: number } {
    const figures = distancesMm(this.vertices, reference, this.#error.array as Float32Array);
    this.#error.needsUpdate = true;
    return figures;
  }

  /** Colours by a value per vertex, in the unit of the scale. */
  paint(values: ArrayLike<number>): void {
    (this.#error.array as Float32Array).set(values);
    this.#error.needsUpdate = true;
  }

  set heat(on: boolean) {
    this.look.heat.value = on ? 1 : 0;
  }

  dispose(): void {
    this.mesh.geometry.dispose();
    this.mesh.material.dispose();
    this.mesh.removeFromParent();
  }
}

function linearColours(rig: RigScene): Float32Array {
  const colours = new Float32Array(rig.vertices * 3);
  const linear = Float32Array.from({ length: 256 }, (_, byte) => {
    const value = byte / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  for (let vertex = 0; vertex < rig.vertices; vertex++) {
    const clay = rig.coloured ? null : clayOf(rig.segmentOf[vertex]!);
    for (let axis = 0; axis < 3; axis++) {
      colours[vertex * 3 + axis] = linear[clay ? clay[axis]! : rig.colours[vertex * 3 + axis]!]!;
    }
  }
  return colours;
}
