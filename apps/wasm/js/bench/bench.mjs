// Twins natively, in Node.js and in Chromium, on the same poses: `node bench.mjs NATIVE [--chromium] [--json | --check] TWIN…`, where
// NATIVE is the example program `native` of `apps/wasm`. Rounds alternate, and of every runner the best run counts: what
// other programs do to the machine at the time is left out.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, extname, join } from "node:path";
import { argv, exit, stderr } from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { hasRelaxedSimd, Twin, TwinModule } from "../dist/index.js";
import { largestDifference, parsePoses, timeRound } from "./rounds.mjs";

const ROUNDS = 12;
/** What `--check` allows between vertices, mm; it times nothing. */
const MOST_APART = 0.01;
/** Share of the example page's picture that its twin must cover. */
const LEAST_COVERED = 0.01;
const MODULES = ["understudy.wasm", "understudy-relaxed.wasm"];
const [native, ...words] = argv.slice(2);
const options = words.filter((word) => word.startsWith("--"));
const twins = words.filter((word) => !word.startsWith("--"));
const folder = await mkdtemp(join(tmpdir(), "understudy-bench-"));

/** The native program as a runner: one round for every line. */
async function startNative(twin, poses) {
  const child = spawn(native, [twin, poses], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`${native} ended early`);
    return value;
  };
  await line();
  return {
    name: "native",
    round: async () => {
      child.stdin.write("\n");
      return Number(await line());
    },
    end: () => child.stdin.end(),
  };
}

async function startNode(name, file, data) {
  const module = await TwinModule.create(new URL(`../dist/${name}`, import.meta.url));
  const twin = await Twin.load(await readFile(file), { module });
  return {
    name: `Node.js ${process.versions.v8.split(".").slice(0, 2).join(".")}, ${module.lanes}`,
    difference: largestDifference(twin, data),
    round: async () => timeRound(twin, data),
    end: () => twin.free(),
  };
}

/** A page that asks for work and answers: Chromium, without a driver. */
class Browser {
  #waiting;
  #asked = [];
  #answers = new Map();
  #number = 0;

