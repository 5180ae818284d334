// The studio in a real browser, from opening to closing: `node browser.mjs PROGRAM [--quick]`. Every check stands under the name
// of what somebody does; the first that fails ends the run with a screenshot. `--quick` leaves out what takes minutes: dragging,
// weights, motion, capture, inverting, and pages of other sizes.

import assert from "node:assert/strict";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { closeToasts, launch, newPage, posed, scratch, settled, startStudio, understudy, waitForPoses } from "./harness.mjs";
import { difference, look, warmth } from "./pixels.mjs";
import * as capture from "./tabs/capture.mjs";
import * as hand from "./tabs/hand.mjs";
import * as motion from "./tabs/motion.mjs";
import * as weights from "./tabs/weights.mjs";

/** What tabs check for themselves, once a twin has been learned. */
const TAB_CHECKS = [hand, weights, motion, capture];

const [program, how] = process.argv.slice(2);
const quick = how === "--quick";
const TABS = ["Pose", "Learn", "Invert", "Weights", "Motion", "Capture"];
const { folder, remove } = await scratch();
const shots = process.env.UNDERSTUDY_SHOTS ?? join(folder, "shots");
await mkdir(shots, { recursive: true });
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const started = Date.now();

/** Something to drop and something to compare with, made by the program's own commands. */
const project = join(folder, "project");
await mkdir(project);
await understudy(program, ["convert", "mira", "-o", join(folder, "take.csv"), "--clip", "smile"]);
await understudy(program, ["sample", "mira", "-o", join(folder, "data"), "--poses", "60", "--method", "sparse"]);

const studio = await startStudio(program, project);
const browser = await launch();
const { page, problems } = await newPage(browser);
const canvas = (panel) => page.locator(`#panel-${panel} canvas`);
const picture = async (panel) => look(page, await canvas(panel).screenshot());

/** Whether a character with warm skin stands on the grey of the stage. */
const isThere = ({ grid }) => grid.some(([red, , blue]) => red > blue + 25);

async function step(name, act) {
  const from = Date.now();
  try {
    await act();
    assert.deepEqual(problems, [], "the browser complained");
    console.log(`ok   ${name} (${((Date.now() - from) / 1000).toFixed(1)} s)`);
  } catch (error) {
    await page.screenshot({ path: join(shots, "failed.png") }).catch(() => {});
    console.log(`FAIL ${name}`);
    await finish(1, error);
  }
}

async function finish(code, error) {
  await browser.close().catch(() => {});
  const end = await studio.stop();
  if (error) console.log(error);
  if (!error && end !== 0) {
    console.log(`the studio ended with ${end}`);
    code = 1;
  }
  await remove();
  process.exit(code);
}

async function serious(panel) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  assert.deepEqual(bad.map(({ id, nodes }) => `${panel}: ${id}: ${nodes.slice(0, 3).map((node) => node.target.join(" ")).join(", ")}`), []);
}

/** Text that lies on other text, or leaves the window to the side. */
async function overlaps() {
  return page.evaluate(() => {
    const found = [];
    if (document.documentElement.scrollWidth > innerWidth + 1) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
    const boxes = [];
    for (const element of document.querySelectorAll("button, select, label, h1, h2, h3, .chip, .soft, .number, p")) {
      if (!element.checkVisibility() || element.closest("[hidden], .visually-hidden") || !element.textContent.trim()) continue;
      const box = element.getBoundingClientRect();
      if (box.width < 2 || box.height < 2) continue;
      boxes.push([element, box]);
    }
    for (let a = 0; a < boxes.length; a++) {
      for (let b = a + 1; b < boxes.length; b++) {
        const [one, p] = boxes[a], [other, q] = boxes[b];
        if (one.contains(other) || other.contains(one)) continue;
        // What is scrolled out of its list is not seen.
        const scroller = one.closest(".scroll, .pages"), second = other.closest(".scroll, .pages");
        if (scroller !== second) continue;
        const x = Math.min(p.right, q.right) - Math.max(p.left, q.left), y = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        if (x > 3 && y > 3) found.push(`${one.textContent.trim().slice(0, 30)} / ${other.textContent.trim().slice(0, 30)}`);
      }
    }
    return found;
  });
}

