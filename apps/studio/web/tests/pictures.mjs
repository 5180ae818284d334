// Pictures of the studio for README and guide: `node pictures.mjs PROGRAM FOLDER [still|tabs|motion|capture|animation]`. The Pose tab
// with errors and with points that are dragged, the other tabs, and an animation of the stage as an animated PNG, put together from
// single pictures here: the format is a few chunks around them.

import { existsSync } from "node:fs";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { TASK, actorVideo, seeFaces, withCamera } from "./tabs/capture.mjs";
import { handOf } from "./tabs/hand.mjs";
import { closeToasts, launch, newPage, scratch, settled, startStudio, understudy, waitForPoses } from "./harness.mjs";

const [program, out, only] = process.argv.slice(2);
const wanted = (name) => only === undefined || only === name;
const [WIDTH, HEIGHT, FRAMES, SECONDS] = [420, 360, 36, 3.5];
const COLOURS = 128;
const { folder, remove } = await scratch();
/** As a film's project would be called. */
const project = join(folder, "hero");
await mkdir(join(project, "studio"), { recursive: true });

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});
function chunk(kind, data) {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length, 0);
  bytes.write(kind, 4, "latin1");
  data.copy(bytes, 8);
  let crc = 0xffffffff;
  for (const byte of bytes.subarray(4, 8 + data.length)) crc = (crc >>> 8) ^ crcTable[(crc ^ byte) & 255];
  bytes.writeUInt32BE((crc ^ 0xffffffff) >>> 0, 8 + data.length);
  return bytes;
}
const numbers = (...parts) => Buffer.concat(parts.map(([size, value]) => {
  const bytes = Buffer.alloc(size);
  bytes.writeUIntBE(value, 0, size);
  return bytes;
}));

/** Colours by which most pixels of all frames are met: boxes of colours, cut where they are longest. */
function palette(frames) {
  const counts = new Map();
  for (const frame of frames) for (let at = 0; at < frame.length; at += 4) {
    const key = ((frame[at] >> 2) << 12) | ((frame[at + 1] >> 2) << 6) | (frame[at + 2] >> 2);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const colours = [...counts].map(([key, count]) => [(key >> 12) << 2, ((key >> 6) & 63) << 2, (key & 63) << 2, count]);
  const boxes = [colours];
  const span = (box, axis) => box.reduce((most, c) => Math.max(most, c[axis]), 0) - box.reduce((least, c) => Math.min(least, c[axis]), 255);
  const weight = (box) => Math.max(span(box, 0), span(box, 1), span(box, 2)) * Math.sqrt(box.reduce((sum, c) => sum + c[3], 0));
  while (boxes.length < COLOURS) {
    boxes.sort((a, b) => weight(b) - weight(a));
    const box = boxes.shift();
    if (box.length < 2) { boxes.push(box); break; }
    const axis = [0, 1, 2].sort((a, b) => span(box, b) - span(box, a))[0];
    box.sort((a, b) => a[axis] - b[axis]);
    const half = box.reduce((sum, c) => sum + c[3], 0) / 2;
    let cut = 1;
    for (let sum = box[0][3]; cut < box.length - 1 && sum < half; cut++) sum += box[cut][3];
    boxes.push(box.slice(0, cut), box.slice(cut));
  }
  return boxes.map((box) => {
    const all = box.reduce((sum, c) => sum + c[3], 0);
    return [0, 1, 2].map((axis) => Math.round(box.reduce((sum, c) => sum + c[axis] * c[3], 0) / all));
  });
}

function animation(frames, delay) {
  const colours = palette(frames);
  const nearest = new Map();
  const index = (r, g, b) => {
    const key = ((r >> 2) << 12) | ((g >> 2) << 6) | (b >> 2);
    let found = nearest.get(key);
    if (found === undefined) {
      let least = Infinity;
      colours.forEach(([x, y, z], place) => {
        const distance = (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2;
        if (distance < least) [least, found] = [distance, place];
      });
      nearest.set(key, found);
    }
    return found;
  };
  const packed = frames.map((frame) => {
    const rows = Buffer.alloc((WIDTH + 1) * HEIGHT);
    for (let y = 0; y < HEIGHT; y++) for (let x = 0; x < WIDTH; x++) {
      const at = (y * WIDTH + x) * 4;
      rows[y * (WIDTH + 1) + 1 + x] = index(frame[at], frame[at + 1], frame[at + 2]);
    }
    return deflateSync(rows, { level: 9 });
  });
  let sequence = 0;
  const control = () => chunk("fcTL", numbers([4, sequence++], [4, WIDTH], [4, HEIGHT], [4, 0], [4, 0], [2, delay], [2, 1000], [1, 0], [1, 0]));
  const body = packed.flatMap((data, place) => [control(), place === 0 ? chunk("IDAT", data) : chunk("fdAT", Buffer.concat([numbers([4, sequence++]), data]))]);
  return Buffer.concat([
    Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]),
    chunk("IHDR", numbers([4, WIDTH], [4, HEIGHT], [1, 8], [1, 3], [3, 0])),
    chunk("acTL", numbers([4, frames.length], [4, 0])),
    chunk("PLTE", Buffer.from(colours.flat())),
    ...body,
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** Pixels of a picture, read by the browser. */
async function pixels(page, png) {
  const data = await page.evaluate(async ([text, width, height]) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes]));
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0, width, height);
    const { data } = context.getImageData(0, 0, width, height);
    let out = "";
    for (let at = 0; at < data.length; at += 8192) out += String.fromCharCode(...data.subarray(at, at + 8192));
    return btoa(out);
  }, [png.toString("base64"), WIDTH, HEIGHT]);
  return Buffer.from(data, "base64");
}

