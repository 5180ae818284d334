// The Learn tab: choose a rig and a kind, start, watch the figures fall, compare what came out, look at it on the Pose tab.

import type { Context, Tab, TabKind } from "../lib/context";
import { acceptDrops, complain, fileButton, fill, fillRigs, h, toast } from "../lib/dom";
import type { Run } from "../lib/server";
import { chart } from "./chart";

const KINDS: readonly (readonly [string, string, string])[] = [
  ["auto", "auto: try every kind, finish the best", "Short trials of every kind that fits, then the best for you in full."],
  ["face", "face", "Maps in texture space: fine wrinkles, needs texture coordinates."],
  ["body", "body", "Corrections on top of skinning, posed by bones."],
  ["diff", "diff", "Differential: no seams, no noise, on any mesh."],
  ["skin", "skin", "Bones of its own that any engine skins: the fastest."],
];

export const learnTab: TabKind = { id: "learn", title: "Learn", make: (panel, context) => new LearnTab(panel, context) };

class LearnTab implements Tab {
  readonly #context: Context;
  readonly #rig = h("select", { id: "learn-rig" });
  readonly #kind = h("select", { id: "learn-kind" });
  readonly #data = h("select", { id: "learn-data" });
  readonly #poses = h("input", { type: "number", id: "learn-poses", min: 1, max: 1000000, value: 4000 });
  readonly #minutes = h("input", { type: "number", id: "learn-minutes", min: 0.05, step: "any", value: 10 });
  readonly #follow = h("input", { type: "checkbox", id: "learn-follow" });
  readonly #start = h("button", { type: "button", class: "primary" }, "Start learning");
  readonly #sample = h("button", { type: "button" }, "Only sample poses");
  readonly #twin = h("select", { id: "weigh-twin" });
  readonly #clip = h("input", { type: "text", id: "weigh-clip", value: "test", placeholder: "A clip of the rig" });
  readonly #weigh = h("button", { type: "button" }, "Weigh it");
  readonly #hint = h("p", { class: "soft" });
  readonly #runs = h("div", { class: "stack" });
  readonly #compare = h("div", {});
  readonly #cards = new Map<number, { element: HTMLElement; state: string }>();

