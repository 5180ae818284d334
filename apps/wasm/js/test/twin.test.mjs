// The package in Node.js, on what `cargo xtask web` built: both modules against vertices that the run time gave natively
// (`crates/runtime/tests/golden`), and everything that a caller can do wrong.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { largestDifference, parsePoses } from "../bench/rounds.mjs";
import { hasRelaxedSimd, hasSimd, Motion, Twin, TwinError, TwinModule } from "../dist/index.js";

const golden = new URL("../../../../crates/runtime/tests/golden/", import.meta.url);
const corpus = new URL("../../../../fuzz/corpus/twin/", import.meta.url);
/** The example program `native` of `apps/wasm`, which `cargo xtask test` names; without it some tests are skipped. */
const native = process.env.UNDERSTUDY_NATIVE;
const made = mkdtempSync(join(tmpdir(), "understudy-wasm-"));
after(() => rmSync(made, { recursive: true, force: true }));
if (native) execFileSync(native, ["--made", made]);
const skip = native ? false : "UNDERSTUDY_NATIVE names no program: `cargo xtask test` does";
const read = async (name, folder = golden) => new Uint8Array(await readFile(new URL(name, folder)));
const json = async (name) => JSON.parse(await readFile(new URL(name, golden), "utf8"));

/** Four columns of three numbers, as the golden files have bones, to 4×4. */
const matrices = (bones) => bones.flatMap((b) => [0, 3, 6, 9].flatMap((c) => [...b.slice(c, c + 3), c === 9 ? 1 : 0]));

function close(got, want, tolerance = 1e-3) {
  assert.equal(got.length, want.length);
  got.forEach((number, index) => assert.ok(Math.abs(number - want[index]) < tolerance, `${index}: ${number}, ${want[index]}`));
}

test("this engine has SIMD, and the feature test does not say yes to everything", () => {
  assert.equal(hasSimd(), true);
  assert.equal(WebAssembly.validate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5])), false);
});