await step("the first visit shows Mira moving", async () => {
  await page.goto(studio.address);
  await waitForPoses(page, 3);
  const first = await picture("pose");
  assert.ok(first.spread > 15, `the stage is blank: ${first.spread}`);
  // Skin and hair: more red than blue in the middle.
  const middle = first.grid[4 * 16 + 8];
  assert.ok(middle[0] > middle[2] + 15, `Mira is not there: ${middle}`);
  await waitForPoses(page, 5);
  assert.ok(difference(first, await picture("pose")) > 0.02, "she does not move");
});

await step("space stops the clip, a slider moves vertices, reset brings them back", async () => {
  await page.keyboard.press("Space");
  await page.locator("#panel-pose select[aria-label=Clip]").selectOption("");
  await page.getByRole("button", { name: "Reset all" }).click();
  await settled(page);
  const rest = await picture("pose");
  await page.getByLabel("Search controls").fill("jawOpen");
  const slider = page.locator(".slider:visible input").first();
  const before = await posed(page);
  await slider.fill(await slider.getAttribute("max"));
  await page.waitForFunction((from) => Number(document.querySelector("#panel-pose .stage").dataset.posed) > from, before);
  await settled(page);
  const open = await picture("pose");
  assert.ok(difference(rest, open) > 0.15, `the jaw does not move: ${difference(rest, open)}`);
  await page.getByRole("button", { name: "Reset all" }).click();
  await settled(page);
  assert.ok(difference(rest, await picture("pose")) < 0.1, "reset leaves something");
});

await step("both sides move together where that is asked for", async () => {
  await page.getByLabel("Search controls").fill("mouthSmile");
  await page.getByLabel("Both sides").check();
  const left = page.getByLabel("mouthSmile_L", { exact: true });
  await left.fill("0.8");
  assert.equal(await page.getByLabel("mouthSmile_R", { exact: true }).inputValue(), await left.inputValue());
  await page.getByLabel("Both sides").uncheck();
  await page.getByLabel("Search controls").fill("");
});

await step("the skinning beside the original; the heat map changes with the pose", async () => {
  await page.getByRole("radio", { name: "Side by side" }).click();
  await settled(page);
  // The original is on the left, the skinning on the right: colours of errors are on the right alone, at the same pose.
  const [left, right] = [[0, 8], [8, 16]];
  const error = page.getByRole("button", { name: "Error", exact: true }).first();
  const plain = await picture("pose");
  await error.click();
  await settled(page);
  await page.waitForTimeout(300);
  const smiling = await picture("pose");
  assert.ok(difference(plain, smiling, right) > 3, `the error is not shown: ${difference(plain, smiling, right)}`);
  assert.ok(difference(plain, smiling, left) < 1, `the original is coloured: ${difference(plain, smiling, left)}`);
  // Skin is warm; errors go from dark violet to yellow, so that where there is none she is bluer than skin.
  assert.ok(warmth(smiling, right) < warmth(plain, right) - 3, `${warmth(smiling, right)} beside ${warmth(plain, right)}`);
  assert.ok(await page.locator("#panel-pose .legend").isVisible());
  const chip = page.locator("#panel-pose .chip", { hasText: "Skinning" });
  const most = async () => Number(/at most ([\d.]+) mm/.exec(await chip.textContent())[1]);
  assert.ok(await most() > 0.1, `her smile costs the skinning ${await most()} mm`);
  await page.getByRole("button", { name: "Reset all" }).click();
  await settled(page);
  await page.waitForTimeout(300);
  const rest = await picture("pose");
  assert.ok(await most() < 0.1, `at rest the skinning misses by ${await most()} mm`);
  assert.ok(difference(smiling, rest, right) > difference(smiling, rest, left), "the colours do not follow the pose");
  await page.getByRole("radio", { name: "Overlay" }).click();
  await settled(page);
  const before = await picture("pose");
  await page.locator("#panel-pose .wipe").focus();
  for (let press = 0; press < 12; press++) await page.keyboard.press("ArrowLeft");
  await page.waitForTimeout(400);
  assert.ok(difference(before, await picture("pose")) > 0.3, "the overlay line does not move");
  await page.getByRole("radio", { name: "Original" }).click();
  await error.click();
});

