// Writes the schema for other languages: one set of descriptors with comments. It has no validation rules,
// because the server checks them, and because an SDK would need the library that defines the annotations of the
// rules.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { run } from "../packages/run.mjs";
import { WORKSPACE } from "../packages/workspace.mjs";

const RULES = "buf/validate/validate.proto";
/**
 * Matches the packages and files of internal services: between parts of the control plane, and between agent and
 * keeper.
 */
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
  // Include error details, because they belong to the API although no method names them.
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

/** Remove extension options, which are unknown fields of the descriptors. */
function clearOptions({ options }) {
  if (options !== undefined) options.$unknown = undefined;
}
