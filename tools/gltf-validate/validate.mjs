// Checks glTF files with the Khronos validator: one line a finding, exit 1 when there is an error.
// Usage: npm ci && node validate.mjs FILE.glb...
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import validator from 'gltf-validator';

const SEVERITY = ['error', 'warning', 'info', 'hint'];
const files = process.argv.slice(2);
if (files.length === 0) {
  console.error('usage: node validate.mjs FILE.glb...');
  process.exit(2);
}
let failed = false;
for (const file of files) {
  let report;
  try {
    report = await validator.validateBytes(new Uint8Array(await readFile(file)), {
      uri: basename(file),
      maxIssues: 100,
      externalResourceFunction: async (uri) => new Uint8Array(await readFile(join(dirname(file), uri))),
    });
  } catch (problem) {
    console.log(`${file}: error: ${problem}`);
    failed = true;
    continue;
  }
  const { numErrors, numWarnings, numInfos, numHints, messages } = report.issues;
  console.log(`${file}: ${numErrors} errors, ${numWarnings} warnings, ${numInfos} infos, ${numHints} hints`);
  for (const { severity, code, message, pointer } of messages) {
    console.log(`  ${SEVERITY[severity]} ${code} at ${pointer ?? 'the file'}: ${message}`);
  }
  failed ||= numErrors > 0;
}
process.exit(failed ? 1 : 0);
