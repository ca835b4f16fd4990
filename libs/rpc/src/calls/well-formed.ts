import { type DescField, type DescMessage, isMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { protoCamelCase, protoSnakeCase } from "@bufbuild/protobuf/reflect";
import {
  type Duration,
  DurationSchema,
  type FieldMask,
  FieldMaskSchema,
  type Timestamp,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";
import type { FieldViolation } from "@rollcall/errors";

/** Receives a violation. Returns false if the search must stop. */
type Report = (field: string, description: string) => boolean;
type Check = (value: unknown, path: string, report: Report) => boolean;
/** The fields of any message or map. A cast is needed, because generated types have no index signature. */
type Values = Readonly<Record<string, unknown>>;

/**
 * Find values that binary protobuf accepts but that are invalid in every field: strings that Postgres cannot store, and
 * well-known types outside their documented range, which cannot be written as JSON or converted to a date. The check
 * needs no rules in proto files, so no field can be forgotten. Returns at most `most` violations, with paths as in
 * BadRequest.
 */
export function malformedFields(desc: DescMessage, message: Message, most: number): readonly FieldViolation[] {
  const found: FieldViolation[] = [];
  checkOf(desc)(message, "", (field, description) => {
    found.push({ field, description });
    return found.length < most;
  });
  return found;
}

/** Checks, keyed by message type and created on first use. Bounded by the number of types in the schema. */
const checks = new Map<DescMessage, Check>();

function checkOf(desc: DescMessage): Check {
  let check = checks.get(desc);
  if (check === undefined) {
    check = WELL_KNOWN.get(desc.typeName) ?? checkFields(desc);
    checks.set(desc, check);
  }
  return check;
}

function checkFields(desc: DescMessage): Check {
  const plan = desc.fields.flatMap((field) => {
    const check = checkField(field);
    return check === null ? [] : [{ field, check }];
  });
  return (value, path, report) => {
    const values = value as Values;
    return plan.every(({ field, check }) => {
      const held = heldBy(values, field);
      return held === undefined || check(held, joined(path, field.name), report);
    });
  };
}

function heldBy(values: Values, field: DescField): unknown {
  if (field.oneof === undefined) return values[field.localName];
  const set = values[field.oneof.localName] as { case?: string; value?: unknown };
  return set.case === field.localName ? set.value : undefined;
}

/** Create the check for a field; null if the field cannot be malformed. */
function checkField(field: DescField): Check | null {
  switch (field.fieldKind) {
    case "scalar":
      return field.scalar === ScalarType.STRING ? checkText : null;
    case "enum":
      return null;
    case "message":
      return lazily(field.message);
    case "list":
      if (field.listKind === "message") return eachItem(lazily(field.message));
      return field.listKind === "scalar" && field.scalar === ScalarType.STRING ? eachItem(checkText) : null;
    case "map":
      return checkMap(field);
  }
}

/** Look up the check only when a value arrives, because a type can contain itself. */
const lazily =
  (desc: DescMessage): Check =>
  (value, path, report) =>
    isMessage(value) ? checkOf(desc)(value, path, report) : checkJson(value, path, report);

/**
 * Check a value of a well-known type that generated code represents without a message: a google.protobuf.Struct is a
 * plain object, and a StringValue is a string.
 */
function checkJson(value: unknown, path: string, report: Report): boolean {
  if (typeof value === "string") return checkText(value, path, report);
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([key, held]) => {
    const at = `${path}[${JSON.stringify(key)}]`;
    return checkText(key, at, report) && checkJson(held, at, report);
  });
}

const eachItem =
  (check: Check): Check =>
  (value, path, report) =>
    (value as readonly unknown[]).every((item, index) => check(item, `${path}[${index}]`, report));

function checkMap(field: DescField & { readonly fieldKind: "map" }): Check | null {
  const hasTextKeys = field.mapKey === ScalarType.STRING;
  const checkValue =
    field.mapKind === "message"
      ? lazily(field.message)
      : field.mapKind === "scalar" && field.scalar === ScalarType.STRING
        ? checkText
        : null;
  if (!hasTextKeys && checkValue === null) return null;
  return (value, path, report) =>
    Object.entries(value as Values).every(([key, held]) => {
      const at = `${path}[${hasTextKeys ? JSON.stringify(key) : key}]`;
      const goesOn = !hasTextKeys || checkText(key, at, report);
      return goesOn && (checkValue === null || checkValue(held, at, report));
    });
}

/** Characters that cannot be stored: Postgres refuses U+0000 in strings, and a lone surrogate has no UTF-8 encoding. */
const UNKEEPABLE = /[\0\p{Surrogate}]/u;

function checkText(value: unknown, path: string, report: Report): boolean {
  return !UNKEEPABLE.test(value as string) || report(path, UNKEEPABLE_TEXT);
}

const UNKEEPABLE_TEXT = "must not contain U+0000 or a lone surrogate";

/** The range of a Timestamp: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z. */
const TIMESTAMP_S = { least: -62_135_596_800n, most: 253_402_300_799n };
/** The longest Duration: 10,000 years. */
const DURATION_S = 315_576_000_000n;
const MOST_NANOS = 999_999_999;

function checkTimestamp(value: unknown, path: string, report: Report): boolean {
  const { seconds, nanos } = value as Timestamp;
  const isInRange = seconds >= TIMESTAMP_S.least && seconds <= TIMESTAMP_S.most;
  if (isInRange && nanos >= 0 && nanos <= MOST_NANOS) return true;
  return report(
    path,
    "must be from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999999Z, with nanos from 0 to 999999999",
  );
}

function checkDuration(value: unknown, path: string, report: Report): boolean {
  const { seconds, nanos } = value as Duration;
  const isInRange = seconds >= -DURATION_S && seconds <= DURATION_S;
  const isOneSign = seconds === 0n || nanos === 0 || seconds > 0n === nanos > 0;
  if (isInRange && isOneSign && Math.abs(nanos) <= MOST_NANOS) return true;
  return report(
    path,
    "must be at most 10,000 years either way, with nanos from -999999999 to 999999999 of the same sign as seconds",
  );
}

function checkFieldMask(value: unknown, path: string, report: Report): boolean {
  const { paths } = value as FieldMask;
  return paths.every((text, index) => {
    // Accept a path that is unchanged after conversion to JSON and back. The conversion changes the case of names.
    if (PATH.test(text) && protoSnakeCase(protoCamelCase(text)) === text) return true;
    return report(`${path}.paths[${index}]`, "must be the path of a field, in lower_snake_case");
  });
}

const PATH = /^[a-z0-9_]+(\.[a-z0-9_]+)*$/;

const WELL_KNOWN: ReadonlyMap<string, Check> = new Map([
  [TimestampSchema.typeName, checkTimestamp],
  [DurationSchema.typeName, checkDuration],
  [FieldMaskSchema.typeName, checkFieldMask],
]);

function joined(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
