// Writes libs/api/src/comments/gen/comments.ts: the comments of the public schema, which the stubs lack. The
// description of the API is made from them. With --check, the script also fails if the file did not match.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const PREFACE = `// Generated from proto/ by \`make gen\`; do not edit.

/** The comments of services, methods, messages, enums and their parts, by full name. */
export const COMMENTS: Readonly<Record<string, string>> = `;

// Field numbers of descriptor.proto, as used in the paths of source locations.
const FILE = { message: 4, enum: 5, service: 6 };
const MESSAGE = { field: 2, nested: 3, enum: 4 };
const VALUE = 2;
const METHOD = 2;

const root = fileURLToPath(new URL("..", import.meta.url));
const target = `${root}libs/api/src/comments/gen/comments.ts`;
const wanted = `${PREFACE}${JSON.stringify(comments(), null, 2)};\n`;
if (read() !== wanted) {
  writeFileSync(target, wanted);
  if (process.argv.includes("--check")) {
    process.stderr.write(
      "libs/api/src/comments/gen/comments.ts did not match proto/ and was generated again. Commit it.\n",
    );
    process.exitCode = 1;
  }
}

function read() {
  try {
    return readFileSync(target, "utf8");
  } catch {
    return "";
  }
}

function comments() {
  const binary = execFileSync("node_modules/.bin/buf", ["build", "--as-file-descriptor-set", "-o", "-#format=binpb"], {
    cwd: root,
    maxBuffer: 2 ** 26,
  });
  const { file } = fromBinary(FileDescriptorSetSchema, binary);
  const all = file.filter(({ name }) => name.startsWith("rollcall/")).flatMap(ofFile);
  return Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function ofFile(file) {
  const names = namesOfFile(file);
  return (file.sourceCodeInfo?.location ?? []).flatMap(({ path, leadingComments }) => {
    const name = names.get(path.join());
    const text = tidy(leadingComments);
    return name === undefined || text === "" ? [] : [[name, text]];
  });
}

/** Join the lines of a comment, and keep its paragraphs. */
function tidy(comment) {
  const paragraphs = comment.split(/\n\s*\n/);
  return paragraphs
    .map((paragraph) => paragraph.replaceAll(/\s+/g, " ").trim())
    .join("\n\n")
    .trim();
}

/** Map the paths of comments to the full names of the described elements. */
function namesOfFile(file) {
  const entries = [
    ...each(file.messageType, [FILE.message], file.package, ofMessage),
    ...each(file.enumType, [FILE.enum], file.package, ofEnum),
    ...each(file.service, [FILE.service], file.package, ofService),
  ];
  return new Map(entries.map(([path, name]) => [path.join(), name]));
}

function ofMessage(message, path, name) {
  return [
    ...each(message.field, [...path, MESSAGE.field], name, () => []),
    ...each(message.nestedType, [...path, MESSAGE.nested], name, ofMessage),
    ...each(message.enumType, [...path, MESSAGE.enum], name, ofEnum),
  ];
}

function ofEnum({ value }, path, name) {
  return each(value, [...path, VALUE], name, () => []);
}

function ofService({ method }, path, name) {
  return each(method, [...path, METHOD], name, () => []);
}

/** List the paths and names of descriptors and their parts. */
function each(descriptors, path, parent, parts) {
  return descriptors.flatMap((it, index) => {
    const [at, name] = [[...path, index], `${parent}.${it.name}`];
    return [[at, name], ...parts(it, at, name)];
  });
}
