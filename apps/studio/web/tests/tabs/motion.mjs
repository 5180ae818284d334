// The Motion tab: Mira acts on command, a wrong script is marked in its line, and a game against her is played to its end.

import assert from "node:assert/strict";
import { join } from "node:path";
import { understudy } from "../harness.mjs";
import { difference } from "../pixels.mjs";

export async function check({ page, step, folder, program, picture, serious, overlaps, shots }) {
  const panel = page.locator("#panel-motion");
  const stage = panel.locator(".stage").first();
  const drawn = () => stage.evaluate((element) => Number(element.dataset.drawn ?? 0));
  const waitFor = (attribute, value) => page.waitForFunction(([name, want]) => document.querySelector("#panel-motion .stage").dataset[name] === want, [attribute, value], { timeout: 120_000 });
  const frames = async (more) => {
    const want = (await drawn()) + more;
    await page.waitForFunction((least) => Number(document.querySelector("#panel-motion .stage").dataset.drawn ?? 0) >= least, want, { timeout: 120_000 });
  };

  await step("motion that was learned at the command line is played", async () => {
    const file = join(folder, "mira.motion");
    // Few frames and iterations: what is tested here is the page, not how well was learned.
    await understudy(program, ["motion", "learn", "mira", "-o", file, "--rate", "12", "--iterations", "10"]);
    await page.getByRole("tab", { name: "Motion" }).click();
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), panel.getByRole("button", { name: "Open…" }).click()]);
    await chooser.setFiles(file);
    await frames(6);
    const first = await picture("motion .stage:not(.latent)");
    assert.ok(first.spread > 15, `the stage is blank: ${first.spread}`);
    const space = await picture("motion .latent");
    assert.ok(space.spread > 1, `the latent space is blank: ${space.spread}`);
    await page.screenshot({ path: join(shots, "motion.png") });
  });

  await step("buttons make her act, and the strip says what was played", async () => {
    await panel.getByLabel("Speed").selectOption("4");
    await panel.getByRole("button", { name: "roar", exact: true }).click();
    await waitFor("label", "roar");
    const before = await picture("motion .stage:not(.latent)");
    await panel.getByLabel("Clip", { exact: true }).selectOption("roar_1");
    await panel.getByRole("button", { name: "Play", exact: true }).last().click();
    await waitFor("doing", "play");
    await frames(6);
    assert.ok(difference(before, await picture("motion .stage:not(.latent)")) > 0.005, "she does not roar");
    assert.ok((await panel.locator(".played .piece").count()) >= 2, "nothing is said of what was played");
  });

  await step("a script's mistake is told in its line, and nothing of it is played", async () => {
    await panel.locator("#script").fill("transition happy\nmove smile_99 in 1s\nidle 1s");
    await panel.locator(".problem", { hasText: "Line 2: there is no clip 'smile_99'" }).waitFor();
    assert.equal(await panel.locator(".gutter .wrong").textContent(), "2");
    await panel.getByRole("button", { name: "Play script" }).click();
    await frames(8);
    assert.notEqual(await stage.getAttribute("data-label"), "happy");
    await panel.locator("#script").fill("stop\ntransition happy\nplay happy_1[0.5..2.5]");
    await page.waitForFunction(() => document.querySelector("#panel-motion .problem").textContent === "");
    await panel.getByRole("button", { name: "Play script" }).click();
    await waitFor("label", "happy");
    await serious("motion");
    assert.deepEqual(await overlaps(), []);
  });

  await step("a game of tic-tac-toe is played to its end", async () => {
    await panel.getByLabel("Speed").selectOption("8");
    await panel.locator("#forget").fill("60");
    await panel.getByRole("button", { name: "New game" }).click();
    const status = panel.locator(".said");
    const cell = panel.locator(".board .cell");
    const moods = new Set();
    let mine = 0;
    for (const until = Date.now() + 400_000; ;) {
      assert.ok(Date.now() < until, "the game does not end");
      const { mood, end } = await status.evaluate(({ dataset }) => ({ mood: dataset.mood, end: dataset.end }));
      if (mood) moods.add(mood);
      if (end) break;
      const free = panel.locator(".board .cell:enabled");
      if ((await free.count()) > 0) {
        // Hers by the time the mouse is there: look again.
        if (!(await free.first().click({ timeout: 2000 }).then(() => true, () => false))) continue;
        mine += 1;
        if (mine === 2) await page.screenshot({ path: join(shots, "motion-game.png") });
        // Taken at once, and hers to move.
        await page.waitForFunction(() => !document.querySelector("#panel-motion .board .cell:enabled") || document.querySelector("#panel-motion .said").dataset.end, null, { timeout: 120_000 });
      }
      await page.waitForTimeout(60);
    }
    const marks = await cell.evaluateAll((cells) => cells.map(({ dataset }) => dataset.mark));
    const count = (mark) => marks.filter((other) => other === mark).length;
    assert.equal(count("yours"), mine);
    assert.ok(mine >= 3 && Math.abs(count("hers") - mine) <= 1, marks.join(" "));
    assert.ok(moods.has("greets"), [...moods].join(" "));
    assert.match(await status.textContent(), /(She has|You have|Nobody has) won\./);
    assert.match(await panel.locator("section[aria-label=Game]").textContent(), /you \d, she \d, nobody \d/);
    await frames(10);
    await page.screenshot({ path: join(shots, "motion-end.png") });
  });
}
