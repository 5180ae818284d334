// The WebAssembly module: which of the two is loaded, from where, and how its border is crossed. Every function of the
// module that can fail gives zero then and leaves a text; `TwinModule.check` makes an exception of it.

/** Something is wrong with a twin's file or a pose; the message is the run time's own. */
export class TwinError extends Error {
  override readonly name = "TwinError";
}

/** Where a module comes from: compiled, its bytes, or an address to fetch it from. */
export type ModuleSource = WebAssembly.Module | BufferSource | Response | URL | string;

/** What the module exports; see `apps/wasm/src/lib.rs`. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  understudy_format(): number;
  understudy_lanes(): number;
  understudy_text(): number;
  understudy_text_length(): number;
  understudy_incoming(bytes: number): number;
  understudy_load(): number;
  understudy_free(handle: number): number;
  understudy_describe(handle: number): number;
  understudy_buffer(handle: number, which: number, poses: number): number;
  understudy_buffer_size(handle: number, which: number): number;
  understudy_pose(handle: number, by: number, poses: number): number;
  understudy_normals(handle: number): number;
  understudy_gradient(handle: number, by: number): number;
  understudy_hold(handle: number): number;
  understudy_drag(handle: number, steps: number): number;
  understudy_limbs(handle: number): number;
  understudy_reach(handle: number, place: number): number;
  understudy_motion_load(seed: number): number;
  understudy_motion_again(handle: number, seed: number): number;
  understudy_motion_free(handle: number): number;
  understudy_motion_describe(handle: number): number;
  understudy_motion_command(handle: number): number;
  understudy_motion_script(handle: number): number;
  understudy_motion_step(handle: number, frames: number): number;
  understudy_motion_controls(handle: number): number;
  understudy_motion_situation(handle: number): number;
  understudy_live(handle: number): number;
  understudy_live_rest(handle: number): number;
  understudy_live_follow(handle: number, seen: number, microseconds: number): number;
}

// The smallest modules that use an instruction of each kind: `v128.const; drop`, and `f32x4.relaxed_madd` on zeros.
const SIMD = [1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 23, 1, 21, 0, 253, 12, ...Array<number>(16).fill(0), 26, 11];
const RELAXED = [
  1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 19, 1, 17, 0,
  65, 0, 253, 17, 65, 0, 253, 17, 65, 0, 253, 17, 253, 133, 2, 11,
];

function validates(sections: readonly number[]): boolean {
  if (typeof WebAssembly !== "object") return false;
  return WebAssembly.validate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, ...sections]));
}

/** Whether this engine has WebAssembly SIMD, which the module needs (every browser since 2023). */
export function hasSimd(): boolean {
  return validates(SIMD);
}

/** Whether this engine has relaxed SIMD: multiply-adds in one step. */
export function hasRelaxedSimd(): boolean {
  return validates(RELAXED);
}

/** An instantiated module; twins that are loaded with the same one share its memory. */
export class TwinModule {
  readonly #exports: Exports;
  #broken: string | undefined;

  private constructor(exports: Exports) {
    this.#exports = exports;
  }

  static #standard: Promise<TwinModule> | undefined;

  /** The module that lies beside this file, made once: the one with relaxed SIMD where the engine has that. */
  static standard(): Promise<TwinModule> {
    this.#standard ??= this.create().catch((problem: unknown) => {
      // A failed download must not last for ever.
      this.#standard = undefined;
      throw problem;
    });
    return this.#standard;
  }

  /** Compiles and instantiates a module; without a source the one that lies beside this file. */
  static async create(source?: ModuleSource | Promise<ModuleSource>): Promise<TwinModule> {
    if (!hasSimd()) throw new TwinError("this browser has no WebAssembly SIMD, which twins need");
    const module = await compile(source === undefined ? beside() : await source);
    const instance = await WebAssembly.instantiate(module, {});
    return new TwinModule(instance.exports as unknown as Exports);
  }

  /** What it was built for. */
  get lanes(): "SIMD128" | "SIMD128, relaxed" | "none" {
    return (["none", "SIMD128", "none", "SIMD128, relaxed"] as const)[this.#exports.understudy_lanes()] ?? "none";
  }

  /** The newest format of twins' files that it reads. */
  get format(): number {
    return this.#exports.understudy_format();
  }

  /** Its memory; arrays on it end when it grows. */
  get memory(): WebAssembly.Memory {
    return this.#exports.memory;
  }

  /** Calls the module; an answer of zero becomes an exception with the module's text. */
  call(work: (exports: Omit<Exports, "memory">) => number): number {
    if (this.#broken !== undefined) throw new TwinError(this.#broken);
    let answer: number;
    try {
      answer = work(this.#exports) >>> 0;
    } catch (problem) {
      // A trap leaves the module in an unknown state: nobody may use it again.
      const text = this.text();
      this.#broken = `the module stopped (${problem instanceof Error ? problem.message : String(problem)}) ${text}`;
      if (TwinModule.#standard !== undefined) TwinModule.#standard = undefined;
      throw new TwinError(this.#broken, { cause: problem });
    }
    if (answer === 0) throw new TwinError(this.text());
    return answer;
  }

  /** Writes bytes where the module looks for a file or a text. */
  send(bytes: Uint8Array): void {
    const address = this.call((exports) => exports.understudy_incoming(bytes.length));
    new Uint8Array(this.memory.buffer, address, bytes.length).set(bytes);
  }

  /** The text that the module left. */
  text(): string {
    const { memory, understudy_text, understudy_text_length } = this.#exports;
    const bytes = new Uint8Array(memory.buffer, understudy_text() >>> 0, understudy_text_length() >>> 0);
    // A copy: decoders refuse memory that could be shared.
    return new TextDecoder().decode(bytes.slice());
  }
}

function beside(): URL {
  // Two literal addresses: bundlers look for them.
  return hasRelaxedSimd()
    ? new URL("./understudy-relaxed.wasm", import.meta.url)
    : new URL("./understudy.wasm", import.meta.url);
}

async function compile(source: ModuleSource): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  if (typeof Response === "function" && source instanceof Response) return compileResponse(source);
  const address = source instanceof URL ? source : new URL(source as string, import.meta.url);
  if (address.protocol === "file:") {
    // Node.js: `fetch` reads no files there. Hidden from bundlers, which would look for it.
    const name = "node:fs/promises";
    const { readFile } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ name)) as typeof import("node:fs/promises");
    return WebAssembly.compile(new Uint8Array(await readFile(address)));
  }
  return compileResponse(await fetch(address));
}

async function compileResponse(response: Response): Promise<WebAssembly.Module> {
  if (!response.ok) throw new TwinError(`${response.url}: the module was not found (${response.status})`);
  // Compiling while it arrives wants the right content type; servers that do not know it are forgiven.
  if (response.headers.get("content-type")?.startsWith("application/wasm")) {
    return WebAssembly.compileStreaming(response);
  }
  return WebAssembly.compile(await response.arrayBuffer());
}
