// Makes the package for TypeScript and JavaScript from sdk/typescript and from files generated from the schema. The
// package is built and packed.
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { run } from "../packages/run.mjs";
import { WORKSPACE } from "../packages/workspace.mjs";
import { clientServices, commentAt, reasonsIn, toCamelCase } from "./services.mjs";

const SOURCE = join(WORKSPACE, "sdk/typescript");
const STAGE = join(WORKSPACE, "node_modules/.cache/rollcall-sdk/typescript");
const BIN = join(WORKSPACE, "node_modules/.bin");

/** Make the package. Returns the path of its tarball. */
export async function makeTypescript({ schema, out, check }) {
  await mkdir(STAGE, { recursive: true });
  for (const folder of ["src", "dist", "tests", "examples"])
    await rm(join(STAGE, folder), { recursive: true, force: true });
  // Keep installed dependencies, so that npm only checks that they match the lock file.
  await cp(SOURCE, STAGE, { recursive: true });
  const { scripts: _, ...manifest } = JSON.parse(await readFile(join(SOURCE, "package.json"), "utf8"));
  await writeFile(join(STAGE, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  await generate(schema);
  await run("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"], { cwd: STAGE });
  await run(join(BIN, "tsc"), ["-p", "."], { cwd: STAGE });
  // Check the types of tests and examples after the build, because they import the package by name as its users do.
  if (check) await run(join(BIN, "tsc"), ["-p", "tsconfig.users.json"], { cwd: STAGE });
  await mkdir(out, { recursive: true });
  const packed = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", out], { cwd: STAGE });
  const [{ filename }] = JSON.parse(String(packed));
  return join(out, filename);
}

async function generate(schema) {
  const { file: files } = fromBinary(FileDescriptorSetSchema, await readFile(schema));
  const src = join(STAGE, "src");
  const plugin = {
    local: [process.execPath, join(WORKSPACE, "node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es")],
    out: join(src, "gen"),
    opt: ["target=ts", "import_extension=ts", "erasable_syntax=true"],
  };
  const template = JSON.stringify({ version: "v2", plugins: [plugin] });
  const paths = files
    .filter(({ name }) => !name.startsWith("google/protobuf/"))
    .flatMap(({ name }) => ["--path", name]);
  await run(join(BIN, "buf"), ["generate", `${schema}#format=binpb`, "--template", template, ...paths]);
  await writeFile(join(src, "services.ts"), servicesFile(await clientServices(files)));
  await writeFile(join(src, "reasons.ts"), reasonsFile(files));
}

function servicesFile(services) {
  const modules = services.map(
    ({ file, service }) => `import { ${service.name} } from "./gen/${file.name.replace(/\.proto$/, "_pb.ts")}";`,
  );
  const fields = services.flatMap(({ file, service, index, name }) => [
    ...docComment(commentAt(file, [6, index])),
    `  readonly ${toCamelCase(name)}: MethodsOf<typeof ${service.name}>;`,
  ]);
  const inits = services.map(
    ({ service, name, at }) => `    this.${toCamelCase(name)} = methodsOf(${service.name}, transports.${at});`,
  );
  return `// Generated from the schema.
import type { Transport } from "@connectrpc/connect";
${modules.join("\n")}
import { type MethodsOf, methodsOf } from "./methods.ts";

/** Every service of one control plane. */
export class Services {
${fields.join("\n")}

  constructor(transports: Readonly<Record<"registry" | "health" | "admin" | "scheduler", Transport>>) {
${inits.join("\n")}
  }
}
`;
}

function reasonsFile(files) {
  const lines = reasonsIn(files).flatMap(({ reason, comment }) => [
    ...docComment(comment),
    `  ${reason}: "${reason}",`,
  ]);
  return `// Generated from the schema.

/** The values of \`RollcallError.reason\`. A server of a later release may send others. */
export const Reason = {
${lines.join("\n")}
} as const;
`;
}

function docComment(lines) {
  return lines.length === 0 ? [] : ["  /**", ...lines.map((line) => `   * ${line.replaceAll("*/", "* /")}`), "   */"];
}
