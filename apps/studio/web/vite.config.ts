// The page is served below a token, so that every address in it is relative. The twin's package and its modules are what
// `cargo xtask web` built before.
import { defineConfig } from "vite";
import { fileURLToPath } from "node:url";

export default defineConfig({
  base: "./",
  resolve: {
    alias: {
      "understudy-twin": fileURLToPath(new URL("../../wasm/js/dist/index.js", import.meta.url)),
    },
  },
  build: {
    outDir: "../page/dist",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1200,
    modulePreload: { polyfill: false },
  },
});
