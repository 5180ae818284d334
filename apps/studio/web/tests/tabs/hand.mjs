// Posing by hand on the Pose tab: points of a face and handles of a body dragged with the mouse, with fingers and with keys; pins,
// both sides, undo, keys on the timeline, export. The twin that the Learn tab made is on the stage: it learned for seconds, so that
// little is asked of it and all else of the rig.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { newPage, settled, waitForPoses } from "../harness.mjs";

/** What drives the points of a page. */
export function handOf(page) {
  const bar = page.locator("#panel-pose .hand");
  const numbers = async (name) => (await bar.getAttribute(`data-${name}`)).split(" ").map(Number);
  const self = {
    bar,
    async choose(name) {
      await bar.getByLabel("Point", { exact: true }).selectOption({ label: name });
      return { at: await numbers("at"), place: await numbers("place") };
    },
    /** The mouse takes the point, moves it in small steps and lets it go; gives where the cursor was. */
    async drag(name, x, y, steps = 12) {
      const { at } = await self.choose(name);
      await page.mouse.move(at[0], at[1]);
      await page.mouse.down();
      for (let step = 1; step <= steps; step++) {
        await page.mouse.move(at[0] + (x * step) / steps, at[1] + (y * step) / steps);
        await page.waitForTimeout(16);
      }
      await page.mouse.up();
      await settled(page);
      return [at[0] + x, at[1] + y];
    },
    /** Millimetres per pixel across the line of sight, by two points that lie as far from the one who looks. */
    async scale(a, b) {
      const [p, q] = [await self.choose(a), await self.choose(b)];
      return (10 * Math.hypot(p.place[0] - q.place[0], p.place[1] - q.place[1])) / Math.hypot(p.at[0] - q.at[0], p.at[1] - q.at[1]);
    },
  };
  return self;
}

const apart = (a, b) => Math.hypot(...a.map((x, axis) => x - b[axis]));