await step("a clip's file plays", async () => {
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Open…" }).click()]);
  await chooser.setFiles(join(folder, "take.csv"));
  await page.waitForFunction(() => /file/.test(document.querySelector("#panel-pose select[aria-label=Clip]").selectedOptions[0].text), null, { timeout: 120_000 });
  await waitForPoses(page, 4);
  await page.getByRole("button", { name: "Pause" }).click();
  const scrub = page.getByLabel("Time in the clip");
  await scrub.fill("0.2");
  await settled(page);
  const early = await picture("pose");
  await scrub.fill("1.6");
  await settled(page);
  assert.ok(difference(early, await picture("pose")) > 0.1, "scrubbing does not move her");
  // The chosen file's own words are kept short; they are no complaint.
  await closeToasts(page);
});

await step("views by keys, pose and mesh as files", async () => {
  await canvas("pose").focus();
  await page.keyboard.press("1");
  await page.waitForTimeout(400);
  const front = await picture("pose");
  await page.keyboard.press("4");
  await page.waitForTimeout(400);
  assert.ok(difference(front, await picture("pose")) > 2, "the back is not the front");
  await page.keyboard.press("2");
  for (const [item, beginning] of [["Pose (.json)", "{"], ["Pose as a mesh (.glb)", "glTF"], ["Picture (.png)", "\u0089PNG"]]) {
    await page.getByRole("button", { name: "Save ▾" }).click();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name: item }).click()]);
    const bytes = await readFile(await download.path());
    assert.equal(bytes.toString("latin1", 0, beginning.length), beginning);
  }
});

await step("a job runs to its end with progress, and a reload finds it running", async () => {
  await page.getByRole("tab", { name: /Learn/ }).click();
  await page.locator("#panel-learn").getByText("Nothing has been learned yet").waitFor();
  await page.screenshot({ path: join(shots, "learn-empty.png") });
  await page.getByLabel("Kind").selectOption("skin");
  await page.getByLabel("New poses to sample").fill("150");
  await page.getByLabel("Minutes of training, about").fill("0.1");
  await page.getByLabel("Follow dragged points").check();
  // A page that looks at the Pose tab alone shall get the twin as well.
  const other = await newPage(browser);
  await other.page.goto(`${studio.address}#pose`);
  await waitForPoses(other.page, 2);
  await other.page.keyboard.press("Space");
  assert.ok(await other.page.locator("#panel-pose .segmented button:nth-child(2)").isDisabled(), "there is a twin already");
  await page.getByRole("button", { name: "Start learning" }).click();
  const card = page.locator("#panel-learn article").first();
  await card.locator(".progress").waitFor();
  await page.reload();
  await card.locator("[data-action=cancel]").waitFor({ timeout: 120_000 });
  await card.locator("svg.chart").waitFor({ timeout: 400_000 });
  await page.screenshot({ path: join(shots, "learn-running.png") });
  await page.locator("#panel-learn article[data-state=done]").waitFor({ timeout: 400_000 });
  await other.page.locator(".toast", { hasText: "it is on the Pose tab now" }).waitFor({ timeout: 120_000 });
  await other.page.waitForFunction(() => !document.querySelector("#panel-pose .segmented button:nth-child(2)").disabled, null, { timeout: 120_000 });
  assert.deepEqual(other.problems, []);
  await other.page.close();
  await serious("learn");
  await page.screenshot({ path: join(shots, "learn-done.png") });
});

await step("a rig that was dropped stays chosen, also after a reload and while jobs end", async () => {
  await understudy(program, ["convert", "mira", "-o", join(folder, "own.obj")]);
  const rig = page.locator("#learn-rig");
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.locator("#panel-learn .dropzone button").click()]);
  await chooser.setFiles(join(folder, "own.obj"));
  await page.waitForFunction(() => document.querySelector("#learn-rig").value === "studio/uploads/own.obj", null, { timeout: 120_000 });
  await page.reload();
  await page.locator("#learn-rig option[value='studio/uploads/own.obj']").waitFor({ state: "attached", timeout: 120_000 });
  await rig.selectOption("studio/uploads/own.obj");
  // The listing comes anew with every job that ends; the file may even be gone.
  await rm(join(project, "studio/uploads/own.obj"));
  const body = JSON.stringify({ job: "sample", rig: "mira", poses: 5 });
  await page.evaluate((order) => fetch("api/jobs", { method: "POST", headers: { "content-type": "application/json" }, body: order }), body);
  await page.locator("#panel-learn article[aria-label='poses of mira'][data-state=done]").waitFor({ timeout: 400_000 });
  await page.waitForTimeout(500);
  assert.equal(await rig.inputValue(), "studio/uploads/own.obj", "another character was chosen without a word");
  await rig.selectOption("mira");
});