// A twin to look at beside her: small, but a real one; or the file that UNDERSTUDY_TWIN names.
if (["still", "capture"].some(wanted)) {
  const [data, twin] = [join(folder, "data"), join(project, "studio/mira.twin")];
  if (process.env.UNDERSTUDY_TWIN) await copyFile(process.env.UNDERSTUDY_TWIN, twin);
  else {
    await understudy(program, ["sample", "mira", "-o", data, "--poses", "800", "--method", "noise", "--exclude", "smile"]);
    await understudy(program, ["learn", "skin", data, "-o", twin]);
    await understudy(program, ["learn", "ik", twin, data, "-o", twin, "--steps", "800"]);
  }
}
if (wanted("motion")) await understudy(program, ["motion", "learn", "mira", "-o", join(project, "studio/mira.motion")]);
const studio = await startStudio(program, project);
const browser = await launch();
try {
  const { page } = await newPage(browser, { deviceScaleFactor: 1 });
  await page.goto(studio.address);
  await waitForPoses(page, 3);
  await page.locator("#panel-pose select[aria-label=Clip]").selectOption("smile");
  await waitForPoses(page, 2);
  await page.keyboard.press("Space");
  await page.getByLabel("Time in the clip").fill("1.9");
  await page.waitForTimeout(600);
  if (wanted("still")) {
    await page.getByRole("radio", { name: "Side by side" }).click();
    await page.getByRole("button", { name: "Error", exact: true }).first().click();
    await page.getByLabel("End of the scale").first().selectOption("5");
    await page.getByLabel("Search controls").fill("mouth");
    await page.waitForTimeout(1500);
    await page.screenshot({ path: join(out, "studio.png") });
    await page.getByRole("button", { name: "Error", exact: true }).first().click();
    await dragged(page);
  }
  if (wanted("animation")) await animate(page);
  if (wanted("motion")) await actInGame(page);
  if (wanted("capture")) await perform(page);
  if (wanted("tabs")) await showTabs(page);
} finally {
  await browser.close();
  await studio.stop();
  await remove();
}

/** Points on her face, two of them dragged and one pinned. */
async function dragged(page) {
  await page.locator("#panel-pose select[aria-label=Clip]").selectOption("");
  await page.getByRole("radio", { name: "Original" }).click();
  await page.getByRole("button", { name: "Reset all" }).click();
  await page.getByRole("button", { name: "Drag", exact: true }).click();
  await page.waitForTimeout(800);
  const hand = handOf(page);
  await hand.choose("chin");
  await hand.bar.getByRole("button", { name: "Pin", exact: true }).click();
  await hand.drag("brow_L_3", 2, -12);
  await hand.drag("mouth_corner_L", 16, -12);
  await settled(page);
  await page.mouse.move(700, 300);
  await page.waitForTimeout(400);
  await page.screenshot({ path: join(out, "studio-drag.png") });
  await page.getByRole("button", { name: "Drag", exact: true }).click();
  await page.getByRole("button", { name: "Reset all" }).click();
  await page.locator("#panel-pose select[aria-label=Clip]").selectOption("smile");
  await page.waitForTimeout(800);
  await page.keyboard.press("Space");
}

/** The Motion tab in the middle of a game, while she does something about a move. */
async function actInGame(page) {
  await page.getByRole("tab", { name: "Motion" }).click();
  const panel = page.locator("#panel-motion");
  const said = panel.locator(".said");
  await page.waitForFunction(() => Number(document.querySelector("#panel-motion .stage").dataset.drawn ?? 0) > 5, null, { timeout: 60_000 });
  await panel.getByLabel("Speed").selectOption("2");
  await panel.getByRole("button", { name: "New game" }).click();
  for (const square of [5, 1]) {
    const cell = panel.getByRole("button", { name: `Square ${square}, free` });
    const other = panel.locator(".board .cell:enabled").first();
    await other.waitFor({ timeout: 120_000 });
    await ((await cell.count()) > 0 && (await cell.isEnabled()) ? cell : other).click();
    await page.waitForTimeout(300);
  }
  await page.waitForFunction(() => ["objects", "intimidates"].includes(document.querySelector("#panel-motion .said").dataset.mood), null, { timeout: 60_000 }).catch(() => {});
  await page.waitForTimeout(1100);
  console.log(`${out}/studio-motion.png: ${await said.textContent()}`);
  await page.screenshot({ path: join(out, "studio-motion.png") });
}

