import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { type FieldRules, field as fieldRules } from "@rollcall/api/buf/validate/validate_pb";

/** A schema of JSON Schema 2020-12, as OpenAPI 3.1 uses it: the keywords that descriptions here are made of. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly const?: boolean;
  readonly pattern?: string;
  readonly contentEncoding?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly required?: readonly string[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

/** The rules that the schema's files have for a field; absent for none. */
export function rulesOf(field: DescField): FieldRules | undefined {
  return hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
}

/** What rules say of a field's values, as far as JSON Schema has words for it. The server checks all of them. */
export function boundsOf(rules: FieldRules | undefined): JsonSchema {
  const type = rules?.type;
  switch (type?.case) {
    case "string": {
      const { minLen, maxLen, len, pattern, wellKnown } = type.value;
      return {
        ...lengths(len || minLen, len || maxLen),
        ...(pattern === "" ? {} : { pattern }),
        ...(wellKnown.case === "uuid" ? { format: "uuid" } : {}),
      };
    }
    case "bytes": {
      const { len, maxLen } = type.value;
      const most = Number(len || maxLen);
      return most === 0 ? {} : { maxLength: base64Length(most) };
    }
    case "uint32":
    case "int32":
    case "float":
    case "double": {
      const { greaterThan, lessThan } = type.value;
      return {
        ...(greaterThan.case === "gte" ? { minimum: greaterThan.value } : {}),
        ...(greaterThan.case === "gt" ? { exclusiveMinimum: greaterThan.value } : {}),
        ...(lessThan.case === "lte" ? { maximum: lessThan.value } : {}),
        ...(lessThan.case === "lt" ? { exclusiveMaximum: lessThan.value } : {}),
      };
    }
    case "bool":
      return type.value.const ? { const: true } : {};
    case "repeated": {
      const { minItems, maxItems } = type.value;
      return {
        ...(minItems === 0n ? {} : { minItems: Number(minItems) }),
        ...(maxItems === 0n ? {} : { maxItems: Number(maxItems) }),
      };
    }
    case "map": {
      const { minPairs, maxPairs } = type.value;
      return {
        ...(minPairs === 0n ? {} : { minProperties: Number(minPairs) }),
        ...(maxPairs === 0n ? {} : { maxProperties: Number(maxPairs) }),
      };
    }
    default:
      return {};
  }
}

/** The rules of a list's items, or of a map's values. */
export function itemRulesOf(rules: FieldRules | undefined): FieldRules | undefined {
  const type = rules?.type;
  if (type?.case === "repeated") return type.value.items;
  return type?.case === "map" ? type.value.values : undefined;
}

function lengths(least: bigint, most: bigint): JsonSchema {
  return {
    ...(least === 0n ? {} : { minLength: Number(least) }),
    ...(most === 0n ? {} : { maxLength: Number(most) }),
  };
}

function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}
