import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type DescField, type DescMessage, type DescService, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describeError } from "../libs/errors/src/index.ts";
import { createRequestValidator } from "../libs/rpc/src/index.ts";
import type { JsonSchema } from "../libs/rpc/src/openapi/field-rules.ts";
import { type OpenApiDocument, openApiDocument } from "../libs/rpc/src/openapi/openapi-document.ts";
import { workspaceRoot } from "./support/workspace.ts";

const STUBS = join(workspaceRoot, "libs/api/src/gen/rollcall");
const TEXTS = [
  "",
  "a",
  "A",
  "-",
  "0",
  "not a name",
  "0198f7c0-5d0e-7b61-9d3c-0e8d0c5f2a11",
  "AAAAAAAAAAAAAAAAAAAAAAAA",
];
const LENGTHS = [2, 42, 43, 44, 63, 64, 65, 128, 129, 171, 172, 256, 257, 1_000, 10_000, 100_000];
const NUMBERS = [
  -1_000_001,
  -1,
  0,
  1,
  200,
  201,
  1_000,
  1_001,
  10_000,
  10_001,
  100_000,
  100_001,
  1_000_001,
  2 ** 31 - 1,
];
const DURATIONS = ["-1s", "-0.5s"];

const validator = createRequestValidator();
const ajv = new Ajv2020({ strict: false, validateFormats: false });
const messages: DescMessage[] = [];
let document: OpenApiDocument;

beforeAll(async () => {
  const services: DescService[] = [];
  for (const name of readdirSync(STUBS, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith("_pb.ts")) continue;
    const found: Record<string, { readonly kind?: string }> = await import(join(STUBS, name));
    for (const one of Object.values(found)) {
      if (one.kind === "service") services.push(one as DescService);
    }
  }
  document = openApiDocument(services, {}, {});
  ajv.addSchema(document, "api");
  const seen = new Set<string>();
  const visit = (desc: DescMessage): void => {
    if (seen.has(desc.typeName) || desc.typeName.startsWith("google.")) return;
    seen.add(desc.typeName);
    messages.push(desc);
    for (const { message } of desc.fields) if (message !== undefined) visit(message);
  };
  for (const method of services.flatMap((service) => service.methods)) visit(method.input);
});

function schemaOf({ typeName }: DescMessage): JsonSchema {
  return document.components.schemas[typeName] ?? {};
}

/** Return whether the document allows a value. References are resolved in the complete document. */
function allows(schema: JsonSchema, value: unknown): boolean {
  const absolute = JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"api#');
  return ajv.compile(JSON.parse(absolute))(value) === true;
}

/** Return the paths at which the server refuses a message; null if the JSON is not a message of this type. */
function refusals(desc: DescMessage, json: JsonValue): readonly string[] | null {
  const message = parsed(desc, json);
  if (message === null) return null;
  try {
    validator.check(desc, message);
    return [];
  } catch (error) {
    return describeError(error).violations.map(({ field }) => field);
  }
}

function parsed(desc: DescMessage, json: JsonValue) {
  try {
    return fromJson(desc, json);
  } catch {
    return null;
  }
}

/** Return values for a field, at and around common bounds. */
function candidates(field: DescField): readonly JsonValue[] {
  const one = itemCandidates(field);
  if (field.fieldKind === "list") {
    return [[], ...one.map((it) => [it]), ...[64, 65, 501, 1_001].map((count) => Array(count).fill(one.at(-1) ?? {}))];
  }
  if (field.fieldKind === "map") return [{}, ...one.map((it) => ({ a: it }))];
  return one;
}

function itemCandidates({ enum: enumeration, scalar, message }: DescField): readonly JsonValue[] {
  if (enumeration !== undefined) return [...enumeration.values.map(({ name }) => name), 0, 1, 999_999];
  if (message?.typeName === "google.protobuf.Duration") return DURATIONS;
  if (message !== undefined || scalar === undefined) return [];
  return [true, false, ...NUMBERS, ...TEXTS, ...LENGTHS.map((length) => "a".repeat(length))];
}

describe("the OpenAPI document", () => {
  it("should require the fields without which the server refuses a message, and no others", () => {
    expect(messages.length).toBeGreaterThan(100);
    for (const desc of messages) {
      const refused = refusals(desc, {}) ?? [];
      const names = desc.fields.filter(({ name }) => refused.includes(name)).map(({ jsonName }) => jsonName);
      expect({ message: desc.typeName, required: schemaOf(desc).required ?? [] }).toEqual({
        message: desc.typeName,
        required: names,
      });
    }
  });

  it("should allow no value of any field that the server refuses", () => {
    const wrong: string[] = [];
    for (const desc of messages) {
      for (const field of desc.fields) {
        const schema = schemaOf(desc).properties?.[field.jsonName] ?? {};
        const described = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"api#')));
        for (const value of candidates(field)) {
          if (!described(value)) continue;
          const against = refusals(desc, { [field.jsonName]: value });
          if (against === null || against.some((path) => path.split(/[.[]/, 1)[0] === field.name)) {
            wrong.push(`${field.parent.typeName}.${field.name}: ${JSON.stringify(value).slice(0, 60)}`);
          }
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  it("should allow as many fields of a group at once as the server does", () => {
    let groups = 0;
    for (const desc of messages) {
      const { allOf } = schemaOf(desc);
      if (allOf === undefined) continue;
      groups += allOf.length;
      const set = desc.fields.filter((field) => JSON.stringify(allOf).includes(`"${field.jsonName}"`));
      const sample = (field: DescField) => ({ [field.jsonName]: sampleOf(field) });
      const pairs = set.flatMap((a, at) => set.slice(at + 1).map((b) => ({ ...sample(a), ...sample(b) })));
      for (const json of [{}, ...set.map(sample), ...pairs]) {
        const ofGroups = refusals(desc, json)?.filter((path) => !desc.fields.some(({ name }) => path.startsWith(name)));
        const isTaken = ofGroups !== undefined && ofGroups.length === 0;
        expect({ message: desc.typeName, json, isTaken: allows({ allOf }, json) }).toEqual({
          message: desc.typeName,
          json,
          isTaken,
        });
      }
    }
    expect(groups).toBeGreaterThan(20);
  });

  it("should describe the bounds of durations, which JSON Schema cannot express", () => {
    const text = JSON.stringify(document.components.schemas["rollcall.admin.v1.CreateAccessTokenRequest"]);
    expect(text).toContain("at least 1s, at most 315360000s");
  });

  it("should say where it is served", () => {
    expect(document.servers).toEqual([expect.objectContaining({ url: "/" })]);
  });
});

/** Return a value that sets a field. */
function sampleOf({ fieldKind, scalar, message, enum: enumeration }: DescField): JsonValue {
  if (fieldKind === "list") return scalar === undefined ? [{}] : ["a"];
  if (fieldKind === "map") return { a: "a" };
  if (message?.typeName === "google.protobuf.Duration") return "1s";
  if (message?.typeName === "google.protobuf.Timestamp") return "2026-01-01T00:00:00Z";
  if (message !== undefined) return {};
  if (enumeration !== undefined) return enumeration.values[1]?.name ?? "";
  return [true, 1, "AAAA"].find((value) => scalar !== undefined && fits(scalar, value)) ?? "";
}

function fits(scalar: number, value: JsonValue): boolean {
  if (scalar === 8) return typeof value === "boolean";
  return scalar === 9 || scalar === 12 ? typeof value === "string" : typeof value === "number";
}
