// Curves over time as a small picture: the values on a logarithmic axis where they span more than a decade.

import { h, s } from "../lib/dom";

export interface Curve {
  readonly name: string;
  readonly points: readonly (readonly [number, number])[];
}

const [HEIGHT, LEFT, BOTTOM, TOP] = [190, 52, 22, 8];
const SERIES = 5;
/** What was not measured yet comes as the largest number that there is. */
const UNKNOWN = 1e30;

/** Colour of a curve by its place. */
export const seriesColour = (place: number) => `var(--series-${(place % SERIES) + 1})`;

function short(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1000 || size < 0.001 ? value.toExponential(0) : size >= 100 ? value.toFixed(0) : size >= 1 ? value.toFixed(1) : value.toPrecision(2);
}

/** `width` is about that of the place it goes to, so that its text is as large as the page's. */
export function chart(curves: readonly Curve[], label: string, width: number, axis = "s", marker?: number): HTMLElement {
  const drawn = curves.map(({ name, points }) => ({ name, points: points.filter(([, value]) => Math.abs(value) < UNKNOWN) }))
    .filter(({ points }) => points.length > 0);
  const all = drawn.flatMap(({ points }) => points);
  if (all.length === 0) return h("p", { class: "soft" }, "No figures yet.");
  const values = all.map(([, value]) => value);
  const positive = values.every((value) => value > 0);
  const [low0, high0] = [Math.min(...values), Math.max(...values)];
  const logarithmic = positive && high0 / low0 > 10;
  const put = logarithmic ? Math.log10 : (value: number) => value;
  const [low, high] = logarithmic ? [put(low0), put(high0)] : [Math.min(low0, 0), high0];
  const first = Math.min(...all.map(([x]) => x));
  const last = Math.max(...all.map(([x]) => x), first + 1e-9);
  const x = (value: number) => LEFT + ((value - first) / (last - first)) * (width - LEFT - 8);
  const y = (value: number) => TOP + (1 - (put(value) - low) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM);
  const picture = s("svg", { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label });
  for (let step = 0; step <= 4; step++) {
    const place = low + ((high - low) * step) / 4;
    const value = logarithmic ? 10 ** place : place;
    const at = y(value);
    picture.append(s("line", { class: "grid", x1: LEFT, x2: width - 8, y1: at, y2: at }), s("text", { x: LEFT - 6, y: at + 4, "text-anchor": "end" }, short(value)));
  }
  for (const share of [0, 0.5, 1]) {
    const at = first + (last - first) * share;
    picture.append(s("text", { x: x(at), y: HEIGHT - 6, "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" }, `${short(at)} ${axis}`));
  }
  drawn.forEach(({ points }, place) => {
    const path = points.map(([px, py], index) => `${index === 0 ? "M" : "L"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`).join("");
    const end = points[points.length - 1]!;
    picture.append(s("path", { d: path, style: `stroke: ${seriesColour(place)}` }), s("circle", { cx: x(end[0]), cy: y(end[1]), r: 2.6, style: `fill: ${seriesColour(place)}` }));
  });
  if (marker !== undefined) picture.append(s("line", { x1: x(marker), x2: x(marker), y1: TOP, y2: HEIGHT - BOTTOM, style: "stroke: var(--ink-soft); stroke-dasharray: 3 3" }));
  const names = h("ul", { class: "keys" }, ...drawn.map(({ name, points }, place) => {
    const value = points[points.length - 1]![1];
    return h("li", {}, h("span", { style: `color: ${seriesColour(place)}`, "aria-hidden": "true" }, "● "), name, " ", h("span", { class: "number" }, short(value)));
  }));
  return h("div", { style: `max-width: ${width * 1.25}px` }, picture, names);
}
