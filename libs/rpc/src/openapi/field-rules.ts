import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { type FieldRules, field as fieldRules } from "@rollcall/api/buf/validate/validate_pb";

/** A schema of JSON Schema 2020-12, as OpenAPI 3.1 uses it, with the keywords that the API description needs. */
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
  readonly allOf?: readonly JsonSchema[];
  readonly not?: JsonSchema;
}

/** The validation rules of a field, from its proto file; undefined if there are none. */
export function rulesOf(field: DescField): FieldRules | undefined {
  return hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
}

/** Convert the rules of a field that JSON Schema can express. The server checks all rules. */
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
      const { len, minLen, maxLen } = type.value;
      return base64Lengths(Number(len || minLen), Number(len || maxLen));
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
    case "duration": {
      const { greaterThan, lessThan } = type.value;
      const isPositive = greaterThan.case !== undefined && greaterThan.value.seconds >= 0n;
      const [least, most] = [greaterThan.value, lessThan.value].map(
        (it) => it && `${it.seconds}${fraction(it.nanos)}s`,
      );
      const texts = [least && `at least ${least}`, most && `at most ${most}`].filter((text) => text !== undefined);
      return {
        ...(isPositive ? { pattern: "^[0-9]{1,12}(\\.[0-9]{1,9})?s$" } : {}),
        ...(texts.length === 0 ? {} : { description: `Seconds, as "1.5s": ${texts.join(", ")}.` }),
      };
    }
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

/** Whether rules allow a value of an enum. */
export function allowedBy(rules: FieldRules | undefined, number: number): boolean {
  if (rules?.type.case !== "enum") return true;
  const { notIn, in: only } = rules.type.value;
  return !notIn.includes(number) && (only.length === 0 || only.includes(number));
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

function base64Lengths(leastBytes: number, mostBytes: number): JsonSchema {
  const most = Math.ceil((mostBytes * 4) / 3);
  const mostPadded = Math.ceil(mostBytes / 3) * 4;
  return {
    ...(leastBytes === 0 ? {} : { minLength: Math.ceil((leastBytes * 4) / 3) }),
    ...(mostBytes === 0 ? {} : { maxLength: mostPadded }),
    ...(most === mostPadded ? {} : { anyOf: [{ maxLength: most }, { pattern: "=$" }] }),
  };
}

function fraction(nanos: number): string {
  return nanos === 0 ? "" : `.${String(nanos).padStart(9, "0").replace(/0+$/, "")}`;
}