  static async start(files) {
    const browser = new Browser();
    const root = new URL("../", import.meta.url);
    const types = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };
    browser.server = createServer(async (request, response) => {
      const path = new URL(request.url, "http://localhost").pathname;
      if (path === "/work") {
        browser.#waiting = response;
        return browser.#hand();
      }
      if (path === "/answer") {
        const chunks = [];
        for await (const chunk of request) chunks.push(chunk);
        const { number, value, problem } = JSON.parse(Buffer.concat(chunks).toString());
        const { resolve, reject } = browser.#answers.get(number);
        problem === undefined ? resolve(value) : reject(new Error(problem));
        return response.end();
      }
      try {
        const file = files.get(path) ?? fileURLToPath(new URL(`.${path}`, root));
        response.setHeader("content-type", types[extname(file)] ?? "application/octet-stream");
        response.end(await readFile(file));
      } catch {
        response.statusCode = 404;
        response.end();
      }
    });
    browser.server.listen(0, "127.0.0.1");
    await once(browser.server, "listening");
    const address = `http://127.0.0.1:${browser.server.address().port}/bench/page.html`;
    // WebGL in software: the example page draws.
    const drawing = options.includes("--check") ? ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"] : ["--disable-gpu"];
    const flags = ["--headless", "--no-sandbox", ...drawing, `--user-data-dir=${join(folder, "profile")}`];
    browser.child = spawn(process.env.UNDERSTUDY_CHROMIUM ?? "chromium", [...flags, address], { stdio: "ignore" });
    browser.child.on("error", (problem) => browser.#fail(problem));
    browser.child.on("exit", () => browser.#fail(new Error("chromium ended")));
    browser.name = await browser.ask("version");
    return browser;
  }

  #fail(problem) {
    for (const { reject } of this.#answers.values()) reject(problem);
  }

  #hand() {
    if (this.#waiting === undefined || this.#asked.length === 0) return;
    this.#waiting.end(JSON.stringify(this.#asked.shift()));
    this.#waiting = undefined;
  }

  ask(what, ...values) {
    const number = this.#number++;
    this.#asked.push({ number, what, values });
    const answer = new Promise((resolve, reject) => this.#answers.set(number, { resolve, reject }));
    this.#hand();
    return answer;
  }

  async runner(name, twin, poses) {
    const { lanes, difference } = await this.ask("load", `../dist/${name}`, twin, poses);
    const place = name;
    return {
      name: `${this.name}, ${lanes}`,
      difference,
      round: () => this.ask("round", place),
      end: () => this.ask("free", place),
    };
  }

  async end() {
    this.child.kill();
    await once(this.child, "exit").catch(() => {});
    this.server.closeAllConnections();
    this.server.close();
  }
}

const results = [];
let browser;
try {
  const files = new Map();
  for (const [number, twin] of twins.entries()) {
    files.set(`/twins/${number}`, twin).set(`/poses/${number}`, join(folder, `${number}.poses`));
  }
  if (options.includes("--chromium")) browser = await Browser.start(files);
  for (const [number, file] of twins.entries()) {
    const poses = join(folder, `${number}.poses`);
    const runners = [await startNative(file, poses)];
    const bytes = await readFile(poses);
    const data = parsePoses(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    for (const name of MODULES) {
      if (name.includes("relaxed") && !hasRelaxedSimd()) stderr.write("this Node.js has no relaxed SIMD\n");
      else runners.push(await startNode(name, file, data));
      if (browser) runners.push(await browser.runner(name, `/twins/${number}`, `/poses/${number}`));
    }
    const best = runners.map(() => Infinity);
    for (let round = 0; round < (options.includes("--check") ? 0 : ROUNDS); round++) {
      for (const [place, runner] of runners.entries()) best[place] = Math.min(best[place], await runner.round());
    }
    for (const [place, runner] of runners.entries()) {
      const { name, difference = 0 } = runner;
      results.push({ twin: basename(file), runner: name, ms: best[place], times: best[place] / best[0], difference_mm: difference });
      await runner.end();
    }
    if (browser && options.includes("--check")) {
      const difference_mm = await browser.ask("mesh", `/twins/${number}`, `/poses/${number}`);
      results.push({ twin: basename(file), runner: `${browser.name}, TwinMesh`, difference_mm });
    }
  }
  if (browser && options.includes("--check")) {
    const covered = await browser.ask("example", `/twins/${twins.length - 1}`);
    if (!(covered > LEAST_COVERED)) throw new Error(`the example page shows no twin: ${covered} of its picture is covered`);
    console.log(`the example page shows ${basename(twins.at(-1))}: ${(100 * covered).toFixed(0)} % of the picture`);
  }
} finally {
  await browser?.end();
  await rm(folder, { recursive: true, force: true });
}
if (options.includes("--check")) {
  const wrong = results.filter(({ difference_mm }) => !(difference_mm <= MOST_APART));
  for (const { twin, runner, difference_mm } of wrong) console.error(`${twin}, ${runner}: ${difference_mm} mm from native`);
  console.log(`${results.length - wrong.length} of ${results.length} within ${MOST_APART} mm: ${[...new Set(results.map((r) => r.runner))].join("; ")}`);
  exit(wrong.length > 0 ? 1 : 0);
} else if (options.includes("--json")) {
  console.log(JSON.stringify(results, null, 1));
} else {
  console.log("twin                    runner                                  ms per pose  × native  largest difference, mm");
  for (const { twin, runner, ms, times, difference_mm } of results) {
    const apart = runner === "native" ? "–" : difference_mm.toFixed(6);
    console.log(`${twin.padEnd(24)}${runner.padEnd(40)}${ms.toFixed(3).padStart(11)}${times.toFixed(2).padStart(10)}${apart.padStart(24)}`);
  }
}
exit(0);