export async function check({ page, browser, step, serious, overlaps, shots, address }) {
  const hand = handOf(page);
  const mode = (name) => page.getByRole("radio", { name, exact: true }).click();

  await step("the corner of the mouth follows the cursor", async () => {
    await page.locator("#panel-pose select[aria-label=Clip]").selectOption("");
    await page.getByRole("button", { name: "Reset all" }).click();
    await page.locator("#panel-pose canvas").focus();
    await page.keyboard.press("1");
    await page.getByRole("button", { name: "Drag", exact: true }).click();
    await page.getByLabel("Search controls").fill("mouth");
    await settled(page);
    const scale = await hand.scale("mouth_corner_L", "mouth_corner_R");
    // The rig itself comes under the cursor; a twin that learned for seconds comes near it.
    for (const [shown, least] of [["Twin", 3], ["Original", 2]]) {
      await mode(shown);
      await page.getByRole("button", { name: "Reset all" }).click();
      await settled(page);
      const cursor = await hand.drag("mouth_corner_L", 16, -12);
      const { at } = await hand.choose("mouth_corner_L");
      const off = apart(at, cursor) * scale;
      assert.ok(off < least, `${shown}: the corner is ${off.toFixed(2)} mm from the cursor after 20 pixels`);
      assert.ok((await page.locator("#panel-pose .slider.moved").count()) > 0, "no control moved");
      await page.screenshot({ path: join(shots, `drag-${shown.toLowerCase()}.png`) });
    }
    assert.deepEqual(await overlaps(), []);
    await serious("pose, with points");
  });

  await step("undo and redo", async () => {
    const { place: dragged } = await hand.choose("mouth_corner_L");
    await page.locator("#panel-pose canvas").focus();
    await page.keyboard.press("Control+z");
    await settled(page);
    const { place: before } = await hand.choose("mouth_corner_L");
    assert.ok(apart(dragged, before) > 0.1, "undo changed nothing");
    await page.getByRole("button", { name: "Redo" }).click();
    await settled(page);
    assert.ok(apart((await hand.choose("mouth_corner_L")).place, dragged) < 1e-3, "redo does not bring it back");
    await page.getByRole("button", { name: "Undo" }).click();
    await settled(page);
  });

  await step("pinned points stay, both sides move together, an eye leaves the mouth alone", async () => {
    await mode("Twin");
    await page.getByRole("button", { name: "Reset all" }).click();
    await settled(page);
    const { place: upper } = await hand.choose("lip_upper");
    await page.locator("#panel-pose canvas").focus();
    await page.keyboard.press("p");
    assert.equal(await hand.bar.getByRole("button", { name: "Pin", exact: true }).getAttribute("aria-pressed"), "true");
    await hand.drag("chin", 0, 22);
    const opened = apart((await hand.choose("lip_upper")).place, upper) * 10;
    assert.ok(opened < 1, `the pinned lip moved by ${opened} mm`);
    await hand.bar.getByRole("button", { name: "Unpin all" }).click();
    // From here on by the rig itself: what a twin that learned for seconds makes of the other side is its own affair.
    await mode("Original");
    await page.getByRole("button", { name: "Reset all" }).click();
    await page.getByLabel("Both sides").check();
    await settled(page);
    const rest = (await hand.choose("mouth_corner_R")).place;
    await hand.drag("mouth_corner_L", 14, -10);
    const [left, right] = [(await hand.choose("mouth_corner_L")).place, (await hand.choose("mouth_corner_R")).place];
    assert.ok(apart(right, rest) > 0.15, "the other side does not move");
    // As far as is seen: a screen knows no depth.
    assert.ok(apart([-left[0], left[1]], right.slice(0, 2)) < 0.2, `not each other's mirror image: ${left} ${right}`);
    await page.getByLabel("Both sides").uncheck();
    await page.getByRole("button", { name: "Reset all" }).click();
    await settled(page);
    const chin = (await hand.choose("chin")).place;
    await hand.drag("brow_L_3", 0, -12);
    assert.ok(apart((await hand.choose("chin")).place, chin) < 0.02, "the brow moves the chin");
    assert.equal(await page.locator("#panel-pose .slider.moved", { hasText: /mouth|jaw/ }).count(), 0, "a brow moves controls of the mouth");
    await page.getByLabel("Search controls").fill("brow");
    assert.ok((await page.locator("#panel-pose .slider.moved:visible").count()) > 0, "no control of the brow moved");
    await page.getByLabel("Search controls").fill("mouth");
  });

  await step("fingers and keys move points, too", async () => {
    await page.getByRole("button", { name: "Reset all" }).click();
    await settled(page);
    const { at, place } = await hand.choose("mouth_corner_R");
    const client = await page.context().newCDPSession(page);
    const touch = (type, x, y) => client.send("Input.dispatchTouchEvent", { type, touchPoints: type === "touchEnd" ? [] : [{ x, y, id: 1 }] });
    // A finger is beside the point, on the side where no other one is.
    await touch("touchStart", at[0] - 5, at[1] + 4);
    for (let move = 1; move <= 8; move++) {
      await touch("touchMove", at[0] - 5 - 2 * move, at[1] + 4 - move);
      await page.waitForTimeout(20);
    }
    await touch("touchEnd");
    await settled(page);
    const dragged = await hand.choose("mouth_corner_R");
    assert.ok(Math.abs(dragged.at[0] - (at[0] - 16)) < 6 && Math.abs(dragged.at[1] - (at[1] - 8)) < 6, `${dragged.at} for ${at}`);
    assert.ok(apart(dragged.place, place) > 0.2);
    await page.locator("#panel-pose canvas").focus();
    for (let press = 0; press < 4; press++) await page.keyboard.press("ArrowUp");
    await settled(page);
    assert.ok((await hand.choose("mouth_corner_R")).place[1] > dragged.place[1] + 0.1, "the arrow key does not lift it");
  });

  await step("poses become keys of a take, which plays and leaves as a file", async () => {
    await page.getByRole("button", { name: "Reset all" }).click();
    await page.locator("#panel-pose select[aria-label=Clip]").selectOption("+take");
    await page.getByRole("button", { name: "◆ Key" }).click();
    const scrub = page.getByLabel("Time in the clip");
    await scrub.fill("2");
    await settled(page);
    await page.locator("#panel-pose").getByLabel("Auto", { exact: true }).check();
    await hand.drag("mouth_corner_L", 14, -12);
    const posed = (await hand.choose("mouth_corner_L")).place;
    assert.equal(await page.locator("#panel-pose .marks button").count(), 2);
    const at = async (seconds) => {
      await scrub.fill(String(seconds));
      await settled(page);
      return (await hand.choose("mouth_corner_L")).place;
    };
    const rest = await at(0);
    const half = await at(1);
    assert.ok(apart(await at(2), posed) < 1e-3, "the key does not keep the pose");
    assert.ok(apart(half, rest) > 0.2 * apart(posed, rest) && apart(half, posed) > 0.2 * apart(posed, rest), "nothing lies between the keys");
    await page.screenshot({ path: join(shots, "keys.png") });
    await page.getByRole("button", { name: "Save ▾" }).click();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name: "Clip as a table (.csv)" }).click()]);
    const rows = (await readFile(await download.path(), "utf8")).trim().split("\n").map((line) => line.split(","));
    assert.equal(rows.length, 122);
    const moved = rows[0].filter((_, column) => Math.abs(rows[61][column] - rows[1][column]) > 1e-3);
    assert.ok(moved.length > 1, `only ${moved} moved`);
    await page.locator("#panel-pose canvas").focus();
    await page.keyboard.press("Control+z");
    assert.equal(await page.locator("#panel-pose .marks button").count(), 1);
    await page.locator("#panel-pose").getByLabel("Auto", { exact: true }).uncheck();
    await page.locator("#panel-pose select[aria-label=Clip]").selectOption("");
    await page.getByLabel("Search controls").fill("");
  });

  await step("a head without a twin that follows points offers to teach one", async () => {
    const other = await newPage(browser);
    await other.page.goto(address);
    await waitForPoses(other.page, 2);
    await other.page.getByLabel("Twin", { exact: true }).selectOption("");
    await other.page.getByRole("button", { name: "Drag", exact: true }).click();
    const bar = other.page.locator("#panel-pose .hand");
    await bar.getByRole("button", { name: "Teach a twin to follow points" }).waitFor({ timeout: 120_000 });
    // Nothing of hers can be dragged by the rig alone.
    assert.equal(await bar.getByLabel("Point", { exact: true }).isVisible(), false);
    assert.deepEqual(other.problems, []);
    await other.page.close();
  });

  await step("a body is dragged by hands, feet and torso", async () => {
    const other = await newPage(browser);
    await other.page.goto(address);
    await waitForPoses(other.page, 2);
    await other.page.getByLabel("Character", { exact: true }).selectOption("rook");
    await other.page.locator("#panel-pose .side", { hasText: /Hip|Spine|Arm|Leg/i }).waitFor({ timeout: 120_000 });
    await other.page.keyboard.press("1");
    await other.page.getByRole("button", { name: "Drag", exact: true }).click();
    await settled(other.page);
    const rook = handOf(other.page);
    const scale = await rook.scale("hand_L", "foot_L");
    const cursor = await rook.drag("hand_L", 30, -60);
    const off = apart((await rook.choose("hand_L")).at, cursor) * scale;
    assert.ok(off < 10, `the hand is ${off.toFixed(1)} mm from the cursor`);
    const foot = (await rook.choose("foot_L")).place;
    for (const name of ["foot_L", "foot_R"]) {
      await rook.choose(name);
      await rook.bar.getByRole("button", { name: "Pin", exact: true }).click();
    }
    await rook.drag("torso", 0, 24);
    assert.ok(apart((await rook.choose("foot_L")).place, foot) < 0.1, "the locked foot slides");
    await other.page.screenshot({ path: join(shots, "drag-rook.png") });
    assert.deepEqual(other.problems, []);
    await other.page.close();
  });
}
