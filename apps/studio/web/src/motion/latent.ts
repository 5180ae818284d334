// The latent space of a label in 3-D: training frames along their clips, how sure the model is as a cloud, bridges, and the
// particle with its path. A click on a training frame says which.

import * as THREE from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { h } from "../lib/dom";
import type { BridgeFacts, Cloud, Frame, LabelFacts } from "./frames";

const SERIES = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5"];
/** Pixels around a training frame that count as it. */
const NEAR = 14;
/** Frames of the trail behind the particle. */
const TRAIL = 72;

export class LatentView {
  /** A training frame was clicked: its number. */
  onpick: (frame: number) => void = () => {};
  readonly canvas = h("canvas", { tabindex: 0, "aria-label": "The latent space; drag to turn, wheel to zoom, click a frame to go there" });
  readonly #renderer: THREE.WebGLRenderer;
  readonly #scene = new THREE.Scene();
  readonly #camera = new THREE.PerspectiveCamera(32, 1, 0.05, 60);
  readonly #orbit: OrbitControls;
  readonly #space = new THREE.Group();
  readonly #particle = new THREE.Mesh(new THREE.SphereGeometry(1, 24, 16), new THREE.MeshBasicMaterial());
  readonly #tube = new THREE.Mesh(new THREE.SphereGeometry(1, 24, 16), new THREE.MeshBasicMaterial({ transparent: true, opacity: 0.16, depthWrite: false }));
  readonly #path = new THREE.Line(new THREE.BufferGeometry(), new THREE.LineBasicMaterial());
  readonly #trail = new THREE.Line(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({ transparent: true, opacity: 0.7 }));
  #cloud: THREE.Points | null = null;
  #points: THREE.Vector3[] = [];
  #centre = new THREE.Vector3();
  #scale = 1;
  #trailPoints: THREE.Vector3[] = [];
  #visible = false;
  #dirty = true;

