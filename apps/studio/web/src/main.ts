// The page as a whole: the bar, the tabs, the theme. A tab is one module and one line in TABS.

import "./tokens.css";
import "./page.css";
import { Context, type Tab, type TabEntry } from "./lib/context";
import { complain, h } from "./lib/dom";
import { Server } from "./lib/server";
import { poseTab } from "./pose";

/** The first visit waits for the Pose tab alone; the module of any other is fetched when it is first looked at. */
const TABS: readonly TabEntry[] = [
  { id: "pose", title: "Pose", load: () => poseTab },
  { id: "learn", title: "Learn", load: async () => (await import("./learn")).learnTab },
  { id: "invert", title: "Invert", load: async () => (await import("./invert")).invertTab },
  { id: "weights", title: "Weights", load: async () => (await import("./weights")).weightsTab },
  { id: "motion", title: "Motion", load: async () => (await import("./motion")).motionTab },
  { id: "capture", title: "Capture", load: async () => (await import("./capture")).captureTab },
];

const server = new Server();
const context = new Context(server);
const app = document.querySelector<HTMLElement>("#app")!;

/** Light or dark: as the system says until somebody chooses. */
function themeButton(): HTMLElement {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = localStorage.getItem("understudy-theme");
  const button = h("button", { class: "icon", type: "button" });
  const apply = () => {
    const theme = chosen ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset["theme"] = theme;
    button.textContent = theme === "dark" ? "☀" : "☾";
    button.setAttribute("aria-label", theme === "dark" ? "Light theme" : "Dark theme");
    button.title = button.getAttribute("aria-label")!;
  };
  button.addEventListener("click", () => {
    chosen = document.documentElement.dataset["theme"] === "dark" ? "light" : "dark";
    localStorage.setItem("understudy-theme", chosen);
    apply();
  });
  system.addEventListener("change", apply);
  apply();
  return button;
}

const connection = h("span", { class: "soft", role: "status" });
const folder = h("span", { class: "soft project" });
const list = h("div", { class: "tabs", role: "tablist", "aria-label": "Parts of the studio" });
app.append(
  h("header", { class: "bar" },
    h("h1", { class: "brand" }, h("img", { src: "./icon.svg", alt: "" }), "Understudy"),
    list, h("span", { class: "spread" }), connection, folder, themeButton()),
);
const main = h("main", { class: "panel" });
app.append(main);

const tabs = TABS.map(({ id, title, load }) => {
  const button = h("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}` }, title);
  const panel = h("section", { class: "panel", role: "tabpanel", id: `panel-${id}`, "aria-labelledby": `tab-${id}`, hidden: true });
  button.addEventListener("click", () => choose(id));
  list.append(button);
  main.append(panel);
  return { id, title, button, panel, load, loading: false, tab: undefined as Tab | undefined };
});
let current = tabs[0]!;

function choose(id: string): void {
  const next = tabs.find((tab) => tab.id === id) ?? tabs[0]!;
  for (const entry of tabs) {
    const on = entry === next;
    entry.button.setAttribute("aria-selected", String(on));
    entry.button.tabIndex = on ? 0 : -1;
    entry.panel.hidden = !on;
    if (!on) entry.tab?.show?.(false);
  }
  current = next;
  if (next.tab) next.tab.show?.(true);
  else void open(next);
  history.replaceState(null, "", `#${next.id}`);
}
context.go = choose;

/** Makes a tab that is looked at for the first time. */
async function open(entry: (typeof tabs)[number]): Promise<void> {
  if (entry.loading) return;
  entry.loading = true;
  try {
    const loaded = entry.load();
    const kind = loaded instanceof Promise ? await loaded : loaded;
    entry.panel.replaceChildren();
    entry.tab = kind.make(entry.panel, context);
    // Somebody may have gone on to another meanwhile.
    entry.tab.show?.(entry === current);
  } catch (error) {
    const again = h("button", { type: "button", onclick: () => void open(entry) }, "Try again");
    entry.panel.replaceChildren(h("div", { class: "notice" }, h("div", { class: "box" }, h("h2", {}, `${entry.title} could not be opened`), again)));
    complain(error);
  } finally {
    entry.loading = false;
  }
}

list.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step === undefined) return;
  const place = (tabs.indexOf(current) + step + tabs.length) % tabs.length;
  choose(tabs[place]!.id);
  tabs[place]!.button.focus();
});

addEventListener("keydown", (event) => {
  const target = event.target as HTMLElement;
  const field = target.matches("input:not([type=range]):not([type=checkbox]), select, textarea");
  const undoing = (event.ctrlKey || event.metaKey) && /^[zy]$/i.test(event.key);
  if (field || event.altKey || ((event.ctrlKey || event.metaKey) && !undoing)) return;
  // Space presses the button that has the focus.
  if (event.key === " " && target.matches("button, summary, a, input")) return;
  if (current.tab?.key?.(event)) event.preventDefault();
});

// A file that misses its place must not replace the page.
for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());

server.onconnection = (open) => {
  connection.textContent = open ? "" : "Not connected: is the studio still running?";
  connection.className = open ? "soft" : "bad";
  if (open) return;
  void server.isAnother().then((another) => {
    if (another && !server.open) connection.textContent = "The studio was started anew: open the address that it printed.";
  });
};
let first = true;
server.whenOpen(() => {
  // Events that came while there was no connection were not heard.
  if (!first) context.refresh().catch(complain);
  first = false;
});
context.project.follow((project) => { folder.textContent = project ? project.folder : ""; });
context.runs.follow((runs) => {
  const button = tabs.find((tab) => tab.id === "learn")?.button;
  const running = runs.filter((run) => run.state === "running").length;
  button?.querySelector(".badge")?.remove();
  if (running > 0) button?.append(h("span", { class: "badge", "aria-label": `${running} running` }, running));
});

server.connect();
context.refresh().catch(complain);
choose(location.hash.slice(1) || TABS[0]!.id);
