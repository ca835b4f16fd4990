import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FieldDescriptorProto,
  MethodOptions_IdempotencyLevel as Idempotency,
  FieldDescriptorProto_Label as Label,
  type MethodDescriptorProto,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { cell, code, page, prose, table } from "./markdown.ts";
import { PART, readSchema, type SchemaFile } from "./schema.ts";

const GENERATED = "Generated from the comments in `proto/` by `make gen`; do not edit.";

const INDEX = `# API

${GENERATED}

Every method is a POST to \`/<service>/<method>\`, such as \`/rollcall.registry.v1.RegistryService/ListNodes\`, on one port
that speaks gRPC, gRPC-Web and Connect. Connect takes and answers JSON: names of fields are then written in
\`lowerCamelCase\`, times as RFC 3339, durations as \`"15s"\`, 64-bit numbers as texts, bytes as base64. Methods that only
read can be called by GET as well. Agents' streams are gRPC on a port of their own.

The header \`authorization: Bearer TOKEN\` says who calls; [access](../../access.md) says who may call what, and
[errors](../errors.md) what a refusal says. The contract itself is [proto/rollcall](../../../proto/rollcall).
`;

/** A message or an enum, wherever it is declared. */
interface Declared {
  readonly name: string;
  readonly source: SchemaFile;
  readonly path: readonly number[];
  readonly message?: DescriptorProto;
  readonly enumeration?: EnumDescriptorProto;
}

/** The pages of the API by their names in docs/reference/api: one for each package of the schema, and README.md. */
export async function apiPages(): Promise<ReadonlyMap<string, string>> {
  const files = await readSchema();
  const packages = [...new Set(files.map(({ file }) => file.package))].sort();
  const pages = packages.map((name) => [
    pageOf(name),
    packagePage(
      name,
      files.filter(({ file }) => file.package === name),
    ),
  ]);
  return new Map([["README.md", indexPage(files)], ...(pages as [string, string][])]);
}

function pageOf(packageName: string): string {
  return `${packageName.split(".")[1]}.md`;
}

function indexPage(files: readonly SchemaFile[]): string {
  const rows = files.flatMap((source) =>
    source.file.service.map((service, at) => [
      `[${service.name}](${pageOf(source.file.package)}#${service.name.toLowerCase()})`,
      code(source.file.package),
      cell(firstSentence(source.comment(PART.service, at))),
    ]),
  );
  const shared = [...new Set(files.map(({ file }) => file.package))]
    .filter((name) => !files.some(({ file }) => file.package === name && file.service.length > 0))
    .map((name) => `[${name}](${pageOf(name)})`);
  const messages = shared.length === 0 ? "" : `Messages that several services share are in ${shared.join(" and ")}.`;
  return page(INDEX, ...table(["service", "package", "what it is for"], rows), messages);
}

function packagePage(name: string, sources: readonly SchemaFile[]): string {
  const declared = sources.flatMap(declarations);
  return page(
    `# ${name}`,
    "",
    `${GENERATED} [All services](README.md).`,
    "",
    ...sources.flatMap(serviceLines),
    "## Messages",
    "",
    ...declared.flatMap((one) => (one.message === undefined ? [] : messageLines(one, one.message))),
    ...(declared.some(({ enumeration }) => enumeration !== undefined) ? ["## Enums", ""] : []),
    ...declared.flatMap((one) => (one.enumeration === undefined ? [] : enumLines(one, one.enumeration))),
  );
}

function serviceLines(source: SchemaFile): readonly string[] {
  return source.file.service.flatMap((service, at) => [
    `## ${service.name}`,
    "",
    prose(source.comment(PART.service, at)),
    "",
    ...service.method.flatMap((method, index) => [
      `### ${method.name}`,
      "",
      prose(source.comment(PART.service, at, PART.method, index)),
      "",
      ...signature(method, source.file.package),
      "",
    ]),
  ]);
}

