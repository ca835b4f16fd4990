// Makes the SDKs from this checkout, into dist/sdk:
//   node scripts/sdk/main.mjs [go|python] [--check]
// --check also checks their types and style.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { WORKSPACE } from "../packages/workspace.mjs";
import { makeGo } from "./go.mjs";
import { makePython } from "./python.mjs";
import { writeSchema } from "./schema.mjs";

const MAKERS = { go: makeGo, python: makePython };

const { values, positionals } = parseArgs({ allowPositionals: true, options: { check: { type: "boolean" } } });
const unknown = positionals.filter((name) => !(name in MAKERS));
if (unknown.length > 0)
  throw new Error(`no SDK for ${unknown.join(", ")}; there are: ${Object.keys(MAKERS).join(", ")}`);

const schema = join(WORKSPACE, "node_modules/.cache/rollcall-sdk/schema.binpb");
await writeSchema(schema);
for (const name of positionals.length > 0 ? positionals : Object.keys(MAKERS)) {
  const made = await MAKERS[name]({ schema, out: join(WORKSPACE, "dist/sdk"), check: values.check === true });
  process.stdout.write(`${made}\n`);
}
