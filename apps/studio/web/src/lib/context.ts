// What all tabs share: the server, the project's listing, the jobs, and how one tab hands something to another.

import { toast } from "./dom";
import type { Project, Run, Server } from "./server";

export interface Tab {
  /** Called when the tab is shown or hidden. */
  show?(visible: boolean): void;
  /** A key was pressed that no field took; whether the tab did something with it. */
  key?(event: KeyboardEvent): boolean;
}

/** A tab of the page: one module and one line in `main.ts`. */
export interface TabKind {
  readonly id: string;
  readonly title: string;
  make(panel: HTMLElement, context: Context): Tab;
}

/** What the bar knows of a tab before its module is there. */
export interface TabEntry {
  readonly id: string;
  readonly title: string;
  readonly load: () => TabKind | Promise<TabKind>;
}

type Listener<T> = (value: T) => void;

/** A value that others follow. */
export class Followed<T> {
  #value: T;
  #listeners: Listener<T>[] = [];

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set value(value: T) {
    this.#value = value;
    this.#listeners.forEach((listener) => listener(value));
  }

  /** Called now and at every change. */
  follow(listener: Listener<T>): void {
    this.#listeners.push(listener);
    listener(this.#value);
  }
}

/** What the Pose tab shall show. */
export interface Stand {
  readonly rig: string;
  readonly twin: string | null;
}

export class Context {
  readonly project: Followed<Project | null> = new Followed<Project | null>(null);
  readonly runs: Followed<readonly Run[]> = new Followed<readonly Run[]>([]);
  readonly stand = new Followed<Stand | null>(null);
  /** Shows a tab by its name. */
  go: (tab: string) => void = () => {};
  readonly #handed = new Set<number>();

  constructor(readonly server: Server) {
    this.runs.follow((runs) => runs.forEach((run) => this.#hand(run)));
    server.onruns = (runs, all) => {
      const known = new Map(all ? [] : this.runs.value.map((run) => [run.id, run]));
      runs.forEach((run) => known.set(run.id, run));
      const ended = runs.some((run) => run.state !== "running");
      this.runs.value = [...known.values()].sort((a, b) => b.id - a.id);
      if (ended) void this.refresh();
    };
  }

  /** Asks for the listing anew. */
  async refresh(): Promise<Project> {
    const project = await this.server.project();
    // What ended before this page was opened is not news.
    if (!this.project.value) project.runs.filter((run) => run.state !== "running").forEach((run) => this.#handed.add(run.id));
    this.runs.value = [...project.runs];
    this.project.value = project;
    return project;
  }

  /** A finished twin goes to the Pose tab, whichever tabs were looked at before. */
  #hand(run: Run): void {
    if (run.state !== "done" || this.#handed.has(run.id)) return;
    this.#handed.add(run.id);
    const { twin, rig } = run.result ?? {};
    if (typeof twin !== "string" || typeof rig !== "string") return;
    this.stand.value = { rig, twin };
    toast(`${run.title} is ready: it is on the Pose tab now.`);
  }
}
