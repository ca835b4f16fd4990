// Makes the library for Java from sdk/java and from files generated from the schema. Maven builds it, and its
// dependencies are placed next to it.
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

/** Make the library, and test it if `check` is set. Returns the path of its jar. */
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

/** Install protoc and its plugin at the versions in the pom. Returns their paths. */
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
      `  /** Like {@link #${name}(${request})}, but ends with UNAVAILABLE after {@code silence} without a message. */`,
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
    `  /** Like {@link #${name}(${request})}, with a time limit; null for the client's limit. */`,
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

/** Find the field with the items of a page; null if the response is not a page. */
function pageItems({ name, field }) {
  if (!field.some((it) => it.name === "next_page_token")) return null;
  const [items, ...others] = field.filter((it) => it.label === 3 && it.typeName !== "");
  if (items === undefined || others.length > 0) throw new Error(`${name} is a page without exactly one list of items`);
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

  /** Creates the services. The map contains the calls to each address, keyed by the name of the address. */
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

/** The values of {@link RollcallException#reason()}. A server of a later release may send others. */
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
