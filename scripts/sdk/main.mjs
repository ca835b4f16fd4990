// Makes the SDKs from this checkout, into dist/sdk:
//   node scripts/sdk/main.mjs [go|java|python|typescript] [--check]
// --check also checks their types and style.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { WORKSPACE } from "../packages/workspace.mjs";
import { makeGo } from "./go.mjs";
import { makeJava } from "./java.mjs";
import { oneAtATime } from "./one-at-a-time.mjs";
import { makePython } from "./python.mjs";
import { writeSchema } from "./schema.mjs";
import { makeTypescript } from "./typescript.mjs";

const MAKERS = { go: makeGo, java: makeJava, python: makePython, typescript: makeTypescript };

const { values, positionals } = parseArgs({ allowPositionals: true, options: { check: { type: "boolean" } } });
const unknown = positionals.filter((name) => !(name in MAKERS));
if (unknown.length > 0)
  throw new Error(`no SDK for ${unknown.join(", ")}; there are: ${Object.keys(MAKERS).join(", ")}`);

const cache = join(WORKSPACE, "node_modules/.cache/rollcall-sdk");
const schema = join(cache, "schema.binpb");
await mkdir(cache, { recursive: true });
// Run one at a time, because all runs write to the same folders.
await oneAtATime(join(cache, "lock"), async () => {
  await writeSchema(schema);
  for (const name of positionals.length > 0 ? positionals : Object.keys(MAKERS)) {
    const made = await MAKERS[name]({ schema, out: join(WORKSPACE, "dist/sdk"), check: values.check === true });
    process.stdout.write(`${made}\n`);
  }
});
