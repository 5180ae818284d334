// The Capture tab: a camera that plays a synthetic actor from a file drives Mira. The frames and MediaPipe's landmarker come from the
// shared data; without it the checks are left out, with a word.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, newPage, understudy } from "../harness.mjs";
import { difference, look } from "../pixels.mjs";

const DATA = process.env.UNDERSTUDY_DATA ?? fileURLToPath(new URL("../../../../../../shared/data", import.meta.url));
/** MediaPipe's landmarker. */
export const TASK = join(DATA, "mediapipe/face_landmarker_v2_with_blendshapes_float16.task");
const SIDE = 512;

/** Complaints of a page that are not MediaPipe's own words about its graphics card. */
export const ownWords = (problems) => problems.filter((text) => !/XNNPACK|OpenGL|gl_context|W0000|I0000|inference_feedback|landmark_projection|face_landmarker_graph/i.test(text));

/** What a browser is started with that shall take a video for its camera. */
export const withCamera = (video) => ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", `--use-file-for-fake-video-capture=${video}`];

/** Two seconds of a synthetic actor before the camera. */
export async function actorVideo(page, program, folder) {
  await understudy(program, ["capture", "--actor", "synthetic:3", "--seconds", "2", "--draw", join(folder, "actor")]);
  const names = (await readdir(join(folder, "actor"))).filter((name) => name.endsWith(".png")).sort();
  assert.ok(names.length >= 50, `${names.length} frames`);
  const video = join(folder, "actor.y4m");
  await cameraFile(page, names.map((name) => join(folder, "actor", name)), video);
  return video;
}

/** The landmarker and the camera: faces are seen. */
export async function seeFaces(live) {
  await live.locator("#panel-capture select[aria-label=Twin]").waitFor();
  await live.waitForFunction(() => document.querySelector("#panel-capture select[aria-label=Twin]").value !== "");
  const [chooser] = await Promise.all([live.waitForEvent("filechooser"), live.getByRole("button", { name: "Face landmarker (.task)…" }).click()]);
  await chooser.setFiles(TASK);
  await live.waitForFunction(() => document.querySelector("#panel-capture .stage").dataset.task === "ready", null, { timeout: 120_000 });
  await live.getByRole("button", { name: "Webcam" }).click();
  await live.waitForFunction(() => Number(document.querySelector("#panel-capture .stage").dataset.seen ?? 0) >= 20, null, { timeout: 120_000 });
}

/** Frames of PNG as an uncompressed video that Chromium's fake camera plays; the browser knows PNG. */
async function cameraFile(page, files, target) {
  const parts = [Buffer.from(`YUV4MPEG2 W${SIDE} H${SIDE} F30:1 Ip A1:1 C420jpeg\n`)];
  for (const file of files) {
    const planes = await page.evaluate(async ([data, side]) => {
      const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
      const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
      const canvas = new OffscreenCanvas(side, side);
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0, side, side);
      const { data: pixels } = context.getImageData(0, 0, side, side);
      const half = side / 2;
      const out = new Uint8Array(side * side + 2 * half * half);
      const sums = new Float32Array(2 * half * half);
      for (let y = 0; y < side; y++) {
        for (let x = 0; x < side; x++) {
          const [r, g, b] = pixels.subarray(4 * (y * side + x));
          out[y * side + x] = 0.299 * r + 0.587 * g + 0.114 * b;
          const cell = (y >> 1) * half + (x >> 1);
          sums[cell] += 128 - 0.168736 * r - 0.331264 * g + 0.5 * b;
          sums[half * half + cell] += 128 + 0.5 * r - 0.418688 * g - 0.081312 * b;
        }
      }
      sums.forEach((sum, cell) => { out[side * side + cell] = sum / 4; });
      let text = "";
      for (let at = 0; at < out.length; at += 8192) text += String.fromCharCode(...out.subarray(at, at + 8192));
      return btoa(text);
    }, [(await readFile(file)).toString("base64"), SIDE]);
    parts.push(Buffer.from("FRAME\n"), Buffer.from(planes, "base64"));
  }
  await writeFile(target, Buffer.concat(parts));
}