await step("the twin that came out plays in the browser beside the original", async () => {
  await page.getByRole("button", { name: "Show on the Pose tab" }).first().click();
  await page.waitForFunction(() => !document.querySelector("#panel-pose .segmented button:nth-child(2)").disabled, null, { timeout: 120_000 });
  await page.getByRole("radio", { name: "Side by side" }).click();
  await settled(page);
  const chip = page.locator("#panel-pose .chip", { hasText: "in the browser" });
  await chip.waitFor({ timeout: 120_000 });
  assert.match(await chip.textContent(), /Twin \(skin\) · \d+\.\d\d ms in the browser · error \d+\.\d\d mm/);
  await page.getByRole("button", { name: "Error", exact: true }).first().click();
  await page.waitForTimeout(600);
  await page.screenshot({ path: join(shots, "pose-beside.png") });
  await page.getByRole("radio", { name: "Twin", exact: true }).click();
  await settled(page);
});

if (quick) {
  await step("every tab opens", async () => {
    for (const tab of TABS) {
      await page.getByRole("tab", { name: new RegExp(tab) }).click();
      await page.locator(`#panel-${tab.toLowerCase()} button`).first().waitFor({ timeout: 120_000 });
      await page.waitForTimeout(500);
      await page.screenshot({ path: join(shots, `${tab.toLowerCase()}-quick.png`) });
      assert.deepEqual(await overlaps(), [], tab);
      await serious(tab);
    }
  });
  console.log(`all of the quick ones in ${((Date.now() - started) / 1000).toFixed(0)} s`);
  await finish(0);
}

for (const { check } of TAB_CHECKS) await check({ page, browser, step, folder, project, program, picture, serious, overlaps, shots, address: studio.address });

await step("cancelling a job", async () => {
  await page.getByRole("tab", { name: /Learn/ }).click();
  await page.getByLabel("New poses to sample").fill("900000");
  await page.getByRole("button", { name: "Start learning" }).click();
  await page.locator("#panel-learn [data-action=cancel]").first().click();
  await page.locator("#panel-learn article[data-state=cancelled]").waitFor({ timeout: 120_000 });
});

await step("invert gives the command's numbers, and α moves them", async () => {
  // A scan: one frame of the clip's shapes, as the command sees it.
  await understudy(program, ["convert", "mira", "-o", join(folder, "rest.obj")]);
  const lines = (await readFile(join(folder, "rest.obj"), "utf8")).split("\n");
  const scan = lines.map((line) => {
    if (!line.startsWith("v ")) return line;
    const [x, y, z] = line.slice(2).split(/\s+/).map(Number);
    // The corners of the mouth, up and out.
    const lift = Math.exp(-((Math.abs(x) - 2.6) ** 2 + (y + 5) ** 2) / 1.2) * (z > 4 ? 0.35 : 0);
    return `v ${x + Math.sign(x) * lift * 0.6} ${y + lift} ${z}`;
  });
  const file = join(folder, "scan.obj");
  await writeFile(file, scan.join("\n"));
  await copyFile(file, join(project, "scan.obj"));
  const report = JSON.parse(await understudy(program, ["--json", "invert", "mira", file, "-o", join(folder, "weights.csv")]));
  const [names, row] = (await readFile(join(folder, "weights.csv"), "utf8")).trim().split("\n").map((line) => line.split(","));
  await page.getByRole("tab", { name: "Invert" }).click();
  await page.screenshot({ path: join(shots, "invert-empty.png") });
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Open scans…" }).click()]);
  await chooser.setFiles(file);
  await page.locator("#panel-invert .weight").first().waitFor({ timeout: 120_000 });
  const shown = await page.locator("#panel-invert .weight").evaluateAll((rows) => rows.map((one) => [one.dataset.shape, Number(one.lastChild.textContent)]));
  assert.ok(shown.length > 0);
  for (const [name, value] of shown) assert.ok(Math.abs(Number(row[names.indexOf(name)]) - value) < 6e-4, `${name}: ${value}, the command says ${row[names.indexOf(name)]}`);
  const error = await page.locator("#panel-invert .figures b").first().textContent();
  assert.ok(Math.abs(parseFloat(error) - report.metrics.rmse_cm * 10) < 6e-4, `${error}, the command says ${report.metrics.rmse_cm * 10} mm`);
  const used = async () => Number(await page.locator("#panel-invert .figures b").nth(2).textContent());
  const before = await used();
  await page.locator("#alpha").fill("-0.5");
  await page.waitForFunction((old) => Number(document.querySelectorAll("#panel-invert .figures b")[2].textContent) < old, before, { timeout: 120_000 });
  await page.locator("#alpha").fill("-5");
  await page.getByRole("button", { name: "Keep in the project" }).click();
  await page.locator("#panel-learn article[aria-label='weights of mira'][data-state=done]").waitFor({ state: "attached", timeout: 120_000 });
});