  constructor(parent: HTMLElement) {
    this.#renderer = new THREE.WebGLRenderer({ canvas: this.canvas, antialias: true, alpha: true });
    this.#renderer.setClearColor(0, 0);
    parent.append(this.canvas);
    this.#scene.add(this.#space);
    this.#camera.position.set(1.7, 1.2, 3.1);
    this.#orbit = new OrbitControls(this.#camera, this.canvas);
    this.#orbit.enablePan = false;
    this.#orbit.minDistance = 1.2;
    this.#orbit.maxDistance = 12;
    this.#orbit.addEventListener("change", () => this.redraw());
    this.#path.frustumCulled = this.#trail.frustumCulled = false;
    new ResizeObserver(() => this.redraw()).observe(parent);
    new MutationObserver(() => this.recolour()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    let down: [number, number] | null = null;
    this.canvas.addEventListener("pointerdown", (event) => { down = [event.clientX, event.clientY]; });
    this.canvas.addEventListener("pointerup", (event) => {
      if (down && Math.hypot(event.clientX - down[0], event.clientY - down[1]) < 4) this.#pick(event);
    });
    const tick = () => {
      if (this.#dirty && this.#visible) this.#draw();
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  set visible(visible: boolean) {
    this.#visible = visible;
    this.#dirty = true;
  }

  redraw(): void {
    this.#dirty = true;
  }

  #colour(token: string): THREE.Color {
    return new THREE.Color(getComputedStyle(document.documentElement).getPropertyValue(token).trim());
  }

  #label: LabelFacts | null = null;
  #bridges: readonly BridgeFacts[] = [];
  #place = 0;

  /** Shows a label's space. */
  show(label: LabelFacts, place: number, bridges: readonly BridgeFacts[]): void {
    [this.#label, this.#place, this.#bridges] = [label, place, bridges];
    const { points } = label;
    const box = new THREE.Box3();
    const raw: THREE.Vector3[] = [];
    for (let at = 0; at + 2 < points.length; at += 3) {
      const point = new THREE.Vector3(points[at], points[at + 1], points[at + 2]);
      raw.push(point);
      box.expandByPoint(point);
    }
    box.getCenter(this.#centre);
    this.#scale = 1 / Math.max(box.getSize(new THREE.Vector3()).length() / 2, 1e-6);
    this.#points = raw.map((point) => this.#into(point));
    this.#trailPoints = [];
    this.#drop();
    label.clips.forEach((clip, number) => {
      const frames = this.#points.slice(clip.first, clip.first + clip.frames);
      const colour = this.#colour(SERIES[number % SERIES.length]!);
      const geometry = new THREE.BufferGeometry().setFromPoints(frames);
      this.#space.add(new THREE.Line(geometry, new THREE.LineBasicMaterial({ color: colour, transparent: true, opacity: 0.55 })));
      this.#space.add(new THREE.Points(geometry, new THREE.PointsMaterial({ color: colour, size: 4.5, sizeAttenuation: false })));
    });
    const ends = bridges.flatMap((bridge) => (bridge.from === place ? [bridge.from_point] : bridge.to === place ? [bridge.to_point] : []));
    const marks = ends.map(([x = 0, y = 0, z = 0]) => this.#into(new THREE.Vector3(x, y, z)));
    const material = new THREE.PointsMaterial({ color: this.#colour("--ink-soft"), size: 9, sizeAttenuation: false, transparent: true, opacity: 0.35 });
    this.#space.add(new THREE.Points(new THREE.BufferGeometry().setFromPoints(marks), material));
    this.#space.add(this.#particle, this.#tube, this.#path, this.#trail);
    this.#particle.material.color = this.#colour("--bad");
    this.#tube.material.color = this.#colour("--bad");
    this.#path.material.color = this.#colour("--ink");
    this.#trail.material.color = this.#colour("--bad");
    this.redraw();
  }

  #drop(): void {
    for (const child of [...this.#space.children]) {
      this.#space.remove(child);
      if (child === this.#particle || child === this.#tube || child === this.#path || child === this.#trail) continue;
      const thing = child as THREE.Points<THREE.BufferGeometry, THREE.Material>;
      thing.geometry.dispose();
      thing.material.dispose();
    }
    this.#cloud = null;
  }

  /** Draws everything in the colours of the theme. */
  recolour(): void {
    const cloud = this.#cloudData;
    if (this.#label) this.show(this.#label, this.#place, this.#bridges);
    if (cloud) this.cloud(cloud);
  }

  #cloudData: Cloud | null = null;

  /** How sure the model is: more where it is denser. */
  cloud(cloud: Cloud): void {
    if (cloud.label !== this.#label?.label) return;
    this.#cloudData = cloud;
    if (this.#cloud) this.#space.remove(this.#cloud);
    const places: THREE.Vector3[] = [];
    const colours: number[] = [];
    const tint = this.#colour("--accent");
    // Several motes per place, the more the surer: a cloud, not a lattice.
    let state = 1;
    const random = () => {
      state = (state * 1664525 + 1013904223) >>> 0;
      return state / 2 ** 32 - 0.5;
    };
    cloud.sure.forEach((sure, place) => {
      const motes = Math.round(5 * sure * sure);
      for (let mote = 0; mote < motes; mote++) {
        const [x, y, z] = [0, 1, 2].map((axis) => cloud.points[3 * place + axis]! + random() * cloud.step[axis]!);
        places.push(this.#into(new THREE.Vector3(x, y, z)));
        colours.push(tint.r, tint.g, tint.b, 0.05 + 0.28 * sure ** 3);
      }
    });
    const geometry = new THREE.BufferGeometry().setFromPoints(places);
    geometry.setAttribute("color", new THREE.Float32BufferAttribute(colours, 4));
    const material = new THREE.PointsMaterial({ size: 0.055, vertexColors: true, transparent: true, depthWrite: false });
    this.#cloud = new THREE.Points(geometry, material);
    this.#cloud.renderOrder = -1;
    this.#space.add(this.#cloud);
    this.redraw();
  }

  set cloudShown(on: boolean) {
    if (this.#cloud) this.#cloud.visible = on;
    this.redraw();
  }

  #into(point: THREE.Vector3): THREE.Vector3 {
    return point.clone().sub(this.#centre).multiplyScalar(this.#scale);
  }

  /** Where the particle is, where its path is, and the corners before it. */
  follow(frame: Frame): void {
    const into = (from: Float32Array, at = 0) => this.#into(new THREE.Vector3(from[at], from[at + 1], from[at + 2]));
    const here = into(frame.position);
    this.#particle.position.copy(here);
    this.#particle.scale.setScalar(0.035);
    this.#tube.position.copy(into(frame.path));
    this.#tube.scale.setScalar(Math.max(frame.radius * this.#scale, 1e-4));
    const corners: THREE.Vector3[] = [];
    for (let at = 0; at + 2 < frame.corners.length; at += 3) corners.push(into(frame.corners, at));
    this.#path.visible = corners.length > 1;
    if (corners.length > 1) this.#replace(this.#path, corners);
    this.#trailPoints.push(here);
    if (this.#trailPoints.length > TRAIL) this.#trailPoints.shift();
    if (this.#trailPoints.length > 1) this.#replace(this.#trail, this.#trailPoints);
    this.redraw();
  }

  #replace(line: THREE.Line, points: THREE.Vector3[]): void {
    line.geometry.dispose();
    line.geometry = new THREE.BufferGeometry().setFromPoints(points);
  }

  #pick(event: PointerEvent): void {
    const box = this.canvas.getBoundingClientRect();
    let [least, found] = [NEAR, -1];
    this.#points.forEach((point, frame) => {
      const seen = point.clone().project(this.#camera);
      const x = box.left + ((seen.x + 1) / 2) * box.width, y = box.top + ((1 - seen.y) / 2) * box.height;
      const distance = Math.hypot(x - event.clientX, y - event.clientY);
      if (distance < least) [least, found] = [distance, frame];
    });
    if (found >= 0) this.onpick(found);
  }

  #draw(): void {
    const parent = this.canvas.parentElement;
    if (!parent || parent.clientWidth === 0 || parent.clientHeight === 0) return;
    this.#dirty = false;
    this.#renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
    this.#renderer.setSize(parent.clientWidth, parent.clientHeight, false);
    this.#camera.aspect = parent.clientWidth / parent.clientHeight;
    this.#camera.updateProjectionMatrix();
    this.#renderer.render(this.#scene, this.#camera);
  }
}
