import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { type FieldRules, message as messageRules, oneof as oneofRules } from "@rollcall/api/buf/validate/validate_pb";
import { allowedBy, boundsOf, itemRulesOf, type JsonSchema, rulesOf } from "./field-rules.ts";

/** The comments of the proto files, keyed by the full name of the described element. */
export type Comments = Readonly<Record<string, string>>;

/** The schema of 64-bit integers. They are strings in JSON, because not every reader has numbers of that size. */
const INT64: JsonSchema = { type: ["string", "integer"], format: "int64", pattern: "^-?[0-9]{1,20}$" };
const UINT64: JsonSchema = { type: ["string", "integer"], format: "uint64", minimum: 0, pattern: "^[0-9]{1,20}$" };
/** Base64 in the standard or the URL alphabet, with optional padding. */
const BASE64 = "^([A-Za-z0-9+/_-]{4})*([A-Za-z0-9+/_-]{2,3}={0,2})?$";
const FLOAT: JsonSchema = { anyOf: [{ type: "number" }, { enum: ["NaN", "Infinity", "-Infinity"] }] };

const SCALARS: Readonly<Record<ScalarType, JsonSchema>> = {
  [ScalarType.STRING]: { type: "string" },
  [ScalarType.BOOL]: { type: "boolean" },
  [ScalarType.BYTES]: { type: "string", contentEncoding: "base64", pattern: BASE64 },
  [ScalarType.INT32]: { type: "integer", format: "int32" },
  [ScalarType.SINT32]: { type: "integer", format: "int32" },
  [ScalarType.SFIXED32]: { type: "integer", format: "int32" },
  [ScalarType.UINT32]: { type: "integer", format: "uint32", minimum: 0 },
  [ScalarType.FIXED32]: { type: "integer", format: "uint32", minimum: 0 },
  [ScalarType.INT64]: INT64,
  [ScalarType.SINT64]: INT64,
  [ScalarType.SFIXED64]: INT64,
  [ScalarType.UINT64]: UINT64,
  [ScalarType.FIXED64]: UINT64,
  [ScalarType.FLOAT]: FLOAT,
  [ScalarType.DOUBLE]: FLOAT,
};

/** Messages with a special JSON form. */
const WELL_KNOWN: Readonly<Record<string, JsonSchema>> = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time", description: "RFC 3339, UTC." },
  "google.protobuf.Duration": {
    type: "string",
    pattern: "^-?[0-9]{1,12}(\\.[0-9]{1,9})?s$",
    description: 'Seconds, as "1.5s".',
  },
  "google.protobuf.FieldMask": { type: "string", description: "Names of fields, joined by commas." },
  "google.protobuf.Struct": { type: "object", additionalProperties: true },
  "google.protobuf.Any": {
    type: "object",
    properties: { "@type": { type: "string" } },
    required: ["@type"],
    additionalProperties: true,
  },
};

/** Creates schemas of messages and enums, and of everything they contain, as components of one document. */
export class MessageSchemas {
  readonly #comments: Comments;
  readonly #components = new Map<string, JsonSchema>();
  readonly #validator = createValidator();

  constructor(comments: Comments) {
    this.#comments = comments;
  }

