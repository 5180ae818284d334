// What all tabs share: the server, the project's listing, the jobs, and how one tab hands something to another.

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

  constructor(readonly server: Server) {
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
    this.runs.value = [...project.runs];
    this.project.value = project;
    return project;
  }
}