  constructor(panel: HTMLElement, context: Context) {
    this.#context = context;
    fill(this.#kind, KINDS.map(([value, text]) => [value, text] as const), "auto");
    const field = (label: string, input: HTMLElement) => h("label", { class: "field", for: input.id }, h("span", {}, label), input);
    const drop = h("div", { class: "dropzone" }, h("span", { class: "soft" }, "or drop a rig here: .glb, .fbx, .usd, .npz, .obj, .blend"), fileButton("Choose a file…", ".glb,.gltf,.fbx,.usda,.usdc,.usd,.npz,.obj,.blend", (files) => void this.#take(files)));
    const form = h("section", { class: "card stack", "aria-label": "A new twin" },
      h("h2", {}, "A new twin"),
      field("Rig", this.#rig), drop,
      field("Kind", this.#kind), this.#hint,
      field("Poses", this.#data), field("New poses to sample", this.#poses), field("Minutes of training, about", this.#minutes),
      h("label", { class: "check", title: "For faces: points on it can then be dragged on the Pose tab" }, this.#follow, "Follow dragged points (Mira, ict)"),
      this.#start, this.#sample);
    const weighing = h("section", { class: "card stack", "aria-label": "Weigh a twin" },
      h("h2", {}, "Weigh a twin"), h("p", { class: "soft" }, "Against the rig that is chosen above, on a clip: errors, times and a report."),
      field("Twin", this.#twin), field("Clip", this.#clip), this.#weigh);
    acceptDrops(drop, (files) => void this.#take(files), (over) => drop.classList.toggle("over", over));
    this.#kind.addEventListener("change", () => this.#explain());
    this.#data.addEventListener("change", () => { this.#poses.disabled = this.#data.value !== ""; });
    this.#start.addEventListener("click", () => void this.#begin(this.#start, {
      job: "learn", rig: this.#rig.value, data: this.#data.value || null, method: this.#kind.value,
      poses: this.#poseCount, minutes: Number(this.#minutes.value), follow: this.#follow.checked,
    }));
    this.#sample.addEventListener("click", () => void this.#begin(this.#sample, { job: "sample", rig: this.#rig.value, poses: this.#poseCount }));
    this.#weigh.addEventListener("click", () => void this.#begin(this.#weigh, { job: "eval", twin: this.#twin.value, rig: this.#rig.value, clip: this.#clip.value }));
    panel.append(h("div", { class: "pages" }, h("div", { class: "columns" }, h("div", { class: "stack" }, form, weighing), h("div", { class: "stack" }, this.#compare, this.#runs))));
    context.project.follow((project) => {
      if (!project) return;
      fillRigs(this.#rig, project);
      fill(this.#twin, project.twins.map(({ path, kind }) => [path, `${path} (${kind})`] as const));
      this.#twin.disabled = this.#weigh.disabled = project.twins.length === 0;
      fill(this.#data, [["", "Sample new poses"], ...project.datasets.map((name) => [name, name] as const)]);
    });
    context.runs.follow((runs) => this.#show(runs));
    this.#explain();
  }

  show(): void {
    // Nothing here depends on being seen.
  }

  #explain(): void {
    this.#hint.textContent = KINDS.find(([value]) => value === this.#kind.value)?.[2] ?? "";
  }

  async #take(files: File[]): Promise<void> {
    for (const file of files) {
      try {
        const path = await this.#context.server.upload(file);
        await this.#context.refresh();
        if (this.#context.project.value) fillRigs(this.#rig, this.#context.project.value, path);
        toast(`${file.name} is in the project now.`);
      } catch (error) {
        complain(error);
      }
    }
  }

  get #poseCount(): number {
    return Math.round(Number(this.#poses.value));
  }

  async #begin(button: HTMLButtonElement, order: Record<string, unknown>): Promise<void> {
    button.disabled = true;
    try {
      await this.#context.server.start(order);
    } catch (error) {
      complain(error);
    } finally {
      button.disabled = false;
    }
  }

  #show(runs: readonly Run[]): void {
    for (const run of runs) {
      const card = this.#cards.get(run.id);
      if (card && card.state === run.state && run.state !== "running") continue;
      const fresh = this.#card(run);
      // A card that is read or whose button has the focus keeps its place.
      const focused = card?.element.contains(document.activeElement) ? document.activeElement?.getAttribute("data-action") : null;
      if (card) card.element.replaceWith(fresh);
      this.#cards.set(run.id, { element: fresh, state: run.state });
      if (focused) fresh.querySelector<HTMLElement>(`[data-action="${focused}"]`)?.focus();
    }
    const wanted = runs.map((run) => this.#cards.get(run.id)!.element);
    if (wanted.some((element, place) => this.#runs.children[place] !== element) || wanted.length !== this.#runs.childElementCount) this.#runs.replaceChildren(...wanted);
    if (runs.length === 0) {
      this.#runs.replaceChildren(h("div", { class: "card stack" }, h("h2", {}, "Nothing has been learned yet"),
        h("p", {}, "A twin does what a rig does, hundreds of times per second, in any engine. Choose a rig on the left and start: poses are sampled first, then networks are trained, then the twin is weighed on poses that it has not seen."),
        h("p", { class: "soft" }, "You may close the page meanwhile: the work goes on as long as the studio runs.")));
    }
    this.#table(runs);
  }

  #card(run: Run): HTMLElement {
    const share = run.total > 0 ? run.done / run.total : 0;
    const curves = Object.entries(run.curves).map(([name, points]) => ({ name, points }));
    const states = { running: "running", done: "done", failed: "failed", cancelled: "cancelled" };
    const tone = run.state === "failed" ? "bad" : run.state === "done" ? "good" : "soft";
    const head = h("div", { class: "row" }, h("h3", {}, run.title), h("span", { class: tone }, states[run.state]), h("span", { class: "soft number" }, clock(run.seconds)), h("span", { class: "spread" }));
    const { result } = run;
    if (run.state === "running") {
      head.append(h("button", { type: "button", "data-action": "cancel", onclick: () => void this.#context.server.cancel(run.id).catch(complain) }, "Cancel"));
    } else {
      if (typeof result?.["page"] === "string") head.append(h("a", { class: "button", href: `project/${result["page"]}`, target: "_blank", rel: "noopener" }, "Report"));
      if (typeof result?.["twin"] === "string") {
        const { twin, rig } = result as { twin: string; rig: string };
        head.append(h("button", { type: "button", "data-action": "show", onclick: () => { this.#context.stand.value = { rig, twin }; this.#context.go("pose"); } }, "Show on the Pose tab"));
      }
    }
    const card = h("article", { class: "card stack", "data-run": run.id, "data-state": run.state, "aria-label": run.title }, head);
    if (run.state === "running") {
      const left = run.seconds_left === null ? "" : `, about ${clock(run.seconds_left)} left`;
      const bar = h("div", { class: "progress", role: "progressbar", "aria-label": run.what, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(share * 100) }, h("div", { style: `width: ${(share * 100).toFixed(1)}%` }));
      card.append(h("div", {}, h("p", {}, run.what, run.total > 1 ? ` · ${run.done} of ${run.total} ${run.unit}${left}` : ""), run.status ? h("p", { class: "soft" }, run.status) : null), bar);
    }
    if (run.error) card.append(h("p", { class: "bad" }, run.error));
    if (result) card.append(figures(result));
    if (curves.length > 0) card.append(chart(curves, `Figures of ${run.title} over time`, 720));
    if (run.lines.length > 0) card.append(h("details", {}, h("summary", {}, run.lines.length === 1 ? "1 note" : `${run.lines.length} notes`), ...run.lines.map((line) => h("p", { class: "soft" }, line))));
    return card;
  }

  /** Finished twins beside each other. */
  #table(runs: readonly Run[]): void {
    const done = runs.filter((run) => run.job === "learn" && run.result);
    this.#compare.hidden = done.length < 2;
    if (done.length < 2) return;
    const number = (value: unknown, digits: number) => (typeof value === "number" ? value.toFixed(digits) : "–");
    const rows = done.map(({ title, result, seconds }) => h("tr", {}, h("td", {}, title), h("td", {}, String(result!["kind"])),
      ...[number(result!["held_back_mm"], 3), number(result!["test_mm"], 3), number(result!["test_max_mm"], 2), number(result!["ms"], 2), number(result!["original_ms"], 2), number(Number(result!["bytes"]) / 1e6, 1), clock(seconds)].map((text) => h("td", { class: "number" }, text))));
    const head = ["Twin", "Kind", "held-back mm", "test mm", "worst mm", "ms", "original ms", "MB", "time"];
    this.#compare.replaceChildren(h("section", { class: "card stack" }, h("h2", {}, "Compare"),
      h("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": "Comparison of twins" }, h("table", {}, h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, ...rows)))));
  }
}

const NAMES: readonly (readonly [string, string, (value: number) => string])[] = [
  ["held_back_mm", "held-back error", (value) => `${value.toFixed(3)} mm`],
  ["test_mm", "error on the test clip", (value) => `${value.toFixed(3)} mm`],
  ["test_max_mm", "worst vertex", (value) => `${value.toFixed(2)} mm`],
  ["ms", "twin", (value) => `${value.toFixed(2)} ms`],
  ["original_ms", "original", (value) => `${value.toFixed(2)} ms`],
  ["network_mm", "points by the network", (value) => `${value.toFixed(3)} mm`],
  ["hybrid_mm", "points, corrected", (value) => `${value.toFixed(3)} mm`],
  ["bytes", "file", (value) => `${(value / 1e6).toFixed(1)} MB`],
  ["rmse_mm", "error", (value) => `${value.toFixed(4)} mm`],
  ["frames", "frames", (value) => String(value)],
];

function figures(result: Readonly<Record<string, unknown>>): HTMLElement {
  const cells = NAMES.filter(([key]) => typeof result[key] === "number").map(([key, name, text]) => h("div", {}, h("span", { class: "soft" }, name), h("b", {}, text(result[key] as number))));
  const why = typeof result["why"] === "string" ? h("p", {}, result["why"]) : null;
  const file = result["twin"] ?? result["data"] ?? result["file"];
  return h("div", { class: "stack" }, why, h("div", { class: "figures" }, ...cells), typeof file === "string" ? h("p", { class: "soft" }, h("code", {}, file)) : null);
}

function clock(seconds: number): string {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
}
