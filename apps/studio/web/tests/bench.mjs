// Figures of docs/guides/studio.md: `node bench.mjs PROGRAM [SECONDS]`. One client at sixty poses per second, a second one
// beside it, twenty at once for so many seconds, and how soon Mira is on the screen.

import { readFileSync } from "node:fs";
import WebSocket from "ws";
import { join } from "node:path";
import { launch, median, newPage, scratch, settled, startStudio, understudy } from "./harness.mjs";
import { handOf } from "./tabs/hand.mjs";

const [program, secondsOfLoad = "60"] = process.argv.slice(2);
const { folder, remove } = await scratch();
const studio = await startStudio(program, folder);
const TICKS = 100;

/** Seconds of processor time and bytes in memory of the studio. */
function used() {
  const stat = readFileSync(`/proc/${studio.pid}/stat`, "utf8").split(") ")[1].split(" ");
  const memory = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${studio.pid}/status`, "utf8"))[1]) * 1024;
  return { seconds: (Number(stat[11]) + Number(stat[12])) / TICKS, memory };
}

/** A tab without a page: asks for poses at a rate and hears the answers. */
async function client(rig) {
  const response = await fetch(new URL(`api/rig?name=${rig}`, studio.address));
  const data = await response.arrayBuffer();
  const length = new DataView(data).getUint32(0, true);
  const { controls, vertices } = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  const socket = new WebSocket(new URL("api/socket", studio.address).href.replace("http", "ws"));
  socket.binaryType = "arraybuffer";
  await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject; });
  const state = { heard: 0, sent: 0, waits: [], evaluated: [], errors: 0, vertices };
  const times = new Map();
  let opened;
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") {
      const message = JSON.parse(data);
      if (message.id === 1) opened(message);
      if (message.problem || message.error) state.errors += 1;
      return;
    }
    const number = new Uint32Array(data, 0, 2)[1];
    state.heard += 1;
    state.evaluated.push(new Float32Array(data, 20, 1)[0]);
    state.waits.push(performance.now() - times.get(number));
    times.delete(number);
  };
  await new Promise((resolve) => { opened = resolve; socket.send(JSON.stringify({ id: 1, do: "open", rig, twin: null })); });
  const pose = Float32Array.from(controls, (control) => control.default);
  return {
    state,
    close: () => socket.close(),
    /** Sends `rate` poses per second for so long. */
    async stream(rate, seconds) {
      const begin = performance.now();
      Object.assign(state, { heard: 0, sent: 0, waits: [], evaluated: [] });
      while (performance.now() - begin < seconds * 1000) {
        const due = Math.floor(((performance.now() - begin) / 1000) * rate);
        while (state.sent < due) {
          controls.forEach((control, place) => {
            const wave = 0.5 - 0.5 * Math.cos(state.sent / 20 + place);
            pose[place] = control.default + 0.3 * wave * ((wave > 0 ? control.high : control.low) - control.default);
          });
          const message = new ArrayBuffer(12 + pose.length * 4);
          new Uint32Array(message, 0, 3).set([1, state.sent, 1]);
          new Float32Array(message, 12).set(pose);
          times.set(state.sent, performance.now());
          socket.send(message);
          state.sent += 1;
        }
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
      return state.heard / seconds;
    },
  };
}

async function main() {
  console.log("one client, 60 poses per second for 10 s");
  for (const rig of ["mira", "rook"]) {
    const one = await client(rig);
    await one.stream(60, 1);
    const before = used();
    const rate = await one.stream(60, 10);
    const share = (used().seconds - before.seconds) / 10;
    console.log(`  ${rig}: ${one.state.vertices} vertices, ${rate.toFixed(1)} answers per second, ${(share * 100).toFixed(1)} % of one core, ` +
      `evaluated in ${median(one.state.evaluated).toFixed(2)} ms, answered after ${median(one.state.waits).toFixed(2)} ms`);
    one.close();
  }
  const [a, b] = [await client("mira"), await client("mira")];
  const alone = await a.stream(60, 5);
  const [first, second] = await Promise.all([a.stream(60, 5), b.stream(60, 5)]);
  console.log(`a second client: the first gets ${first.toFixed(1)} per second beside ${second.toFixed(1)}, alone ${alone.toFixed(1)}`);
  a.close();
  b.close();

  const seconds = Number(secondsOfLoad);
  const crowd = await Promise.all(Array.from({ length: 20 }, (_, place) => client(place % 2 ? "rook" : "mira")));
  await Promise.all(crowd.map((one) => one.stream(15, 2)));
  const start = used();
  const rates = await Promise.all(crowd.map((one) => one.stream(15, seconds)));
  const end = used();
  const errors = crowd.reduce((sum, one) => sum + one.state.errors, 0);
  console.log(`20 clients, 15 poses per second each, ${seconds} s: ${rates.reduce((x, y) => x + y, 0).toFixed(0)} answers per second, slowest client ${Math.min(...rates).toFixed(1)}, ` +
    `${errors} errors, memory ${(start.memory / 1e6).toFixed(0)} → ${(end.memory / 1e6).toFixed(0)} MB, ${(((end.seconds - start.seconds) / seconds) * 100).toFixed(0)} % of one core`);
  crowd.forEach((one) => one.close());

  const browser = await launch();
  const shown = [];
  for (let visit = 0; visit < 5; visit++) {
    const { page } = await newPage(browser);
    const from = performance.now();
    await page.goto(studio.address, { waitUntil: "commit" });
    await page.waitForFunction(() => Number(document.querySelector("#panel-pose .stage")?.dataset.posed ?? 0) > 1, null, { polling: 20, timeout: 60_000 });
    shown.push(performance.now() - from);
    await page.close();
  }
  console.log(`Mira moves ${(median(shown) / 1000).toFixed(2)} s after opening (first visit ${(shown[0] / 1000).toFixed(2)} s; headless Chromium, WebGL in software)`);
  await drag(browser);
  await browser.close();
}

/** A corner of the mouth is dragged for some seconds, by a small twin that follows points. */
async function drag(browser) {
  await understudy(program, ["sample", "mira", "-o", join(folder, "data"), "--poses", "400", "--method", "noise"]);
  for (const kind of ["skin", "face"]) {
    const twin = join(folder, `${kind}.twin`);
    const short = kind === "skin" ? ["--epochs", "20"] : ["--coarse-steps", "60", "--refinement-steps", "20"];
    await understudy(program, ["learn", kind, join(folder, "data"), "-o", twin, ...short]);
    await understudy(program, ["learn", "ik", twin, join(folder, "data"), "-o", twin, "--steps", kind === "skin" ? "400" : "60"]);
    const { page } = await newPage(browser);
    await page.goto(studio.address);
    await page.getByLabel("Twin", { exact: true }).selectOption({ label: `${kind}.twin (${kind})` });
    await page.waitForFunction(() => !document.querySelector("#panel-pose .segmented button:nth-child(2)").disabled, null, { timeout: 30_000 });
    await page.locator("#panel-pose select[aria-label=Clip]").selectOption("");
    await page.getByRole("button", { name: "Reset all" }).click();
    await page.getByRole("radio", { name: "Twin", exact: true }).click();
    await page.locator("#panel-pose canvas").focus();
    await page.keyboard.press("1");
    await page.getByRole("button", { name: "Drag", exact: true }).click();
    await settled(page);
    const hand = handOf(page);
    const scale = await hand.scale("mouth_corner_L", "mouth_corner_R");
    const cursor = await hand.drag("mouth_corner_L", 16, -12);
    const { at } = await hand.choose("mouth_corner_L");
    const off = Math.hypot(at[0] - cursor[0], at[1] - cursor[1]) * scale;
    const drawn = () => page.evaluate(() => Number(document.querySelector("#panel-pose .stage").dataset.drawn));
    await page.mouse.move(at[0], at[1]);
    await page.mouse.down();
    const [first, begin] = [await drawn(), performance.now()];
    for (let step = 0; performance.now() - begin < 4000; step++) {
      await page.mouse.move(at[0] + 14 * Math.sin(step / 9), at[1] + 10 * Math.sin(step / 13));
      await page.waitForTimeout(8);
    }
    const rate = (await drawn() - first) / ((performance.now() - begin) / 1000);
    await page.mouse.up();
    const { drags, draws } = await page.evaluate(() => {
      const told = {};
      document.querySelector("#panel-pose .stage").dispatchEvent(new CustomEvent("measure", { detail: told }));
      return told;
    });
    console.log(`dragging a corner of the mouth, ${kind} twin: ${off.toFixed(2)} mm from the cursor after 20 pixels; per frame ${median(drags).toFixed(2)} ms for the solve, ` +
      `17,589 vertices and normals (best ${Math.min(...drags).toFixed(2)}), ${median(draws).toFixed(2)} ms to hand the frame over; ${rate.toFixed(0)} frames per second (WebGL in software)`);
    await page.close();
  }
}

try {
  await main();
} finally {
  await studio.stop();
  await remove();
}