export async function check({ page, step, folder, program, address, shots, serious }) {
  if (!existsSync(TASK)) {
    console.log(`left out: capture, no shared data at ${DATA}`);
    return;
  }
  let video;
  await step("a synthetic actor stands before the camera", async () => { video = await actorVideo(page, program, folder); });
  const browser = await launch(withCamera(video));
  const { page: live, problems } = await newPage(browser, { permissions: ["camera"] });
  const said = () => ownWords(problems);
  const stage = live.locator("#panel-capture .stage");
  const data = (name) => stage.getAttribute(`data-${name}`);
  try {
    await step("the camera drives Mira", async () => {
      await live.goto(`${address}#capture`);
      await live.locator("#panel-capture select[aria-label=Twin]").waitFor();
      await live.waitForFunction(() => document.querySelector("#panel-capture select[aria-label=Twin]").value !== "");
      const rest = await look(live, await live.locator("#panel-capture .stage > canvas").screenshot());
      await seeFaces(live);
      const [frames, seen] = [Number(await data("frames")), Number(await data("seen"))];
      assert.ok(seen >= 0.8 * frames, `a face in ${seen} of ${frames} frames`);
      let most = 0;
      for (let round = 0; round < 20; round++) {
        most = Math.max(most, difference(rest, await look(live, await live.locator("#panel-capture .stage > canvas").screenshot())));
        await live.waitForTimeout(100);
      }
      assert.ok(most > 0.1, `Mira does not move: ${most}`);
      assert.ok(Object.keys(JSON.parse(await data("shapes"))).length > 0, "no score is above nothing");
      await live.screenshot({ path: join(shots, "capture.png") });
      assert.deepEqual(said(), []);
    });
    await step("neutral, mirror, record and export", async () => {
      await live.locator("#panel-capture").getByRole("button", { name: "Neutral" }).click();
      await live.locator("#panel-capture").getByRole("button", { name: "Mirror" }).click();
      await live.locator("#panel-capture").getByRole("button", { name: "Record" }).click();
      await live.waitForTimeout(2500);
      await live.locator(".transport").getByRole("button", { name: "Stop" }).click();
      const [table] = await Promise.all([live.waitForEvent("download"), live.getByRole("button", { name: "Export CSV" }).click()]);
      const lines = (await readFile(await table.path(), "utf8")).trim().split("\n");
      assert.ok(lines.length > 10 && lines[0].startsWith("time,"), lines[0].slice(0, 80));
      const columns = lines[0].split(",").length;
      assert.ok(lines.every((line) => line.split(",").length === columns));
      const moved = lines[0].split(",").some((_, column) => column > 0 && new Set(lines.slice(1).map((line) => line.split(",")[column])).size > 3);
      assert.ok(moved, "every control stands still");
      const [model] = await Promise.all([live.waitForEvent("download", { timeout: 120_000 }), live.getByRole("button", { name: "Export GLB" }).click()]);
      assert.equal((await readFile(await model.path())).toString("latin1", 0, 4), "glTF");
      await live.locator("#panel-capture").getByRole("button", { name: "Stop" }).first().click();
      assert.deepEqual(said(), []);
    });
    await step("a camera that comes too late stays off", async () => {
      // The browser asks the user for a while, as it does on the first visit.
      await live.evaluate(() => {
        const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
        globalThis.cameras = [];
        navigator.mediaDevices.getUserMedia = async (wish) => {
          await new Promise((resolve) => setTimeout(resolve, 700));
          const stream = await ask(wish);
          globalThis.cameras.push(stream);
          return stream;
        };
      });
      const on = () => live.evaluate(() => globalThis.cameras.map((stream) => stream.getTracks().some((track) => track.readyState === "live")));
      const asked = (count) => live.waitForFunction((wanted) => globalThis.cameras.length === wanted, count, { timeout: 120_000 });
      const webcam = live.locator("#panel-capture").getByRole("button", { name: "Webcam" });
      // Asked twice, one camera runs; asked and left, none does.
      await webcam.click();
      await webcam.click();
      await asked(2);
      await live.locator("#panel-capture").getByRole("button", { name: "Stop" }).first().waitFor({ timeout: 120_000 });
      assert.equal((await on()).filter(Boolean).length, 1);
      await live.locator("#panel-capture").getByRole("button", { name: "Stop" }).first().click();
      assert.ok(!(await on()).includes(true));
      await webcam.click();
      await live.getByRole("tab", { name: "Learn" }).click();
      await asked(3);
      await live.waitForTimeout(300);
      assert.ok(!(await on()).includes(true), "a camera runs where nobody sees it");
      assert.deepEqual(said(), []);
    });
  } finally {
    await browser.close();
  }
  await page.getByRole("tab", { name: "Capture" }).click();
  await serious("capture");
}
