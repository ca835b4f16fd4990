// Makes the module for Go. Its stubs and reasons are generated from the schema into sdk/go, where `go get` finds
// them.
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { run } from "../packages/run.mjs";
import { WORKSPACE } from "../packages/workspace.mjs";
import { clientServices, reasonsIn } from "./services.mjs";

const MODULE = join(WORKSPACE, "sdk/go");
const TOOLS = join(WORKSPACE, "node_modules/.cache/rollcall-sdk/go-tools");
const GENERATORS = ["google.golang.org/protobuf/cmd/protoc-gen-go", "google.golang.org/grpc/cmd/protoc-gen-go-grpc"];

/** Generate the files of the module. Returns its folder. */
export async function makeGo({ schema, check }) {
  // Install the generators at the versions in go.mod, which lists them as tools.
  await run("go", ["install", ...GENERATORS], { cwd: MODULE, env: { GOBIN: TOOLS } });
  const { file: files } = fromBinary(FileDescriptorSetSchema, await readFile(schema));
  const ours = files.filter(({ name }) => name.startsWith("rollcall/"));
  await checkClient(await clientServices(files));
  await rm(join(MODULE, "gen"), { recursive: true, force: true });
  const opt = ["paths=source_relative"];
  const plugins = ["protoc-gen-go", "protoc-gen-go-grpc"].map((plugin) => ({
    local: join(TOOLS, plugin),
    out: join(MODULE, "gen"),
    opt,
  }));
  const template = JSON.stringify({ version: "v2", plugins });
  const buf = join(WORKSPACE, "node_modules/.bin/buf");
  await run(buf, ["generate", `${schema}#format=binpb`, "--template", template, ...pathsOf(ours)]);
  await writeFile(join(MODULE, "reasons.go"), reasonsFile(ours));
  await run("gofmt", ["-w", join(MODULE, "reasons.go")]);
  if (check) {
    const untidy = String(await run("gofmt", ["-l", "."], { cwd: MODULE }));
    if (untidy !== "") throw new Error(`gofmt would change:\n${untidy}`);
    await run("go", ["vet", "./..."], { cwd: MODULE });
  }
  return MODULE;
}

/** Fail if the hand-written clients lack a service. */
async function checkClient(services) {
  const client = await readFile(join(MODULE, "client.go"), "utf8");
  const missing = services.filter(({ service, at }) => !client.includes(`New${service.name}Client(of["${at}"])`));
  if (missing.length > 0) throw new Error(`client.go lacks ${missing.map(({ service }) => service.name).join(", ")}`);
}

function pathsOf(files) {
  return [...new Set(files.map(({ name }) => name))].flatMap((name) => ["--path", name]);
}

function reasonsFile(files) {
  const lines = reasonsIn(files).flatMap(({ reason, comment: [first, ...rest] }) => [
    ...[`${goName(reason)}: ${first}`, ...rest].map((line) => `\t// ${line}`),
    `\t${goName(reason)} = "${reason}"`,
  ]);
  return `// Code generated from the schema. DO NOT EDIT.

package rollcall

// Reasons of errors: the values of Error.Reason. A server of a later release may send others.
const (
${lines.join("\n")}
)
`;
}

function goName(reason) {
  const words = reason.split("_").map((word) => (word === "ID" ? word : word[0] + word.slice(1).toLowerCase()));
  return `Reason${words.join("")}`;
}
