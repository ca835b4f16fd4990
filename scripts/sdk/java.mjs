// The library for Java: sdk/java with what is generated from the schema, built by Maven; its libraries go beside it.
import { chmod, cp, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { run } from "../packages/run.mjs";
import { WORKSPACE } from "../packages/workspace.mjs";
import { clientServices, commentAt, reasonsIn, toCamelCase } from "./services.mjs";

const SOURCE = join(WORKSPACE, "sdk/java");
const CACHE = join(WORKSPACE, "node_modules/.cache/rollcall-sdk");
const STAGE = join(CACHE, "java");
const TOOLS = join(CACHE, "java-tools");
const COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";
const PACKAGE = "dev";
const NO_SIDE_EFFECTS = 1;

/** Make the library, and test it where `check` says so. Answers the path of its jar. */
export async function makeJava({ schema, out, check }) {
  await rm(STAGE, { recursive: true, force: true });
  await cp(SOURCE, STAGE, { recursive: true });
  await cp(join(WORKSPACE, "sdk/vectors"), join(STAGE, "vectors"), { recursive: true });
  const pom = await readFile(join(SOURCE, "pom.xml"), "utf8");
  await generate(schema, await installTools(pom));
  const tests = check ? [] : ["-DskipTests"];
  await run("mvn", ["--batch-mode", "--quiet", "--no-transfer-progress", "package", ...tests], { cwd: STAGE });
  const jar = `rollcall-client-${/<version>(.+?)<\/version>/.exec(pom)[1]}.jar`;
  await mkdir(out, { recursive: true });
  await cp(join(STAGE, "target", jar), join(out, jar));
  await rm(join(out, "java"), { recursive: true, force: true });
  await cp(join(STAGE, "target/libraries"), join(out, "java"), { recursive: true });
  return join(out, jar);
}

/** protoc and its plugin, at the versions that the pom names. Answers their paths. */
async function installTools(pom) {
  const versionOf = (name) => new RegExp(`<${name}\\.version>(.+?)</${name}\\.version>`).exec(pom)[1];
  const system = { linux: "linux", darwin: "osx" }[process.platform];
  const platform = `${system}-${{ x64: "x86_64", arm64: "aarch_64" }[process.arch]}`;
  const install = async (group, name, version) => {
    const file = join(TOOLS, `${name}-${version}-${platform}.exe`);
    if (await stat(file).catch(() => null)) return file;
    const artifact = `${group}:${name}:${version}:exe:${platform}`;
    await run("mvn", ["--batch-mode", "--quiet", COPY, `-Dartifact=${artifact}`, `-DoutputDirectory=${TOOLS}`]);
    await chmod(file, 0o755);
    return file;
  };
  return {
    protoc: await install("com.google.protobuf", "protoc", versionOf("protobuf")),
    plugin: await install("io.grpc", "protoc-gen-grpc-java", versionOf("grpc")),
  };
}

async function generate(schema, { protoc, plugin }) {
  const set = fromBinary(FileDescriptorSetSchema, await readFile(schema));
  const ours = set.file.filter(({ name }) => name.startsWith("rollcall/"));
  for (const file of ours) {
    file.options ??= { $typeName: "google.protobuf.FileOptions", uninterpretedOption: [] };
    file.options.javaPackage = javaPackageOf(file);
    file.options.javaMultipleFiles = true;
  }
  const descriptors = join(CACHE, "schema-java.binpb");
  await writeFile(descriptors, toBinary(FileDescriptorSetSchema, set));
  const src = join(STAGE, "src/main/java");
  await run(protoc, [
    `--descriptor_set_in=${descriptors}`,
    `--java_out=${src}`,
    `--plugin=protoc-gen-grpc-java=${plugin}`,
    `--grpc-java_out=@generated=omit:${src}`,
    ...ours.map(({ name }) => name),
  ]);
  const client = join(src, PACKAGE, "rollcall/client");
  const services = await clientServices(set.file);
  const messages = new Map(
    ours.flatMap((file) => file.messageType.map((message) => [`.${file.package}.${message.name}`, { file, message }])),
  );
  await mkdir(join(client, "services"), { recursive: true });
  for (const it of services)
    await writeFile(join(client, `services/${it.service.name}.java`), serviceClass(it, messages));
  await writeFile(join(client, "services/Services.java"), servicesClass(services));
  await writeFile(join(client, "Reason.java"), reasonClass(set.file));
}

function javaPackageOf(file) {
  return `${PACKAGE}.${file.package}`;
}

function serviceClass({ file, service, index }, messages) {
  const methods = service.method.flatMap((method, number) => [
    "",
    ...methodLines({ file, service, method, messages, comment: commentAt(file, [6, index, 2, number]) }),
  ]);
  return `// Generated from the schema.
package dev.rollcall.client.services;

import dev.rollcall.client.Calls;
import dev.rollcall.client.MessageStream;
import java.time.Duration;

${docComment(commentAt(file, [6, index]), "")}
public final class ${service.name} {
  private final Calls calls;

  ${service.name}(Calls calls) {
    this.calls = calls;
  }
${methods.join("\n")}
}
`.replace(/import dev.rollcall.client.MessageStream;\n/, (line) =>
    service.method.some((it) => it.serverStreaming) ? line : "",
  );
}

function methodLines({ file, service, method, messages, comment }) {
  const typeOf = (name) => `${javaPackageOf(messages.get(name).file)}.${messages.get(name).message.name}`;
  const [request, answer] = [typeOf(method.inputType), typeOf(method.outputType)];
  const name = method.name[0].toLowerCase() + method.name.slice(1);
  const descriptor = `${javaPackageOf(file)}.${service.name}Grpc.get${method.name}Method()`;
  const doc = docComment(comment, "  ");
  if (method.serverStreaming) {
    return [
      doc,
      `  public MessageStream<${answer}> ${name}(${request} request) {`,
      `    return ${name}(request, null);`,
      "  }",
      "",
      `  /** As {@link #${name}(${request})}; it ends with UNAVAILABLE when nothing comes for {@code silence}. */`,
      `  public MessageStream<${answer}> ${name}(${request} request, Duration silence) {`,
      `    return calls.stream(${descriptor}, request, silence);`,
      "  }",
    ];
  }
  const unary = [
    doc,
    `  public ${answer} ${name}(${request} request) {`,
    `    return ${name}(request, null);`,
    "  }",
    "",
    `  /** As {@link #${name}(${request})}, within {@code timeout}; null for the client's. */`,
    `  public ${answer} ${name}(${request} request, Duration timeout) {`,
    `    return calls.unary(${descriptor}, request, timeout);`,
    "  }",
  ];
  const items =
    method.options?.idempotencyLevel === NO_SIDE_EFFECTS ? pageItems(messages.get(method.outputType).message) : null;
  if (items === null) return unary;
  const getter = toCamelCase(`get_${items.name}_list`);
  return [
    ...unary,
    "",
    `  /** Every item of all pages of {@link #${name}(${request})}. Iterating throws RollcallException. */`,
    `  public Iterable<${typeOf(items.typeName)}> ${name}Each(${request} request) {`,
    `    return calls.each(`,
    `        ${descriptor},`,
    "        request,",
    "        (next, token) -> next.toBuilder().setPageToken(token).build(),",
    `        ${answer}::${getter},`,
    `        ${answer}::getNextPageToken);`,
    "  }",
  ];
}

/** The field that holds the items of a page; null for an answer that is no page. */
function pageItems({ name, field }) {
  if (!field.some((it) => it.name === "next_page_token")) return null;
  const [items, ...others] = field.filter((it) => it.label === 3 && it.typeName !== "");
  if (items === undefined || others.length > 0) throw new Error(`${name} is a page without one list of items`);
  return items;
}

function servicesClass(services) {
  const fields = services.flatMap(({ file, service, index, name }) => [
    docComment(commentAt(file, [6, index]), "  "),
    `  public final ${service.name} ${toCamelCase(name)};`,
  ]);
  const inits = services.map(
    ({ service, name, at }) => `    ${toCamelCase(name)} = new ${service.name}(calls.get("${at}"));`,
  );
  return `// Generated from the schema.
package dev.rollcall.client.services;

import dev.rollcall.client.Calls;
import java.util.Map;

/** Every service of one control plane. */
public abstract class Services {
${fields.join("\n")}

  /** The calls by the name of the address that they go to. */
  protected Services(Map<String, Calls> calls) {
${inits.join("\n")}
  }
}
`;
}

function reasonClass(files) {
  const lines = reasonsIn(files).flatMap(({ reason, comment }) => [
    docComment(comment, "  "),
    `  public static final String ${reason} = "${reason}";`,
  ]);
  return `// Generated from the schema.
package dev.rollcall.client;

/** What {@link RollcallException#reason()} may be. A server of a later release may have further ones. */
public final class Reason {
${lines.join("\n")}

  private Reason() {}
}
`;
}

function docComment(lines, indent) {
  const text = lines.map(
    (line) => `${indent} * ${line.replaceAll("*/", "* /").replaceAll("&", "&amp;").replaceAll("<", "&lt;")}`,
  );
  return [`${indent}/**`, ...text, `${indent} */`].join("\n");
}
