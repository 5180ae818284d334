// Elements in one line: `h("button", { class: "primary", onclick: start }, "Start")`.

type Attribute = string | number | boolean | null | undefined | ((event: never) => unknown);
type Child = Node | string | number | null | undefined | false;

/** An element with attributes (functions are listeners, `true` and `false` switch) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...(children.filter((child) => child != null && child !== false) as (Node | string)[]).map((c) => (typeof c === "number" ? String(c) : c)));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** The same for SVG. */
export function s(tag: string, attributes: Record<string, string | number> = {}, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Fills a `select`; keeps what was chosen where it is still there. */
export function fill(select: HTMLSelectElement, options: readonly (readonly [value: string, text: string])[], chosen = select.value): void {
  select.replaceChildren(...options.map(([value, text]) => h("option", { value }, text)));
  if (options.some(([value]) => value === chosen)) select.value = chosen;
}

/** Fills a `select` with the project's characters. What was chosen stays, listed or not: nobody shall work on another unasked. */
export function fillRigs(select: HTMLSelectElement, project: { readonly rigs: readonly { readonly name: string }[] }, chosen = select.value || "mira"): void {
  const names = project.rigs.map(({ name }) => name);
  if (!names.includes(chosen)) names.push(chosen);
  fill(select, names.map((name) => [name, name] as const), chosen);
}

/** Hands a file to the user. */
export function download(name: string, content: BlobPart, type = "application/octet-stream"): void {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = h("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Files that are dropped on an element; shows that it would take them. */
export function acceptDrops(element: HTMLElement, take: (files: File[]) => void, show: (over: boolean) => void): void {
  let depth = 0;
  const holdsFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
  element.addEventListener("dragenter", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    depth += 1;
    show(true);
  });
  element.addEventListener("dragover", (event) => {
    if (holdsFiles(event)) event.preventDefault();
  });
  element.addEventListener("dragleave", () => {
    depth = Math.max(0, depth - 1);
    if (depth === 0) show(false);
  });
  element.addEventListener("drop", (event) => {
    depth = 0;
    show(false);
    if (!holdsFiles(event)) return;
    event.preventDefault();
    take([...(event.dataTransfer?.files ?? [])]);
  });
}

/** A button that asks for files. */
export function fileButton(text: string, accept: string, take: (files: File[]) => void, several = false): HTMLElement {
  const input = h("input", { type: "file", accept, class: "visually-hidden", multiple: several, tabindex: -1, "aria-hidden": "true" });
  input.addEventListener("change", () => {
    take([...(input.files ?? [])]);
    input.value = "";
  });
  const button = h("button", { type: "button", onclick: () => input.click() }, text);
  return h("span", {}, button, input);
}

/** A list of messages at the bottom; errors stay until they are closed. */
export function toast(message: string, bad = false): void {
  let holder = document.querySelector(".toasts");
  if (!holder) {
    holder = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
    document.body.append(holder);
  }
  const close = (): void => item.remove();
  const item: HTMLElement = h("div", { class: bad ? "toast bad" : "toast" }, h("span", {}, message), h("button", { class: "icon quiet", "aria-label": "Close message", onclick: close }, "✕"));
  while (holder.childElementCount >= 3) holder.firstElementChild?.remove();
  holder.append(item);
  if (!bad) setTimeout(close, 6000);
}

/** Shows what went wrong. */
export function complain(error: unknown): void {
  toast(error instanceof Error ? error.message : String(error), true);
}