function signature(method: MethodDescriptorProto, from: string): readonly string[] {
  const side = (type: string, streams: boolean) => `${streams ? "stream of " : ""}${typeLink(type, from)}`;
  const reads = method.options?.idempotencyLevel === Idempotency.NO_SIDE_EFFECTS;
  return [
    `- Takes ${side(method.inputType, method.clientStreaming)}`,
    `- Answers ${side(method.outputType, method.serverStreaming)}`,
    ...(reads ? ["- It only reads."] : []),
  ];
}

function declarations(source: SchemaFile): readonly Declared[] {
  const { messageType, enumType } = source.file;
  return [
    ...messageType.flatMap((message, at) => declarationsIn(message, message.name, source, [PART.message, at])),
    ...enumType.map((enumeration, at) => ({
      ...{ name: enumeration.name, source, path: [PART.enum, at] },
      enumeration,
    })),
  ];
}

function declarationsIn(
  message: DescriptorProto,
  name: string,
  source: SchemaFile,
  path: readonly number[],
): readonly Declared[] {
  return [
    { name, source, path, message },
    ...message.nestedType.flatMap((nested, at) =>
      nested.options?.mapEntry
        ? []
        : declarationsIn(nested, `${name}.${nested.name}`, source, [...path, PART.nested, at]),
    ),
    ...message.enumType.map((enumeration, at) => ({
      ...{ name: `${name}.${enumeration.name}`, source, path: [...path, PART.nestedEnum, at] },
      enumeration,
    })),
  ];
}

function messageLines({ name, source, path }: Declared, message: DescriptorProto): readonly string[] {
  const rows = message.field.map((field, at) => [
    code(field.name),
    fieldType(field, message, source.file.package),
    cell(`${source.comment(...path, PART.field, at)}${oneofOf(field, message)}`),
  ]);
  const fields = rows.length === 0 ? ["It has no fields.", ""] : table(["field", "type", "meaning"], rows);
  return [`### ${name}`, "", prose(source.comment(...path)), "", ...fields];
}

function enumLines({ name, source, path }: Declared, { value }: EnumDescriptorProto): readonly string[] {
  const rows = value.map((one, at) => [
    code(one.name),
    String(one.number),
    cell(source.comment(...path, PART.value, at)),
  ]);
  return [`### ${name}`, "", prose(source.comment(...path)), "", ...table(["value", "number", "meaning"], rows)];
}

function oneofOf(field: FieldDescriptorProto, { oneofDecl }: DescriptorProto): string {
  // proto3 writes an optional field as a oneof of its own.
  if (field.oneofIndex === undefined || field.proto3Optional || !isSet(field, "oneofIndex")) return "";
  return ` One of \`${oneofDecl[field.oneofIndex]?.name}\`.`;
}

function isSet(field: FieldDescriptorProto, name: "oneofIndex"): boolean {
  return Object.hasOwn(field, name);
}

function fieldType(field: FieldDescriptorProto, message: DescriptorProto, from: string): string {
  const entry = message.nestedType.find(
    ({ name, options }) => options?.mapEntry && field.typeName.endsWith(`${message.name}.${name}`),
  );
  const [key, value] = entry?.field ?? [];
  if (key !== undefined && value !== undefined) return `map of ${plainType(key, from)} to ${plainType(value, from)}`;
  const type = plainType(field, from);
  if (field.label === Label.REPEATED) return `list of ${type}`;
  return field.proto3Optional ? `optional ${type}` : type;
}

function plainType(field: FieldDescriptorProto, from: string): string {
  if (field.type === Type.MESSAGE || field.type === Type.ENUM) return typeLink(field.typeName, from);
  return Type[field.type].toLowerCase();
}

/** The name of a message or enum, with a link where it is one of ours. */
function typeLink(typeName: string, from: string): string {
  const [, owner, name = ""] = /^\.((?:[a-z0-9]+\.)+)(.*)$/.exec(typeName) ?? [];
  const home = (owner ?? "").slice(0, -1);
  if (!home.startsWith("rollcall.")) return name;
  const anchor = `#${name.toLowerCase().replaceAll(".", "")}`;
  return `[${name}](${home === from ? "" : pageOf(home)}${anchor})`;
}

function firstSentence(text: string): string {
  return /^[\s\S]*?\.(?=\s|$)/.exec(text)?.[0] ?? text;
}
