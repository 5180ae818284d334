// A twin as a mesh of three.js: `scene.add(new TwinMesh(twin)); mesh.pose({ controls })`. Vertices and normals are
// written straight into the geometry's buffers.

import { BufferAttribute, BufferGeometry, DynamicDrawUsage, Mesh, MeshStandardMaterial, type Material } from "three";
import type { Pose, Twin } from "./twin.js";

export interface TwinMeshOptions {
  readonly material?: Material | Material[];
  /** Whether normals follow every pose (the default); without them, lighting stays that of the first pose. */
  readonly normals?: boolean;
  /** Texture coordinates, two per vertex. */
  readonly uv?: Float32Array;
}

/** Shows what a twin plays. Lengths are centimetres: scale by 0.01 for a scene in metres. */
export class TwinMesh extends Mesh {
  readonly twin: Twin;
  readonly #normals: boolean;

  constructor(twin: Twin, { material, normals = true, uv }: TwinMeshOptions = {}) {
    const geometry = new BufferGeometry();
    const dynamic = (numbers: Float32Array) => new BufferAttribute(numbers, 3).setUsage(DynamicDrawUsage);
    geometry.setAttribute("position", dynamic(new Float32Array(3 * twin.vertexCount)));
    geometry.setAttribute("normal", dynamic(new Float32Array(3 * twin.vertexCount)));
    if (uv !== undefined) geometry.setAttribute("uv", new BufferAttribute(uv, 2));
    geometry.setIndex(new BufferAttribute(twin.triangles, 1));
    super(geometry, material ?? new MeshStandardMaterial({ color: 0xb8a898, roughness: 0.6 }));
    this.twin = twin;
    this.#normals = normals;
    this.pose(twin.rest);
    if (!normals) twin.normals(geometry.getAttribute("normal").array as Float32Array);
  }

  /** Moves the vertices; they are shown with the next frame. */
  pose(pose: Pose): void {
    const { position, normal } = this.geometry.attributes;
    this.twin.pose(pose, position!.array as Float32Array);
    position!.needsUpdate = true;
    if (this.#normals) {
      this.twin.normals(normal!.array as Float32Array);
      normal!.needsUpdate = true;
    }
    // Culling and picking look at them: they are found anew when they are next asked for.
    this.geometry.boundingSphere = null;
    this.geometry.boundingBox = null;
  }
}