  /** All schemas that were requested so far, keyed by full name. */
  components(): Readonly<Record<string, JsonSchema>> {
    return Object.fromEntries([...this.#components].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Return a reference to a message's schema. The schema is created if necessary. */
  message(desc: DescMessage): JsonSchema {
    const wellKnown = WELL_KNOWN[desc.typeName];
    if (wellKnown !== undefined) return wellKnown;
    if (!this.#components.has(desc.typeName)) {
      // Add the message before its fields, because it may contain itself.
      this.#components.set(desc.typeName, {});
      this.#components.set(desc.typeName, this.#fields(desc));
    }
    return refTo(desc.typeName);
  }

  #fields(desc: DescMessage): JsonSchema {
    const required = this.#required(desc);
    const groups = groupsOf(desc);
    return {
      type: "object",
      ...this.#described(desc.typeName, groups.map(textOf).join(" ")),
      properties: Object.fromEntries(desc.fields.map((field) => [field.jsonName, this.#field(field)])),
      ...(required.length === 0 ? {} : { required }),
      ...(groups.length === 0 ? {} : { allOf: groups.map(oneOfGroup) }),
      additionalProperties: false,
    };
  }

  /** The fields that the server requires. A required field that is absent or has its default violates a rule. */
  #required(desc: DescMessage): readonly string[] {
    const { violations = [] } = this.#validator.validate(desc, create(desc));
    const broken = new Set(violations.flatMap(({ field }) => (field.length === 1 ? field : [])));
    return desc.fields.filter((field) => broken.has(field)).map(({ jsonName }) => jsonName);
  }

  #field(field: DescField): JsonSchema {
    const { fieldKind } = field;
    const rules = rulesOf(field);
    const described = this.#described(nameOf(field));
    if (fieldKind === "list") {
      return { type: "array", items: this.#item(field, itemRulesOf(rules)), ...boundsOf(rules), ...described };
    }
    if (fieldKind === "map") {
      const additionalProperties = this.#item(field, itemRulesOf(rules));
      return { type: "object", additionalProperties, ...boundsOf(rules), ...described };
    }
    const { description = "", ...item } = this.#item(field, rules);
    return { ...item, ...this.#described(nameOf(field), description) };
  }

  /** The schema of one value of a field, with its rules. */
  #item(field: DescField, rules: FieldRules | undefined): JsonSchema {
    const { message, enum: enumeration, scalar } = valueKindOf(field);
    if (message !== undefined) return { ...this.message(message), ...boundsOf(rules) };
    if (enumeration !== undefined) {
      const names = enumeration.values.filter(({ number }) => allowedBy(rules, number)).map(({ name }) => name);
      const isPart = names.length < enumeration.values.length;
      return { ...this.#enum(enumeration), ...(isPart ? { enum: names } : {}) };
    }
    return scalar === undefined ? {} : { ...SCALARS[scalar], ...boundsOf(rules) };
  }

  #enum(desc: DescEnum): JsonSchema {
    if (!this.#components.has(desc.typeName)) {
      const lines = desc.values.map(({ name }) => `- ${name}: ${this.#comments[`${desc.typeName}.${name}`] ?? ""}`);
      const schema = {
        type: "string",
        enum: desc.values.map(({ name }) => name),
        ...this.#described(desc.typeName, lines.join("\n")),
      };
      this.#components.set(desc.typeName, schema);
    }
    return refTo(desc.typeName);
  }

  #described(name: string, more = ""): JsonSchema {
    const description = [this.#comments[name] ?? "", more].filter((text) => text !== "").join("\n\n");
    return description === "" ? {} : { description };
  }
}

function nameOf({ parent, name }: DescField): string {
  return `${parent.typeName}.${name}`;
}

function refTo(typeName: string): JsonSchema {
  return { $ref: `#/components/schemas/${typeName}` };
}

function valueKindOf(field: DescField) {
  if (field.fieldKind !== "map") return field;
  return {
    message: field.mapKind === "message" ? field.message : undefined,
    enum: field.mapKind === "enum" ? field.enum : undefined,
    scalar: field.mapKind === "scalar" ? field.scalar : undefined,
  };
}

/** A group of fields. At most one of them, or exactly one, can be set. */
interface FieldGroup {
  readonly fields: readonly DescField[];
  readonly isRequired: boolean;
}

function groupsOf(desc: DescMessage): readonly FieldGroup[] {
  const rules = hasOption(desc, messageRules) ? getOption(desc, messageRules).oneof : [];
  return [
    ...desc.oneofs.map((oneof) => ({
      fields: oneof.fields,
      isRequired: hasOption(oneof, oneofRules) && getOption(oneof, oneofRules).required,
    })),
    ...rules.map(({ fields, required }) => ({
      fields: desc.fields.filter(({ name }) => fields.includes(name)),
      isRequired: required,
    })),
  ];
}

function textOf({ fields, isRequired }: FieldGroup): string {
  return `${isRequired ? "Exactly" : "At most"} one of ${fields.map((it) => it.jsonName).join(", ")} is set.`;
}

function oneOfGroup({ fields, isRequired }: FieldGroup): JsonSchema {
  const each = fields.map(isSet);
  return { oneOf: isRequired ? each : [...each, { not: { anyOf: each } }] };
}

/**
 * A schema that matches an object if a field is set. A field without presence counts as unset while it has its
 * default.
 */
function isSet(field: DescField): JsonSchema {
  const required = [field.jsonName];
  if (field.oneof !== undefined) return { required };
  if (field.fieldKind === "list") return { required, properties: { [field.jsonName]: { minItems: 1 } } };
  const isText = field.fieldKind === "scalar" && field.scalar === ScalarType.STRING;
  return isText ? { required, properties: { [field.jsonName]: { minLength: 1 } } } : { required };
}
