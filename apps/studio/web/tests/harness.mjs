// What tests, pictures and the benchmark share: the program on a scratch project, Chromium without a screen.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { chromium } from "playwright-core";

/** The browser that `UNDERSTUDY_CHROMIUM` names, or the one in the path, as the commands of the repository choose it. */
function browserFile() {
  const name = process.env.UNDERSTUDY_CHROMIUM ?? "chromium";
  if (isAbsolute(name)) return name;
  const files = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, name));
  const file = files.find((candidate) => existsSync(candidate));
  if (!file) throw new Error(`${name} is not in the path: install it, or name a browser by UNDERSTUDY_CHROMIUM`);
  return file;
}
/** WebGL by software, no talk with servers of the browser's maker. */
const FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist",
  "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** A scratch folder that ends with the process's work. */
export async function scratch() {
  const folder = await mkdtemp(join(tmpdir(), "understudy-studio-"));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Runs a command of the program to its end. */
export function understudy(program, words, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { cwd, stdio: ["ignore", "pipe", "pipe"] });
    let out = "", problems = "";
    child.stdout.on("data", (data) => { out += data; });
    child.stderr.on("data", (data) => { problems += data; });
    child.on("error", reject);
    child.on("exit", (code) => (code === 0 ? resolve(out) : reject(new Error(`understudy ${words.join(" ")}: ${problems}`))));
  });
}

/** The studio on a project; the address is the only line that it prints. */
export async function startStudio(program, project) {
  // For people who work on the page: the folder that `npm run build` fills, without building the program again.
  const page = process.env.UNDERSTUDY_PAGE ? ["--page", process.env.UNDERSTUDY_PAGE] : [];
  const child = spawn(program, ["studio", "--no-browser", "--port", "0", "--project", project, ...page], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal)));
  const address = await new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
      if (text.includes("\n")) resolve(text.trim());
    });
    child.on("exit", () => reject(new Error("the studio ended before it printed its address")));
  });
  return { address, pid: child.pid, async stop() { child.kill("SIGINT"); return ended; } };
}

/** With flags beside the usual ones. */
export const launch = (more = []) => chromium.launch({ executablePath: browserFile(), args: [...FLAGS, ...more] });

/** A page whose complaints are kept. */
export async function newPage(browser, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, ...options });
  // A machine that does other things beside is slow, not wrong.
  page.setDefaultTimeout(120_000);
  const problems = [];
  page.on("console", (message) => {
    // Chromium speaks of its own software rasteriser.
    if (["error", "warning"].includes(message.type()) && !/GPU stall|swiftshader|GL Driver/i.test(message.text())) problems.push(`${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => problems.push(error.message));
  return { page, problems };
}

/** How many poses the stage has shown. */
export const posed = (page) => page.evaluate(() => Number(document.querySelector("#panel-pose .stage")?.dataset.posed ?? 0));

/** Waits until the stage has shown so many more. */
export async function waitForPoses(page, more = 2) {
  const from = await posed(page);
  await page.waitForFunction((want) => Number(document.querySelector("#panel-pose .stage")?.dataset.posed ?? 0) >= want, from + more, { timeout: 120_000 });
}

/** Waits until the stage shows what was asked for: nothing new came for a while, and the server solves nothing. */
export async function settled(page) {
  await page.waitForFunction(() => !document.querySelector("#panel-pose .hand[data-solving]"), null, { timeout: 120_000 });
  for (let before = -1, now = await posed(page), quiet = 0; quiet < 3; before = now, now = await posed(page)) {
    quiet = now === before ? quiet + 1 : 0;
    await page.waitForTimeout(150);
  }
}

/** Puts away what the page says; words may vanish by themselves meanwhile. */
export const closeToasts = (page) => page.evaluate(() => document.querySelectorAll(".toast button").forEach((button) => button.click()));

export const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
