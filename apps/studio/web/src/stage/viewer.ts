// The stage: one camera, one set of lamps that hang on its heading, and one or more views of actors, side by side or with
// a wipe between two. Draws only when something changed.

import * as THREE from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import type { Actor } from "./actor";
import { characterMaterial, rampTexture } from "./material";

export type Layout = "single" | "beside" | "wipe";

/** Named directions: yaw from the front to the character's left, and pitch, degrees. */
export const VIEWS = {
  front: [0, 4],
  "three-quarter": [32, 6],
  left: [90, 4],
  back: [180, 4],
  right: [-90, 4],
  top: [0, 80],
} as const;
export type ViewName = keyof typeof VIEWS;

/** Number keys for views, the same on every tab that has a stage. */
export const VIEW_KEYS: Readonly<Record<string, ViewName>> = { 1: "front", 2: "three-quarter", 3: "left", 4: "back", 5: "right", 7: "top" };

interface Rectangle {
  x: number;
  width: number;
}

/** A place of the screen, as one of the views sees it. */
export interface Sighting {
  /** Which view, and the place in it from −1 to 1, up and to the right. */
  readonly view: number;
  readonly x: number;
  readonly y: number;
}

export class Viewer {
  readonly canvas: HTMLCanvasElement;
  /** Called after a frame is handed to the graphics card, with the milliseconds that took. */
  ondraw: (milliseconds: number) => void = () => {};
  /** Called where the views may lie elsewhere now: rectangles in CSS pixels, from the left. */
  onlayout: (views: Rectangle[]) => void = () => {};
  readonly #renderer: THREE.WebGLRenderer;
  readonly #scene = new THREE.Scene();
  readonly #camera = new THREE.PerspectiveCamera(28, 1, 1, 5000);
  readonly #orbit: OrbitControls;
  readonly #lamps = new THREE.Group();
  readonly #key: THREE.DirectionalLight;
  readonly #floor: THREE.Mesh<THREE.CircleGeometry, THREE.ShadowMaterial>;
  readonly #sphere = new THREE.Sphere(new THREE.Vector3(), 10);
  readonly #home = new THREE.Box3();
  #actors: Actor[] = [];
  #layout: Layout = "single";
  #wipe = 0.5;
  #dirty = true;
  #visible = true;
  #wasMoved = false;