const names = ["understudy.wasm", ...(hasRelaxedSimd() ? ["understudy-relaxed.wasm"] : [])];
for (const name of names) {
  describe(name, async () => {
    const module = await TwinModule.create(new URL(`../dist/${name}`, import.meta.url));

    test("was built with the right instructions", () => {
      assert.equal(module.lanes, name.includes("relaxed") ? "SIMD128, relaxed" : "SIMD128");
      assert.equal(module.format, 4);
    });

    test("a body gives the vertices that it gives natively", async () => {
      const twin = await Twin.load(await read("body-v3.twin"), { module });
      const pose = await json("body-v3.json");
      const bones = matrices(pose.bones);
      const out = new Float32Array(3 * twin.vertexCount);
      assert.equal(twin.pose({ bones, controls: pose.controls }, out), out);
      close(out, pose.vertices.flat());
      close(twin.vertices, out, 1e-9);
      // Twice the same pose, as a crowd.
      const both = twin.crowd({ bones: [...bones, ...bones], controls: [...pose.controls, ...pose.controls] });
      close(both, [...pose.vertices.flat(), ...pose.vertices.flat()]);
      assert.equal(twin.restBones.length, 16 * twin.header.inputs.bones.length);
      assert.equal(twin.restBones[15], 1);
      assert.throws(() => twin.gradient({ bones }, out), TwinError);
      assert.equal(twin.posedByControls, false);
      assert.throws(() => twin.pose({ controls: {} }), /posed by bones/);
      twin.free();
    });

    test("a face gives the vertices and normals that it gives natively, and a gradient", async () => {
      const twin = await Twin.load(await read("face-v3.twin"), { module });
      const pose = await json("face-v3.json");
      const { controls } = twin.header.inputs;
      const out = new Float32Array(3 * twin.vertexCount);
      twin.pose({ controls: pose.controls }, out);
      close(out, pose.vertices.flat());
      close(twin.normals(), pose.normals.flat());
      // By name, and the others at rest.
      const named = twin.pose({ controls: { [controls[1].name]: 0.25 } }).slice();
      const values = twin.defaults;
      values[1] = 0.25;
      close(twin.pose({ controls: values }), named, 1e-9);
      // The derivative of the sum of all places, against differences.
      const sum = (values) => twin.pose({ controls: values }).reduce((sum, number) => sum + number, 0);
      const slopes = twin.gradient({ controls: pose.controls }, new Float32Array(out.length).fill(1)).slice();
      const step = 1e-3;
      for (const place of [0, controls.length - 1]) {
        const moved = [-step, step].map((by) => sum(Float32Array.from(pose.controls, (v, p) => (p === place ? v + by : v))));
        const difference = (moved[1] - moved[0]) / (2 * step);
        assert.ok(Math.abs(difference - slopes[place]) < 0.02 * (1 + Math.abs(difference)), `${difference} ${slopes[place]}`);
      }
      twin.free();
    });

    test("what is wrong is an exception with the run time's words, and the twin plays on", async () => {
      const twin = await Twin.load(await read("face-v3.twin"), { module });
      const wrong = (work, message) => assert.throws(work, (error) => error instanceof TwinError && message.test(error.message));
      wrong(() => twin.pose({}), /bones, controls or both/);
      wrong(() => twin.pose({ controls: [1, 2] }), /controls of the pose: 2 numbers, 7 expected/);
      wrong(() => twin.pose({ controls: { nobody: 1 } }), /no control 'nobody'/);
      wrong(() => twin.pose({ controls: Array(7).fill(NaN) }), /controls of the pose: entry 0 is not finite/);
      wrong(() => twin.pose({ bones: [] }), /posed by controls, not by bones/);
      wrong(() => twin.pose({ controls: {} }, new Float32Array(3)), /array for the result: 3 numbers/);
      wrong(() => twin.crowd({ controls: Array(8).fill(0) }), /a multiple of 7/);
      twin.pose({ controls: {} });
      twin.free();
      twin.free();
      wrong(() => twin.pose({ controls: {} }), /was freed/);
    });

    test("damaged files are refused, and the module plays on", async () => {
      const good = await read("face-v3.twin");
      const refused = async (bytes, message) => {
        await assert.rejects(Twin.load(bytes, { module }), (error) => error instanceof TwinError && message.test(error.message));
      };
      await refused(new Uint8Array(), /safetensors/);
      for (let length = 1; length < good.length; length += 211) await refused(good.slice(0, length), /./);
      for (let place = 0; place < good.length; place += 97) {
        const damaged = good.slice();
        damaged[place] ^= 1 << place % 8;
        await refused(damaged, /./);
      }
      for (const name of ["bad-flipped.twin", "bad-version.twin", "bad-truncated.twin"]) await refused(await read(name, corpus), /./);
      for (const name of ["good-body.twin", "good-face.twin", "good-diff.twin", "good-diff-controls.twin", "good-skin.twin"]) {
        const twin = await Twin.load(await read(name, corpus), { module });
        const places = twin.pose(twin.rest);
        assert.ok(places.every(Number.isFinite), name);
        twin.free();
      }
      const again = await Twin.load(good, { module });
      again.pose({ controls: {} });
      again.free();
    });

    test("damaged files with a right checksum never stop the module", { skip }, async () => {
      const file = await readFile(join(made, "damaged.bin"));
      let [read, played] = [0, 0];
      for (let at = 0; at < file.length; ) {
        const length = file.readUInt32LE(at);
        const bytes = new Uint8Array(file.subarray(at + 4, at + 4 + length));
        at += 4 + length;
        read++;
        try {
          const twin = await Twin.load(bytes, { module });
          twin.pose(twin.rest);
          played++;
          twin.free();
        } catch (problem) {
          assert.ok(problem instanceof TwinError && !/the module stopped/.test(problem.message), String(problem));
        }
      }
      assert.ok(played > 0 && played < read, `${played} of ${read}`);
    });

    for (const kind of ["body", "face", "diff", "skin"]) {
      test(`a ${kind} twin of film size gives what it gives natively`, { skip }, async () => {
        const [file, poses] = [`${kind}.twin`, `${kind}-${name}.poses`].map((name) => join(made, name));
        execFileSync(native, [file, poses], { input: "" });
        const bytes = await readFile(poses);
        const data = parsePoses(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
        const size = data.vertices[0].reduce((most, number) => Math.max(most, Math.abs(number)), 0);
        const twin = await Twin.load(await readFile(file), { module });
        const apart = largestDifference(twin, data) / 10 / size;
        // Sums of hundreds of products in another order, each rounded to 24 bits.
        assert.ok(apart < 5e-6, `${apart} of ${size} cm`);
        twin.free();
      });
    }

    test("points are dragged as they are natively", { skip }, async () => {
      const twin = await Twin.load(await readFile(join(made, "follows.twin")), { module });
      const want = JSON.parse(await readFile(join(made, "follows.json"), "utf8"));
      assert.deepEqual(twin.points.map(({ region }) => region), ["eye", "eye", "mouth", "mouth", "mouth"]);
      const controls = new Float32Array(want.controls.length);
      assert.throws(() => twin.drag({ move: new Map() }, controls), /no pose is held/);
      const places = twin.hold(want.start).slice();
      const targets = {
        move: new Map(want.move.map(([point, place]) => [point, place])),
        sights: new Map(want.move.map(([point, , sight]) => [point, sight])),
        pinned: want.pinned,
      };
      const after = twin.drag(targets, controls).slice();
      close(after, want.points.flat(), 2e-3);
      close(controls, want.controls, 2e-3);
      const off = (at) => Math.hypot(...want.move[0][1].map((x, axis) => x - at[axis]));
      assert.ok(off(after) < 0.7 * off(places), `${off(after)} of ${off(places)}`);
      assert.throws(() => twin.drag({ move: new Map([[99, [0, 0, 0]]]) }, controls), /no point 99/);
      assert.throws(() => twin.drag({ move: new Map([[0, [NaN, 0, 0]]]) }, controls), /not finite/);
      // By name, from the pose at rest.
      close(twin.hold({}), twin.points.flatMap(({ rest }) => rest), 1e-4);
      twin.free();
      const plain = await Twin.load(await read("face-v3.twin"), { module });
      assert.deepEqual(plain.points, []);
      assert.throws(() => plain.hold({}), /not learned to follow points/);
      plain.free();
    });

    test("hands and feet reach as they do natively", { skip }, async () => {
      const twin = await Twin.load(await readFile(join(made, "body.twin")), { module });
      const { spelling, start, goals } = JSON.parse(await readFile(join(made, "reaches.json"), "utf8"));
      const bones = Float32Array.from(start.flat());
      assert.deepEqual(twin.handles, []);
      assert.throws(() => twin.reach("hand_L", [0, 0, 0], bones), /no handle 'hand_L'/);
      assert.throws(() => twin.spellLimbs({ hand_L: ["b2", "b9", "nobody"] }), /no bone 'nobody'/);
      twin.spellLimbs(spelling);
      assert.deepEqual(new Map(twin.handles.map(({ name, bone }) => [name, bone])), new Map([["hand_L", 17], ["foot_R", 33]]));
      const reached = new Set();
      for (const { handle, target, pole, soft, keep, reach, places } of goals) {
        assert.equal(twin.reach(handle, target, bones, { pole, soft, keep }), reach);
        reached.add(reach);
        const got = Array.from({ length: places.length }, (_, bone) => [...bones.subarray(16 * bone + 12, 16 * bone + 15)]);
        close(got.flat(), places.flat(), 1e-3);
      }
      assert.ok(reached.has("exact") && reached.has("too far"), [...reached].join());
      twin.pose({ bones });
      const kept = bones.slice();
      assert.throws(() => twin.reach("hand_L", [NaN, 0, 0], bones), /the target .* is not finite/);
      assert.throws(() => twin.reach("hand_L", [0, 0], bones), /target: 2 numbers, 3 expected/);
      assert.throws(() => twin.reach("hand_L", [0, 0, 0], bones.subarray(16)), /numbers, \d+ expected/);
      assert.deepEqual(bones, kept);
      twin.free();
    });

    test("memory is used again after twins are freed", async () => {
      const bytes = await read("face-v3.twin");
      const rounds = async (count) => {
        for (let round = 0; round < count; round++) {
          const twin = await Twin.load(bytes, { module });
          twin.pose({ controls: {} });
          twin.free();
        }
        return module.memory.buffer.byteLength;
      };
      // An allocator leaves holes, but not more and more of them.
      const before = await rounds(50);
      const after = await rounds(500);
      assert.ok(after - before < 20 * bytes.length, `${before}, then ${after} bytes`);
    });
  });
}

test("several twins share a module and do not disturb each other", async () => {
  const [a, b] = await Promise.all([read("face-v3.twin").then((f) => Twin.load(f)), read("face-v3.twin").then((f) => Twin.load(f))]);
  assert.equal(a.module, b.module);
  const pose = await json("face-v3.json");
  const first = a.pose({ controls: pose.controls });
  b.pose({ controls: {} });
  close(first, pose.vertices.flat());
});

test("a character plays motion on command, and another beside it plays its own", async () => {
  const file = await read("sway.motion");
  const module = await TwinModule.create(new URL("../dist/understudy.wasm", import.meta.url));
  const motion = await Motion.load(file, { module, seed: 7 });
  assert.deepEqual(motion.description.labels.map((label) => label.label), ["sway", "nod", "turn"]);
  assert.equal(motion.rate, 24);
  const other = motion.another(8);
  const takes = [motion, other].map((character) => {
    character.command({ command: "transition", label: "turn" });
    character.command({ command: "idle", seconds: 1, around: ["turn_0", "turn_1"], dwell: 0.5 });
    const frames = [];
    while (character.situation.busy && frames.length < 2000) frames.push([...character.step()]);
    assert.equal(character.situation.label, "turn");
    assert.ok(character.situation.distance <= 1.01);
    return frames;
  });
  assert.ok(takes.every((frames) => frames.length > 30 && frames.flat().every(Number.isFinite)));
  assert.notDeepEqual(takes[0], takes[1], "another seed");
  const again = await Motion.load(file, { module, seed: 7 });
  again.command({ command: "transition", label: "turn" });
  assert.deepEqual([...again.step()], takes[0][0], "the same seed");
  assert.throws(() => motion.command({ command: "transition", label: "cry" }), /there is no label 'cry'/);
  assert.throws(() => motion.script("idle 1s\nfly"), /line 2/);
  motion.script("play turn_0[0.1..0.5]; stop");
  await assert.rejects(Motion.load(file.slice(0, -1), { module }), TwinError);
  other.free();
  assert.throws(() => other.step(), TwinError);
});
