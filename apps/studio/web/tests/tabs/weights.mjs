// The Weights tab: handles by clicking, an example, a solve with progress, painted weights, a live drag, the GLB; and the same
// weights as the command gives.

import assert from "node:assert/strict";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { closeToasts, understudy } from "../harness.mjs";
import { difference } from "../pixels.mjs";

const SIDE = 31;

/** A standing card, 30 cm wide, its right half turned about the middle. */
function card(degrees) {
  const angle = (degrees * Math.PI) / 180, middle = (SIDE - 1) / 2;
  const lines = [];
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      const beyond = Math.max(x - middle, 0);
      lines.push(`v ${x - middle - beyond + beyond * Math.cos(angle)} ${y} ${beyond * Math.sin(angle)}`);
    }
  }
  for (let y = 0; y + 1 < SIDE; y++) {
    for (let x = 0; x + 1 < SIDE; x++) {
      const at = y * SIDE + x + 1;
      lines.push(`f ${at} ${at + 1} ${at + SIDE + 1} ${at + SIDE}`);
    }
  }
  return lines.join("\n") + "\n";
}

export async function check({ page, step, folder, project, program, picture, serious, shots }) {
  const panel = page.locator("#panel-weights");
  const stage = panel.locator(".stage");
  const state = (want, timeout = 120_000) => page.waitForFunction((name) => document.querySelector("#panel-weights .stage").dataset.state === name, want, { timeout });
  const handles = () => panel.locator("[data-handle]").evaluateAll((rows) => rows.map((row) => row.dataset.handle));
  const pick = async (button, file) => {
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), panel.getByRole("button", { name: button }).click()]);
    await chooser.setFiles(file);
  };
  const box = () => panel.locator("canvas").boundingBox();
  /** A place on the stage, as shares of its height from the middle. */
  const place = async (x, y) => {
    const { x: left, y: top, width, height } = await box();
    return [left + width / 2 + x * height, top + height / 2 + y * height];
  };
  const click = async (x, y) => page.mouse.click(...(await place(x, y)));

  await step("weights: a mesh is opened, and clicks place points, a bone and a region", async () => {
    await writeFile(join(folder, "card.obj"), card(0));
    await writeFile(join(folder, "folded.obj"), card(70));
    await writeFile(join(folder, "other.obj"), "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n");
    await page.getByRole("tab", { name: "Weights" }).click();
    await panel.getByRole("button", { name: "Try it with six points" }).waitFor({ timeout: 120_000 });
    await page.waitForFunction(() => document.querySelector("#panel-weights .stage").dataset.mesh === "mira", null, { timeout: 120_000 });
    await page.waitForTimeout(400);
    await page.screenshot({ path: join(shots, "weights-empty.png") });
    await pick("Open mesh…", join(folder, "card.obj"));
    await page.waitForFunction(() => /card/.test(document.querySelector("#panel-weights .stage").dataset.mesh), null, { timeout: 120_000 });
    await panel.getByRole("button", { name: "Place handles" }).click();
    await click(-0.3, 0);
    await click(0.3, 0);
    assert.deepEqual(await handles(), ["point 1", "point 2"]);
    const vertices = await panel.locator("[data-handle] .soft").allTextContents();
    const columns = vertices.filter((text) => /^vertex/.test(text)).map((text) => Number(text.split(" ")[1]) % SIDE);
    assert.ok(columns[0] < 12 && columns[1] > 18, `the points are in columns ${columns}`);
    await panel.getByRole("radio", { name: "Bone" }).click();
    await click(-0.1, 0.25);
    await click(0.1, 0.25);
    assert.deepEqual(await handles(), ["point 1", "point 2", "bone 1"]);
    await panel.getByRole("button", { name: "Remove bone 1" }).click();
    await panel.getByRole("radio", { name: "Region" }).click();
    await page.mouse.move(...(await place(-0.33, -0.3)));
    await page.mouse.down();
    await page.mouse.move(...(await place(-0.33, 0.3)), { steps: 12 });
    await page.mouse.up();
    const painted = await panel.locator("[data-handle='region 1'] .soft").first().textContent();
    assert.ok(parseInt(painted) > 40, `a stroke paints ${painted}`);
    await page.screenshot({ path: join(shots, "weights-region.png") });
    // A click on nothing places nothing.
    await panel.getByRole("radio", { name: "Point" }).click();
    await click(0.48, -0.48);
    assert.equal((await handles()).length, 3);
    await panel.getByRole("button", { name: "Remove region 1" }).click();
  });

  await step("weights: an example of another mesh is refused by name", async () => {
    await pick("Add examples…", join(folder, "other.obj"));
    await panel.locator("[data-example]").waitFor();
    await panel.getByRole("button", { name: "Solve", exact: true }).click();
    await page.locator(".toast.bad", { hasText: "other.obj" }).waitFor({ timeout: 120_000 });
    await closeToasts(page);
    await panel.locator("[data-example] button").click();
  });

  await step("weights: solved with an example, painted, and the same as the command's", async () => {
    await pick("Add examples…", join(folder, "folded.obj"));
    await panel.locator("[data-example]").waitFor();
    const before = await picture("weights");
    await panel.getByRole("button", { name: "Solve", exact: true }).click();
    await state("solved", 400_000);
    await page.waitForFunction(() => document.querySelector("#panel-weights .stage").dataset.painted !== undefined);
    await page.waitForTimeout(500);
    assert.ok(difference(before, await picture("weights")) > 1, "weights are not painted");
    await page.screenshot({ path: join(shots, "weights-solved.png") });
    const files = await readdir(join(project, "studio"));
    const toml = files.find((name) => /card-skinned.*\.handles\.toml$/.test(name));
    const [npz, glb] = ["npz", "glb"].map((ending) => toml.replace("handles.toml", ending));
    const mesh = join(folder, "card.obj");
    await understudy(program, ["weights", mesh, join(project, "studio", toml), join(folder, "folded.obj"), "-o", join(folder, "card.glb"), "--npz", join(folder, "card.npz")]);
    assert.ok((await readFile(join(folder, "card.npz"))).equals(await readFile(join(project, "studio", npz))), "the command gives other weights");
    const [download] = await Promise.all([page.waitForEvent("download"), panel.getByRole("button", { name: "Export GLB" }).click()]);
    assert.ok((await readFile(await download.path())).equals(await readFile(join(project, "studio", glb))));
    await serious("weights");
  });

  await step("weights: a handle is dragged live and goes back to rest", async () => {
    const rest = await picture("weights");
    const updates = async () => Number((await stage.getAttribute("data-dragged")) ?? 0);
    const from = await updates();
    await page.mouse.move(...(await place(0.3, 0)));
    await page.mouse.down();
    await page.mouse.move(...(await place(0.2, -0.25)), { steps: 8 });
    await page.mouse.up();
    await page.waitForFunction((old) => Number(document.querySelector("#panel-weights .stage").dataset.dragged ?? 0) > old, from, { timeout: 120_000 });
    await page.waitForTimeout(500);
    assert.ok(difference(rest, await picture("weights")) > 1, "the mesh does not follow the handle");
    await page.screenshot({ path: join(shots, "weights-dragged.png") });
    assert.match(await panel.locator(".chip").first().textContent(), /\d+\.\d\d ms per update/);
    await panel.getByRole("button", { name: "Back to rest" }).click();
    await page.waitForTimeout(600);
    assert.ok(difference(rest, await picture("weights")) < 0.5, "it does not go back");
  });

  await step("weights: a solve on Mira can be cancelled, and six points on her are solved", async () => {
    await panel.getByLabel("Mesh", { exact: true }).selectOption("mira");
    await page.waitForFunction(() => document.querySelector("#panel-weights .stage").dataset.mesh === "mira", null, { timeout: 120_000 });
    await panel.getByRole("button", { name: "Try it with six points" }).click();
    assert.equal((await handles()).length, 6);
    await panel.getByRole("button", { name: "Solve", exact: true }).click();
    await panel.locator("[data-action=cancel-weights]").click();
    await page.waitForFunction(() => !document.querySelector("#panel-weights [data-action=cancel-weights]").checkVisibility(), null, { timeout: 120_000 });
    await panel.getByLabel("Kind of weights").selectOption("quasi");
    await panel.getByRole("button", { name: "Solve", exact: true }).click();
    await state("solved", 400_000);
    await page.waitForTimeout(800);
    await page.screenshot({ path: join(shots, "weights-mira.png") });
    await closeToasts(page);
  });
}
