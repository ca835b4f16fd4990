import { type DescField, type DescMessage, fromBinary, ScalarType } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { BadRequestSchema } from "../../libs/api/src/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../libs/api/src/gen/google/rpc/status_pb.ts";
import type { Answer } from "./send.ts";
import type { FuzzTarget, Target } from "./target.ts";
import { envelope } from "./wire-request.ts";

/** A message with one invalid value, and the path that the refusal must name. */
interface BadMessage {
  readonly path: string;
  readonly bytes: Uint8Array;
}

const DEEPEST = 5;
const NUL = Uint8Array.from([0]);
/** A number of seconds far beyond the range of Timestamp and Duration. */
const TOO_LATE = 900_000_000_000;
const INVALID_ARGUMENT = "3";
const AT_A_TIME = 8;

/**
 * Send every method one message for each of its fields, including nested ones, with an invalid value in that field: a
 * string with U+0000, a time out of range, or a mask that is not in snake case. Returns the messages whose refusals
 * do not name the field.
 */
export async function faultsOfFields(
  fuzzed: FuzzTarget,
): Promise<{ readonly calls: number; readonly faults: readonly string[] }> {
  // Skip agents' frames, because they are checked one by one and only after the Hello.
  const own = fuzzed.targets.filter(
    ({ method, port }) => port !== "agents" && method.parent.typeName.startsWith("rollcall."),
  );
  const calls = own.flatMap((target) => badMessages(target.method.input).map((bad) => ({ target, bad })));
  const faults: string[] = [];
  for (let start = 0; start < calls.length; start += AT_A_TIME) {
    const batch = calls.slice(start, start + AT_A_TIME);
    const outcomes = await Promise.all(batch.map(({ target, bad }) => outcomeOf(fuzzed, target, bad)));
    faults.push(...outcomes.filter((it) => it !== null));
  }
  return { calls: calls.length, faults };
}

/** Return all ways to make one field of a message, or of a nested message, invalid. */
function badMessages(desc: DescMessage, depth = 0): readonly BadMessage[] {
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
    case "google.protobuf.Duration":
      return [{ path: "", bytes: new BinaryWriter().tag(1, WireType.Varint).int64(TOO_LATE).finish() }];
    case "google.protobuf.FieldMask":
      return [{ path: ".paths[0]", bytes: delimited(1, Buffer.from("notSnake")) }];
    default:
      return depth > DEEPEST ? [] : desc.fields.flatMap((field) => badFields(field, depth));
  }
}

function badFields(field: DescField, depth: number): readonly BadMessage[] {
  const { name, number } = field;
  const isText = field.scalar === ScalarType.STRING;
  if (field.fieldKind === "map") {
    const key = delimited(1, Buffer.from("k"));
    return [
      { path: `.${name}["\\u0000"]`, bytes: delimited(number, delimited(1, NUL)) },
      ...(isText ? [{ path: `.${name}["k"]`, bytes: delimited(number, joined(key, delimited(2, NUL))) }] : []),
    ];
  }
  const at = `.${name}${field.fieldKind === "list" ? "[0]" : ""}`;
  if (isText) return [{ path: at, bytes: delimited(number, NUL) }];
  if (field.message === undefined) return [];
  return badMessages(field.message, depth + 1).map(({ path, bytes }) => ({
    path: `${at}${path}`,
    bytes: delimited(number, bytes),
  }));
}

function delimited(number: number, bytes: Uint8Array): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(bytes).finish();
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}

function violationsOf({ headers }: Answer): readonly string[] {
  const written = headers["grpc-status-details-bin"] ?? "";
  const { details } = fromBinary(StatusSchema, Buffer.from(written, "base64"));
  return details
    .filter(({ typeUrl }) => typeUrl.endsWith(BadRequestSchema.typeName))
    .flatMap(({ value }) => fromBinary(BadRequestSchema, value).fieldViolations)
    .map(({ field }) => `.${field}`);
}

/** Send a message. Returns the outcome, or null if the refusal names the path. */
async function outcomeOf(
  fuzzed: FuzzTarget,
  { method, port, caller }: Target,
  { path, bytes }: BadMessage,
): Promise<string | null> {
  const authorization =
    caller === "replica" ? fuzzed.fleet.replicaCredentials(method) : `Bearer ${fuzzed.fleet.token("admin")}`;
  const name = `${method.parent.typeName}/${method.name}`;
  const answer = await fuzzed.senders[port].send({
    protocol: "grpc",
    http: 2,
    verb: "POST",
    path: `/${name}`,
    headers: { "content-type": "application/grpc", authorization },
    body: envelope(bytes),
    // Wait for the status, because a stream must be refused like any other call.
    isStream: false,
  });
  const code = answer.headers["grpc-status"];
  if (code !== INVALID_ARGUMENT) return `${name} ${path}: code ${code}`;
  return violationsOf(answer).includes(path) ? null : `${name} ${path}: not named`;
}
