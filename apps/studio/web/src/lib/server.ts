// The server, as the page sees it: requests over HTTP, one WebSocket for commands, poses and events of jobs. The socket
// comes back by itself when it breaks; whoever needs something opened listens to `onopen`.

import { POSE, readPose, type PoseAnswer } from "./packet";

export interface TwinEntry {
  readonly path: string;
  readonly bytes: number;
  readonly modified: number;
  readonly kind: string;
  /** Of its mesh, as rigs have it. */
  readonly topology: string;
}

export interface Project {
  readonly folder: string;
  readonly version: string;
  readonly rigs: readonly { readonly name: string; readonly source: string }[];
  readonly twins: readonly TwinEntry[];
  readonly datasets: readonly string[];
  readonly motions: readonly string[];
  readonly runs: readonly Run[];
  /** sRGB bytes of the colours for errors. */
  readonly ramp: readonly (readonly [number, number, number])[];
}

/** A job that the server runs or ran. */
export interface Run {
  readonly id: number;
  readonly job: string;
  readonly title: string;
  readonly state: "running" | "done" | "failed" | "cancelled";
  readonly started: number;
  readonly seconds: number;
  readonly what: string;
  readonly done: number;
  readonly total: number;
  readonly unit: string;
  readonly status: string;
  readonly seconds_left: number | null;
  readonly curves: Readonly<Record<string, readonly (readonly [number, number])[]>>;
  readonly lines: readonly string[];
  readonly error: string | null;
  readonly result: Readonly<Record<string, unknown>> | null;
}

export interface TwinFacts {
  readonly kind: string;
  readonly rig: string;
  readonly vertices: number;
  readonly bones: number;
  readonly controls: readonly string[];
  readonly poses: number;
}

type Pending = { resolve: (value: never) => void; reject: (error: Error) => void };

async function failure(response: Response): Promise<Error> {
  const text = await response.text();
  try {
    return new Error((JSON.parse(text) as { error: string }).error);
  } catch {
    return new Error(text.trim() || `the server answered ${response.status}`);
  }
}

async function asked(path: string, init?: RequestInit): Promise<Response> {
  const response = await fetch(path, init);
  if (!response.ok) throw await failure(response);
  return response;
}

const query = (parameters: Record<string, string>) => new URLSearchParams(parameters).toString();
const json = (body: unknown): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

export class Server {
  onpose: (answer: PoseAnswer) => void = () => {};
  onproblem: (problem: string, number: number | undefined) => void = () => {};
  onruns: (runs: Run[], all: boolean) => void = () => {};
  onconnection: (open: boolean) => void = () => {};
  #openers: (() => void)[] = [];
  #waiting: (() => void)[] = [];
  #binary = new Map<number, (message: ArrayBuffer) => void>();
  #socket: WebSocket | null = null;
  #pending = new Map<number, Pending>();
  #next = 1;

  /** Hears the binary messages of a kind: a tab's own. */
  onbinary(kind: number, listener: (message: ArrayBuffer) => void): void {
    this.#binary.set(kind, listener);
  }

  /** Called now where the socket is open, and whenever it opens again. */
  whenOpen(opener: () => void): void {
    this.#openers.push(opener);
    if (this.open) opener();
  }

  /** When it is open: at once, or the next time. */
  opened(): Promise<void> {
    return this.open ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Whether the address has another token than the server that answers now: it was started anew. */
  async isAnother(): Promise<boolean> {
    return fetch("api/project").then(({ status }) => status === 403, () => false);
  }

  get open(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  connect(): void {
    const socket = new WebSocket(new URL("api/socket", document.baseURI).href.replace(/^http/, "ws"));
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    socket.onopen = () => {
      this.onconnection(true);
      this.#openers.forEach((opener) => opener());
      this.#waiting.splice(0).forEach((resolve) => resolve());
    };
    socket.onclose = () => {
      this.onconnection(false);
      for (const { reject } of this.#pending.values()) reject(new Error("the studio's server does not answer"));
      this.#pending.clear();
      setTimeout(() => this.connect(), 1500);
    };
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => this.#hear(event.data);
  }

  #hear(data: string | ArrayBuffer): void {
    if (typeof data !== "string") {
      const kind = new DataView(data).getUint32(0, true);
      if (kind === POSE) this.onpose(readPose(data));
      else this.#binary.get(kind)?.(data);
      return;
    }
    const message = JSON.parse(data) as {
      id?: number; ok?: unknown; error?: string; problem?: string; number?: number; event?: string; run?: Run | null; runs?: Run[];
    };
    if (message.id !== undefined) {
      const pending = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if (message.error !== undefined) pending?.reject(new Error(message.error));
      else pending?.resolve(message.ok as never);
    } else if (message.event === "run" && message.run) this.onruns([message.run], false);
    else if (message.event === "runs" && message.runs) this.onruns(message.runs, true);
    else if (message.problem !== undefined) this.onproblem(message.problem, message.number);
  }

  /** Sends a command and waits for its answer. */
  command<T>(name: string, parameters: Record<string, unknown> = {}): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (!this.open) return reject(new Error("the studio's server does not answer"));
      const id = this.#next++;
      this.#pending.set(id, { resolve: resolve as (value: never) => void, reject });
      this.#socket?.send(JSON.stringify({ id, do: name, ...parameters }));
    });
  }

  send(message: ArrayBuffer): boolean {
    if (!this.open) return false;
    this.#socket?.send(message);
    return true;
  }

  async project(): Promise<Project> {
    return (await asked("api/project")).json() as Promise<Project>;
  }

  async rig(name: string): Promise<ArrayBuffer> {
    return (await asked(`api/rig?${query({ name })}`)).arrayBuffer();
  }

  async clip(rig: string, name: string): Promise<ArrayBuffer> {
    return (await asked(`api/clip?${query({ rig, name })}`)).arrayBuffer();
  }

  async twin(path: string): Promise<ArrayBuffer> {
    return (await asked(`api/twin?${query({ path })}`)).arrayBuffer();
  }

  /** Gives the name that the file has in the project. */
  async upload(file: File): Promise<string> {
    const response = await asked(`api/upload?${query({ name: file.name })}`, { method: "POST", body: file });
    return ((await response.json()) as { path: string }).path;
  }

  async export(wish: Record<string, unknown>): Promise<Blob> {
    return (await asked("api/export", json(wish))).blob();
  }

  async start(order: Record<string, unknown>): Promise<number> {
    return ((await (await asked("api/jobs", json(order))).json()) as { id: number }).id;
  }

  async cancel(id: number): Promise<void> {
    await asked(`api/jobs/${id}/cancel`, { method: "POST" });
  }
}