/** Words that come and go are not for pictures. */
async function quiet(page) {
  await closeToasts(page);
  await page.mouse.move(640, 716);
  await page.waitForTimeout(400);
}

/** Weights on her, a take inverted, and a twin that is learned beside one that was. */
async function showTabs(page) {
  await page.getByRole("tab", { name: "Weights" }).click();
  const weights = page.locator("#panel-weights");
  await weights.getByRole("button", { name: "Try it with six points" }).click({ timeout: 60_000 });
  await weights.getByLabel("Kind of weights").selectOption("quasi");
  await weights.getByRole("button", { name: "Solve", exact: true }).click();
  await page.waitForFunction(() => document.querySelector("#panel-weights .stage").dataset.state === "solved", null, { timeout: 180_000 });
  await page.waitForTimeout(1500);
  await quiet(page);
  await page.screenshot({ path: join(out, "studio-weights.png") });

  await page.getByRole("tab", { name: "Invert" }).click();
  await page.getByLabel("Clip of the rig").selectOption("smile");
  await page.locator("#panel-invert svg.chart").waitFor({ timeout: 120_000 });
  // Dear weights: what they cost is seen.
  await page.locator("#alpha").fill("-2.5");
  await page.waitForTimeout(8000);
  await page.getByLabel("Frame", { exact: true }).fill("57");
  await page.waitForTimeout(2000);
  await quiet(page);
  await page.screenshot({ path: join(out, "studio-invert.png") });

  await page.getByRole("tab", { name: /Learn/ }).click();
  const learn = page.locator("#panel-learn");
  const card = learn.locator("article[aria-label='face twin of mira']");
  const begin = async (kind, poses, minutes) => {
    await learn.getByLabel("Kind").selectOption(kind);
    await page.getByLabel("New poses to sample").fill(String(poses));
    await page.getByLabel("Minutes of training, about").fill(String(minutes));
    await page.getByRole("button", { name: "Start learning" }).click();
  };
  await begin("skin", 300, 0.2);
  await learn.locator("article[aria-label='skin twin of mira'][data-state=done]").waitFor({ timeout: 400_000 });
  await begin("face", 300, 3);
  await card.locator("svg.chart").waitFor({ timeout: 200_000 });
  await page.waitForTimeout(40_000);
  await quiet(page);
  await page.screenshot({ path: join(out, "studio-learn.png") });
  await card.locator("[data-action=cancel]").click();
}

/** An actor before the camera, and Mira who does the same. */
async function perform(page) {
  if (!existsSync(TASK)) {
    console.log(`left out: ${out}/studio-capture.png, there is no ${TASK}`);
    return;
  }
  const own = await launch(withCamera(await actorVideo(page, program, folder)));
  try {
    const { page: live } = await newPage(own, { permissions: ["camera"], deviceScaleFactor: 1 });
    await live.goto(`${studio.address}#capture`);
    await seeFaces(live);
    // Not while the actor does nothing.
    const acting = () => Object.values(JSON.parse(document.querySelector("#panel-capture .stage").dataset.shapes ?? "{}")).some((score) => score > 0.5);
    await live.waitForFunction(acting, null, { timeout: 60_000, polling: 30 }).catch(() => {});
    await quiet(live);
    await live.screenshot({ path: join(out, "studio-capture.png") });
  } finally {
    await own.close();
  }
}

/** The stage alone, while she smiles. */
async function animate(page) {
  await page.setViewportSize({ width: 1100, height: 620 });
  await page.getByRole("radio", { name: "Original" }).click();
  await page.addStyleTag({ content: ".chip { display: none }" });
  await page.getByLabel("Time in the clip").fill("0");
  await page.waitForTimeout(1500);
  const stage = page.locator("#panel-pose .stage");
  const frames = [];
  for (let frame = 0; frame < FRAMES; frame++) {
    await page.getByLabel("Time in the clip").fill(String((frame / FRAMES) * SECONDS));
    await page.waitForTimeout(250);
    const box = await stage.boundingBox();
    const side = Math.min(box.width, (box.height * WIDTH) / HEIGHT);
    const clip = { x: box.x + (box.width - side) / 2, y: box.y, width: side, height: (side * HEIGHT) / WIDTH };
    frames.push(await pixels(page, await page.screenshot({ clip })));
  }
  const bytes = animation(frames, Math.round((SECONDS / FRAMES) * 1000));
  if (bytes.length > 2_000_000) throw new Error(`the animation has ${bytes.length} bytes, more than 2 MB`);
  await writeFile(join(out, "studio-animation.png"), bytes);
  console.log(`${out}/studio-animation.png (${(bytes.length / 1000).toFixed(0)} kB)`);
}