await step("a clip of the rig inverts, plays and exports", async () => {
  await page.getByLabel("Clip of the rig").selectOption("smile");
  await page.locator("#panel-invert svg.chart").waitFor({ timeout: 120_000 });
  await page.waitForFunction(() => Number(document.querySelector("#panel-invert .stage").dataset.drawn) > 0);
  await page.getByLabel("Frame", { exact: true }).fill("45");
  await page.waitForTimeout(800);
  await page.screenshot({ path: join(shots, "invert.png") });
  assert.ok((await picture("invert")).spread > 15);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export CSV" }).click()]);
  const rows = (await readFile(await download.path(), "utf8")).trim().split("\n");
  assert.ok(rows.length > 30 && rows[0].includes("mouthSmile_L"));
  await serious("invert");
});

await step("two tabs do not disturb each other", async () => {
  const other = await newPage(browser);
  await other.page.goto(studio.address);
  await waitForPoses(other.page, 2);
  await other.page.getByLabel("Character", { exact: true }).selectOption("rook");
  await other.page.locator("#panel-pose .side", { hasText: /Hip|Spine|Arm|Leg/i }).waitFor({ timeout: 120_000 });
  await page.getByRole("tab", { name: "Pose" }).click();
  await page.getByRole("button", { name: "Reset all" }).click();
  await page.getByRole("radio", { name: "Original" }).click();
  await settled(page);
  assert.equal(await page.getByLabel("Character", { exact: true }).inputValue(), "mira");
  assert.ok(isThere(await picture("pose")), "Mira has left the stage");
  await other.page.waitForTimeout(700);
  await other.page.screenshot({ path: join(shots, "rook.png") });
  assert.deepEqual(other.problems, []);
  await other.page.close();
});

await step("a file that cannot be read is said, and changes nothing", async () => {
  const broken = join(folder, "broken.glb");
  await writeFile(broken, "this is no model");
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Open…" }).click()]);
  await chooser.setFiles(broken);
  const said = page.locator(".toast.bad", { hasText: "broken.glb" });
  await said.waitFor({ timeout: 120_000 });
  // The browser names the answers that were errors; those are what is tested here.
  problems.splice(0, problems.length, ...problems.filter((text) => !/Failed to load resource.*(422|400)/.test(text)));
  await page.screenshot({ path: join(shots, "error.png") });
  assert.equal(await page.getByLabel("Character", { exact: true }).inputValue(), "mira");
  await said.locator("button").click();
});

await step("nothing serious is found by axe, nothing overlaps: light and dark, tablet, twice as large", async () => {
  await page.locator("#panel-pose select[aria-label=Clip]").selectOption("talk");
  await page.waitForTimeout(800);
  for (const theme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: theme });
    for (const [name, width, height] of [["desk", 1280, 720], ["tablet", 820, 1180], ["zoom", 640, 360]]) {
      await page.setViewportSize({ width, height });
      for (const tab of TABS) {
        await page.getByRole("tab", { name: new RegExp(tab) }).click();
        await page.waitForTimeout(350);
        await page.screenshot({ path: join(shots, `${tab.toLowerCase()}-${name}-${theme}.png`) });
        assert.deepEqual(await overlaps(), [], `${tab} ${name} ${theme}`);
        if (tab === "Pose") assert.ok(isThere(await picture("pose")), `nobody is on the stage: ${name} ${theme}`);
        if (name === "desk") await serious(`${tab} ${theme}`);
      }
    }
  }
});

console.log(`all in ${((Date.now() - started) / 1000).toFixed(0)} s`);
await finish(0);
