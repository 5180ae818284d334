// Runs a WASI program (a test binary of ours, compiled for wasm32-wasip1) in Node.js: `node run.mjs PROGRAM ARGS`.
// Cargo calls it as the runner of that target; `cargo xtask cross` sets it.
import { readFile } from "node:fs/promises";
import { argv, env, exit } from "node:process";
import { WASI } from "node:wasi";

const [program, ...rest] = argv.slice(2);
const wasi = new WASI({ version: "preview1", args: [program, ...rest], env, preopens: {}, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
exit(wasi.start(instance));
