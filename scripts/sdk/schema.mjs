// The schema as other languages need it: one set of descriptors, with comments and without the rules for values, which
// the server checks. An SDK that carried them would need the library of their annotations.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { run } from "../packages/run.mjs";
import { WORKSPACE } from "../packages/workspace.mjs";

const RULES = "buf/validate/validate.proto";
/** Between parts of the control plane, and between agent and keeper. */
const PRIVATE = /^rollcall\/(keeper\/|health\/v1\/health_internal\.proto$)/;

/** Write the public schema as a FileDescriptorSet. */
export async function writeSchema(path) {
  await mkdir(dirname(path), { recursive: true });
  const all = `${path}.all`;
  await run(join(WORKSPACE, "node_modules/.bin/buf"), [
    "build",
    "--as-file-descriptor-set",
    "-o",
    `${all}#format=binpb`,
  ]);
  const set = fromBinary(FileDescriptorSetSchema, await readFile(all));
  // Details of errors belong to the API, though no method names them.
  const known = new Set(set.file.filter(isPublic).flatMap((file) => [file.name, ...file.dependency]));
  set.file = set.file.filter((file) => file.name !== RULES && (isPublic(file) || known.has(file.name)));
  set.file.forEach(withoutRules);
  await writeFile(path, toBinary(FileDescriptorSetSchema, set));
}

function isPublic({ name }) {
  return (name.startsWith("rollcall/") && !PRIVATE.test(name)) || name.startsWith("google/rpc/");
}

function withoutRules(file) {
  const at = file.dependency.indexOf(RULES);
  if (at < 0) return;
  file.dependency.splice(at, 1);
  file.messageType.forEach(clearMessage);
}

function clearMessage(message) {
  clearOptions(message);
  message.field.forEach(clearOptions);
  message.oneofDecl.forEach(clearOptions);
  message.nestedType.forEach(clearMessage);
}

/** Options that the descriptors themselves do not declare are those of extensions. */
function clearOptions({ options }) {
  if (options !== undefined) options.$unknown = undefined;
}
