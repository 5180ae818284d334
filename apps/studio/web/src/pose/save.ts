// What leaves the Pose tab as a file.

import { complain, download, h } from "../lib/dom";
import type { RigScene } from "../lib/rig";
import type { Server } from "../lib/server";

interface Source {
  readonly server: Server;
  readonly rig: () => RigScene | null;
  readonly controls: () => Float32Array;
  /** The clip's name; empty without one. */
  readonly clip: () => string;
  /** The clip's name on the server, where it is brought first if keys changed it. */
  readonly brought: () => Promise<string>;
  readonly canvas: () => HTMLCanvasElement;
}

/** The pose by the names of its controls: the file that the page takes back. */
export function poseFile(rig: RigScene, controls: Float32Array): string {
  const moved = rig.controls.map(({ name }, place) => [name, controls[place]!] as const).filter(([, value], place) => value !== rig.controls[place]!.default);
  return JSON.stringify({ rig: rig.name, controls: Object.fromEntries(moved) }, null, 2);
}

/** The pose as a table of one row, which `understudy` and other programs read. */
function poseTable(rig: RigScene, controls: Float32Array): string {
  return `${rig.controls.map(({ name }) => name).join(",")}\n${Array.from(controls, (value) => String(Math.fround(value))).join(",")}\n`;
}

export function saveMenu(source: Source): HTMLElement {
  const list = h("div", { hidden: true, role: "menu" });
  const button = h("button", { type: "button", "aria-haspopup": "menu", "aria-expanded": "false" }, "Save ▾");
  const menu = h("div", { class: "menu" }, button, list);
  const open = (on: boolean) => {
    list.hidden = !on;
    button.setAttribute("aria-expanded", String(on));
    if (on) items.forEach(({ item, needsClip }) => { item.disabled = needsClip && !source.clip(); });
  };
  const stem = () => (source.rig()?.name ?? "character").split("/").pop()!.replace(/\.\w+$/, "");
  const clipStem = () => source.clip().split("/").pop()!.replace(/\.\w+$/, "").replace(/^\+/, "");
  const posed = (format: string) => async () => {
    const rig = source.rig();
    if (!rig) return;
    download(`${stem()}-pose.${format}`, await source.server.export({ what: "pose", rig: rig.name, controls: [...source.controls()], format }));
  };
  const played = (format: string) => async () => {
    const rig = source.rig();
    if (!rig) return;
    download(`${stem()}-${clipStem()}.${format}`, await source.server.export({ what: "clip", rig: rig.name, clip: await source.brought(), format }));
  };
  const entries: [text: string, needsClip: boolean, act: () => Promise<void> | void][] = [
    ["Pose (.json)", false, () => { const rig = source.rig(); if (rig) download(`${stem()}-pose.json`, poseFile(rig, source.controls()), "application/json"); }],
    ["Picture (.png)", false, () => source.canvas().toBlob((blob) => { if (blob) download(`${stem()}.png`, blob); })],
    ["Pose as a mesh (.glb)", false, posed("glb")],
    ["Pose as a mesh (.obj)", false, posed("obj")],
    ["Pose as a table (.csv)", false, () => { const rig = source.rig(); if (rig) download(`${stem()}-pose.csv`, poseTable(rig, source.controls()), "text/csv"); }],
    ["Clip as morph targets (.glb)", true, played("glb")],
    ["Clip as a table (.csv)", true, played("csv")],
  ];
  const items = entries.map(([text, needsClip, act]) => {
    const item = h("button", { type: "button", role: "menuitem" }, text);
    item.addEventListener("click", () => {
      open(false);
      void Promise.resolve().then(act).catch(complain);
    });
    list.append(item);
    return { item, needsClip };
  });
  button.addEventListener("click", () => open(list.hidden !== false));
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { open(false); button.focus(); }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && !list.hidden) {
      event.preventDefault();
      const all = items.map(({ item }) => item).filter((item) => !item.disabled);
      const place = all.indexOf(document.activeElement as HTMLButtonElement);
      all[(place + step + all.length) % all.length]?.focus();
    }
  });
  // A moment later it is known where the focus went.
  menu.addEventListener("focusout", () => setTimeout(() => { if (!menu.contains(document.activeElement)) open(false); }, 100));
  return menu;
}