  constructor(parent: HTMLElement, label: string) {
    this.#renderer = new THREE.WebGLRenderer({ antialias: true, alpha: true, preserveDrawingBuffer: true });
    // To ask for errors of a shader waits until it is compiled; a browser tells of those that fail in any case.
    this.#renderer.debug.checkShaderErrors = false;
    this.canvas = this.#renderer.domElement;
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", label);
    parent.prepend(this.canvas);
    this.#renderer.toneMapping = THREE.NeutralToneMapping;
    this.#renderer.toneMappingExposure = 1.05;
    this.#renderer.shadowMap.enabled = true;
    this.#renderer.shadowMap.type = THREE.PCFShadowMap;
    this.#renderer.setClearColor(0, 0);
    this.#renderer.autoClear = false;

    this.#key = new THREE.DirectionalLight(0xfff6ec, 2.5);
    this.#key.castShadow = true;
    this.#key.shadow.mapSize.set(1024, 1024);
    this.#key.shadow.radius = 5;
    const fill = new THREE.DirectionalLight(0xbcd2ff, 0.55);
    const rim = new THREE.DirectionalLight(0xdfeaff, 1.5);
    this.#key.position.set(-0.55, 0.75, 0.75);
    fill.position.set(0.85, 0.15, 0.55);
    rim.position.set(0.6, 0.55, -0.8);
    this.#lamps.add(this.#key, fill, rim, this.#key.target, fill.target, rim.target);
    const sky = new THREE.HemisphereLight(0xf2f5ff, 0xc4b4a6, 1.75);
    this.#floor = new THREE.Mesh(new THREE.CircleGeometry(1, 48).rotateX(-Math.PI / 2), new THREE.ShadowMaterial({ opacity: 0.22 }));
    this.#floor.receiveShadow = true;
    this.#scene.add(this.#lamps, sky, this.#floor, this.overlay);

    this.#orbit = new OrbitControls(this.#camera, this.canvas);
    this.#orbit.mouseButtons = { LEFT: THREE.MOUSE.ROTATE, MIDDLE: THREE.MOUSE.PAN, RIGHT: THREE.MOUSE.PAN };
    this.#orbit.zoomToCursor = true;
    this.#orbit.rotateSpeed = 0.9;
    this.#orbit.addEventListener("change", () => this.redraw());
    this.#orbit.addEventListener("start", () => { this.#wasMoved = true; });

    new ResizeObserver(() => this.#resize()).observe(parent);
    this.#resize();
    // After the size is known: a new size waits for all that the graphics card has to do.
    this.#warmUp();
    const tick = () => {
      if (this.#dirty && this.#visible) this.#draw();
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  /** What is drawn over the characters, in every view. */
  readonly overlay = new THREE.Group();

  /** Which view a place of the window (CSS pixels) is in, and where. */
  sight(clientX: number, clientY: number, keepView?: number): Sighting {
    const box = this.canvas.getBoundingClientRect();
    const views = this.#rectangles();
    const across = clientX - box.left;
    const inside = this.#layout === "beside" ? views.findIndex(({ x, width }) => across >= x && across < x + width) : 0;
    const view = keepView ?? Math.max(inside, 0);
    const { x, width } = views[view] ?? { x: 0, width: box.width };
    return { view, x: ((across - x) / width) * 2 - 1, y: 1 - ((clientY - box.top) / box.height) * 2 };
  }

  /** Where a point (cm) is seen in a view: CSS pixels of the window. */
  project(point: THREE.Vector3, view = 0): { x: number; y: number } {
    this.#camera.updateMatrixWorld();
    const seen = point.clone().project(this.#camera);
    const box = this.canvas.getBoundingClientRect();
    const { x, width } = this.#rectangles()[view] ?? { x: 0, width: box.width };
    return { x: box.left + x + ((seen.x + 1) / 2) * width, y: box.top + ((1 - seen.y) / 2) * box.height };
  }

  /** The place (cm) that is seen there, as far away as another one; and the direction of the look, of unit length. */
  unproject({ x, y }: Sighting, asFarAs: THREE.Vector3): { place: THREE.Vector3; sight: THREE.Vector3 } {
    this.#camera.updateMatrixWorld();
    const ray = new THREE.Raycaster();
    ray.setFromCamera(new THREE.Vector2(x, y), this.#camera);
    const forward = this.#camera.getWorldDirection(new THREE.Vector3());
    const depth = asFarAs.clone().sub(this.#camera.position).dot(forward);
    const sight = ray.ray.direction.clone();
    return { place: this.#camera.position.clone().addScaledVector(sight, depth / sight.dot(forward)), sight };
  }

  /** Where the look through a place of the window (CSS pixels) meets the character of that view, nearest first. */
  hits(clientX: number, clientY: number): THREE.Intersection[] {
    const { view, x, y } = this.sight(clientX, clientY);
    const actor = this.#actors[view];
    if (!actor) return [];
    this.#camera.updateMatrixWorld();
    const ray = new THREE.Raycaster();
    ray.setFromCamera(new THREE.Vector2(x, y), this.#camera);
    // Vertices move; bounds are looked up only here.
    actor.mesh.geometry.computeBoundingSphere();
    return ray.intersectObject(actor.mesh);
  }

  /** The direction in which a place is looked at. */
  lookAt(place: THREE.Vector3): THREE.Vector3 {
    return place.clone().sub(this.#camera.position).normalize();
  }

  /** Nothing is drawn while nobody looks. */
  set visible(visible: boolean) {
    this.#visible = visible;
    this.redraw();
  }

  redraw(): void {
    this.#dirty = true;
  }

  /** One actor per view, in order. */
  show(actors: Actor[], layout: Layout): void {
    const same = actors.length === this.#actors.length && actors.every((actor, place) => actor === this.#actors[place]);
    if (same && layout === this.#layout) return;
    this.#actors.forEach((actor) => actor.mesh.removeFromParent());
    this.#actors = actors;
    this.#layout = layout;
    actors.forEach((actor) => this.#scene.add(actor.mesh));
    this.#resize();
  }

  set wipe(share: number) {
    this.#wipe = Math.min(Math.max(share, 0), 1);
    this.onlayout(this.#rectangles());
    this.redraw();
  }

  get wipe(): number {
    return this.#wipe;
  }

  /** A new character: its bounds at rest are what `frame` shows. */
  setHome(positions: Float32Array): void {
    this.#resize();
    this.#home.setFromArray(positions as unknown as number[]);
    this.#home.getBoundingSphere(this.#sphere);
    const { radius } = this.#sphere;
    this.#floor.position.set(this.#sphere.center.x, this.#home.min.y, this.#sphere.center.z);
    this.#floor.scale.setScalar(radius * 4);
    const camera = this.#key.shadow.camera;
    camera.left = camera.bottom = -radius * 1.25;
    camera.right = camera.top = radius * 1.25;
    camera.near = radius * 0.5;
    camera.far = radius * 6;
    camera.updateProjectionMatrix();
    this.#key.shadow.bias = -0.002;
    this.#key.shadow.normalBias = radius * 0.012;
    this.#camera.near = radius * 0.02;
    this.#camera.far = radius * 60;
    this.#wasMoved = false;
    this.look("three-quarter");
  }

  /** Looks from a named direction; the whole character is in sight. */
  look(name: ViewName): void {
    const [yaw, pitch] = VIEWS[name];
    this.#place(THREE.MathUtils.degToRad(yaw), THREE.MathUtils.degToRad(pitch));
  }

  /** Brings the character back into sight from where one looks: where she stands now, unless a box is given. */
  frame(box = this.#bounds()): void {
    const offset = this.#camera.position.clone().sub(this.#orbit.target);
    const spherical = new THREE.Spherical().setFromVector3(offset);
    this.#place(spherical.theta, Math.PI / 2 - spherical.phi, box);
  }

  /** What the characters on the stage take in. */
  #bounds(): THREE.Box3 {
    const box = new THREE.Box3();
    this.#actors.forEach((actor) => box.union(new THREE.Box3().setFromArray(actor.vertices as unknown as number[])));
    return box.isEmpty() ? this.#home : box;
  }

  #place(yaw: number, pitch: number, box = this.#home): void {
    const size = box.getSize(new THREE.Vector3());
    const half = Math.tan(THREE.MathUtils.degToRad(this.#camera.fov / 2));
    const width = Math.max(size.x, size.z) / 2;
    const aspect = this.#camera.aspect || 1;
    const distance = Math.max((size.y / 2) / half, width / (half * aspect)) * 1.14 + width;
    const direction = new THREE.Vector3().setFromSphericalCoords(1, Math.PI / 2 - pitch, yaw);
    this.#orbit.target.copy(box.getCenter(new THREE.Vector3()));
    this.#camera.position.copy(this.#orbit.target).addScaledVector(direction, distance);
    this.#camera.updateProjectionMatrix();
    this.#orbit.update();
    this.redraw();
  }

  #rectangles(): Rectangle[] {
    const width = this.canvas.clientWidth;
    const count = Math.max(this.#actors.length, 1);
    if (this.#layout === "beside") {
      return this.#actors.map((_, place) => ({ x: (place * width) / count, width: width / count }));
    }
    return this.#actors.map(() => ({ x: 0, width }));
  }

  #resize(): void {
    const parent = this.canvas.parentElement;
    // A hidden tab has no size: what fits into nothing is infinitely far away.
    if (!parent || parent.clientWidth === 0 || parent.clientHeight === 0) return;
    const width = parent.clientWidth, height = parent.clientHeight, ratio = Math.min(devicePixelRatio, 2);
    const size = this.#renderer.getSize(new THREE.Vector2());
    const same = size.x === width && size.y === height && this.#renderer.getPixelRatio() === ratio;
    if (!same) {
      this.#renderer.setPixelRatio(ratio);
      this.#renderer.setSize(width, height, false);
    }
    const views = this.#rectangles();
    this.#camera.aspect = (views[0]?.width ?? width) / height;
    this.#camera.updateProjectionMatrix();
    if (!this.#wasMoved && !this.#home.isEmpty()) this.frame(this.#home);
    this.onlayout(views);
    // A new size clears the canvas: it is drawn before anybody sees that.
    if (this.#visible && !same) this.#draw();
    else this.redraw();
  }

  /** Programs of the graphics card are compiled while the character is still on its way. */
  #warmUp(): void {
    const geometry = new THREE.BufferGeometry();
    for (const [name, size] of [["position", 3], ["normal", 3], ["color", 3], ["openness", 1], ["shine", 1], ["error", 1]] as const) {
      geometry.setAttribute(name, new THREE.BufferAttribute(new Float32Array(3 * size), size));
    }
    // Its material stays: programs are kept as long as somebody has them.
    const look = { heat: { value: 0 }, scale: { value: 1 }, ramp: { value: rampTexture([[0, 0, 0]]) } };
    const stand = new THREE.Mesh(geometry, characterMaterial(look));
    stand.castShadow = stand.receiveShadow = true;
    this.#scene.add(stand);
    this.#renderer.compile(this.#scene, this.#camera);
    stand.removeFromParent();
    geometry.dispose();
  }

  #draw(): void {
    this.#dirty = false;
    const from = performance.now();
    const offset = this.#camera.position.clone().sub(this.#orbit.target);
    this.#lamps.rotation.y = Math.atan2(offset.x, offset.z);
    this.#lamps.position.copy(this.#sphere.center);
    const reach = this.#sphere.radius * 3;
    for (const lamp of this.#lamps.children) {
      if (lamp instanceof THREE.DirectionalLight) lamp.position.setLength(reach);
    }
    const renderer = this.#renderer;
    const height = this.canvas.clientHeight;
    // A shadow that ends at the neighbour's border is worse than none.
    this.#floor.visible = this.#layout !== "beside";
    renderer.setScissorTest(false);
    renderer.clear();
    const views = this.#rectangles();
    views.forEach((view, place) => {
      this.#actors.forEach((actor, other) => { actor.mesh.visible = other === place; });
      renderer.setViewport(view.x, 0, view.width, height);
      let { x, width } = view;
      if (this.#layout === "wipe" && views.length === 2) {
        const split = view.width * this.#wipe;
        [x, width] = place === 0 ? [0, split] : [split, view.width - split];
      }
      if (width < 1) return;
      renderer.setScissor(x, 0, width, height);
      renderer.setScissorTest(true);
      renderer.render(this.#scene, this.#camera);
    });
    this.ondraw(performance.now() - from);
  }
}
