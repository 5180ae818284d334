// Looks at a face: MediaPipe in the page, with the landmarker that the user gave. Frames are drawn small, mirrored where that is
// asked for, and never leave the page.

import type { FaceLandmarker } from "@mediapipe/tasks-vision";
import loader from "@mediapipe/tasks-vision/vision_wasm_internal.js?url";
import binary from "@mediapipe/tasks-vision/vision_wasm_internal.wasm?url";
import type { SeenFace } from "understudy-twin";

/** Wider frames are made narrower: a face is looked at in 256 pixels. */
const WIDEST = 640;

export class Watcher {
  /** The frame that was looked at last. */
  readonly canvas = document.createElement("canvas");
  readonly #context = this.canvas.getContext("2d", { willReadFrequently: true })!;
  readonly #landmarker: FaceLandmarker;
  #last = 0;

  private constructor(landmarker: FaceLandmarker) {
    this.#landmarker = landmarker;
  }

  static async load(task: ArrayBuffer): Promise<Watcher> {
    // Ten megabytes that no other tab needs.
    const { FaceLandmarker } = await import("@mediapipe/tasks-vision");
    return new Watcher(await FaceLandmarker.createFromOptions({ wasmLoaderPath: loader, wasmBinaryPath: binary }, {
      baseOptions: { modelAssetBuffer: new Uint8Array(task), delegate: "CPU" },
      runningMode: "VIDEO", numFaces: 1, outputFaceBlendshapes: true,
    }));
  }

  /** The face in a frame of a video; `null` where there is none. */
  look(video: HTMLVideoElement, mirror: boolean): SeenFace | null {
    const { videoWidth, videoHeight } = video;
    if (videoWidth === 0 || videoHeight === 0) return null;
    const scale = Math.min(1, WIDEST / videoWidth);
    const [width, height] = [Math.round(videoWidth * scale), Math.round(videoHeight * scale)];
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    this.#context.setTransform(mirror ? -1 : 1, 0, 0, 1, mirror ? width : 0, 0);
    this.#context.drawImage(video, 0, 0, width, height);
    this.#context.setTransform(1, 0, 0, 1, 0, 0);
    // Its clock may only go on.
    this.#last = Math.max(this.#last + 1, Math.round(performance.now()));
    const { faceLandmarks, faceBlendshapes } = this.#landmarker.detectForVideo(this.canvas, this.#last);
    const points = faceLandmarks[0];
    if (!points) return null;
    const scores = Object.fromEntries((faceBlendshapes[0]?.categories ?? []).map(({ categoryName, score }) => [categoryName, score]));
    this.#draw(points);
    return { points, width, height, scores };
  }

  #draw(points: readonly { x: number; y: number }[]): void {
    this.#context.fillStyle = "#6effa0";
    for (const { x, y } of points) this.#context.fillRect(x * this.canvas.width - 0.5, y * this.canvas.height - 0.5, 1.5, 1.5);
  }

  close(): void {
    this.#landmarker.close();
  }
}
