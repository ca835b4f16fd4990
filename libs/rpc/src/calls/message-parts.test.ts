import {
  create,
  type DescField,
  type DescMessage,
  fromBinary,
  fromJsonString,
  type Message,
  type MessageShape,
  ScalarType,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "@jest/globals";
import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { DeclaredStateService, PlanStateRequestSchema } from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { HealthInternalService } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import {
  HealthService,
  HeartbeatRequestSchema,
  ServeLogsRequestSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { RegisterNodeRequestSchema, RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { JobService, SubmitJobRequestSchema } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import fc from "fast-check";
import { rulesOf } from "../openapi/field-rules.ts";
import { hasTooManyParts, hasTooManyValues } from "./message-parts.ts";

const MEGABYTE = 1_000_000;
/**
 * Size of a message in bytes. It is below the size limit, to leave room for the fields of the last message that
 * fits.
 */
const MOST_BYTES = 900_000;

/** Encode a field that contains bytes. */
function field(number: number, bytes: Uint8Array): Buffer {
  return Buffer.from(new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(bytes).finish());
}

/** Encode as many empty fields as fit into the size. */
function empty(number: number, size = MEGABYTE): Buffer {
  return Buffer.alloc(size, Buffer.from([(number << 3) | 2, 0]));
}

/**
 * Strings that look like fields, like JSON or like the end of a string, and characters that take several bytes or
 * an escape.
 */
const FILLS = ["*:", "2\n", '[{,"\\', "\u{1f4a5}\u0001"] as const;

/** Makes the largest message of a type within the rules of the schema and the size limit. */
class Largest {
  readonly #fill: string;
  #left = MOST_BYTES;

  constructor(fill: string) {
    this.#fill = fill;
  }

  make<D extends DescMessage>(schema: D): MessageShape<D> {
    const message = reflect(schema);
    for (const one of schema.fields) this.#set(message, one, 0);
    return message.message as MessageShape<D>;
  }

  #message(schema: DescMessage, depth: number): Message {
    const message = reflect(schema);
    if (schema.typeName.startsWith("google.protobuf.") || depth > 6) return message.message;
    for (const one of schema.fields) this.#set(message, one, depth);
    return message.message;
  }

  #set(message: ReturnType<typeof reflect>, one: DescField, depth: number): void {
    const rules = rulesOf(one)?.type;
    // Stop when the message has its full size.
    if (this.#left <= 0) return;
    switch (one.fieldKind) {
      case "scalar":
        message.set(one, this.#scalar(one.scalar, one, 0));
        break;
      case "enum":
        message.set(one, one.enum.values.at(-1)?.number ?? 0);
        break;
      case "message":
        message.set(one, reflect(one.message, this.#message(one.message, depth + 1) as never));
        break;
      case "list": {
        const most = rules?.case === "repeated" ? Number(rules.value.maxItems) || 1_000 : 1_000;
        for (let index = 0; index < most && this.#left > 0; index += 1) {
          const list = message.get(one);
          this.#left -= 2;
          if (one.listKind === "message") {
            list.add(reflect(one.message, this.#message(one.message, depth + 1) as never));
          } else if (one.listKind === "scalar") list.add(this.#scalar(one.scalar, one, index));
          else list.add(1);
        }
        break;
      }
      case "map": {
        const most = rules?.case === "map" ? Number(rules.value.maxPairs) || 1_000 : 1_000;
        const map = message.get(one);
        for (let index = 0; index < most && this.#left > 0; index += 1) {
          const key = one.mapKey === ScalarType.STRING ? `${index}` : index;
          this.#left -= 10;
          if (one.mapKind === "message") {
            map.set(key, reflect(one.message, this.#message(one.message, depth + 1) as never));
          } else map.set(key, one.mapKind === "scalar" ? this.#scalar(one.scalar, one, index) : 1);
        }
        break;
      }
    }
  }

  /** Make the first item of a list long and all others short, up to the maximum number of items. */
  #scalar(type: ScalarType, one: DescField, index: number): string | Uint8Array | number | bigint | boolean {
    this.#left -= 6;
    const rules = rulesOf(one)?.type;
    switch (type) {
      case ScalarType.STRING: {
        const most = rules?.case === "string" ? Number(rules.value.maxLen) || 64 : 4_096;
        const text = index > 0 ? this.#fill.slice(0, 2) : this.#fill.repeat(most / this.#fill.length);
        this.#left -= 3 * text.length;
        return text;
      }
      case ScalarType.BYTES: {
        const most = rules?.case === "bytes" ? Number(rules.value.maxLen) || 64 : 4_096;
        const bytes = Buffer.alloc(index > 0 ? 1 : most, this.#fill);
        this.#left -= bytes.length;
        return new Uint8Array(bytes);
      }
      case ScalarType.BOOL:
        return true;
      case ScalarType.INT64:
      case ScalarType.UINT64:
      case ScalarType.FIXED64:
      case ScalarType.SFIXED64:
      case ScalarType.SINT64:
        return 1n;
      default:
        return 1;
    }
  }
}

const SERVICES = [
  ...[AccessService, AdminService, DeclaredStateService, WebhookService, HealthInternalService, HealthService],
  ...[HealthQueryService, RegistryService, JobService],
];
const REQUESTS = [...new Set(SERVICES.flatMap(({ methods }) => methods.map(({ input }) => input)))];

/** Encode the same message with unpacked lists of numbers, as some languages do. */
function unpacked(bytes: Uint8Array, schema: DescMessage): Uint8Array {
  const writer = new BinaryWriter();
  const message = reflect(schema, fromBinary(schema, bytes));
  for (const one of schema.fields) {
    if (!message.isSet(one)) continue;
    if (one.fieldKind === "list" && one.listKind !== "message" && one.scalar !== ScalarType.STRING) {
      if (one.scalar === ScalarType.BYTES) continue;
      for (const value of message.get(one)) writer.tag(one.number, WireType.Varint).uint32(Number(value));
    } else if (one.fieldKind === "list" && one.listKind === "message") {
      for (const value of message.get(one)) {
        const inner = value as ReturnType<typeof reflect>;
        writer.tag(one.number, WireType.LengthDelimited);
        writer.bytes(unpacked(toBinary(inner.desc, inner.message), inner.desc));
      }
    } else if (one.fieldKind === "message") {
      const inner = message.get(one) as ReturnType<typeof reflect>;
      writer.tag(one.number, WireType.LengthDelimited);
      writer.bytes(unpacked(toBinary(inner.desc, inner.message), inner.desc));
    } else {
      const only = reflect(schema);
      only.set(one, message.get(one) as never);
      writer.raw(toBinary(schema, only.message as never));
    }
  }
  return writer.finish();
}

describe("hasTooManyParts()", () => {
  const states = "empty messages of a state";
  it.each([
    ["empty messages", RegisterNodeRequestSchema, field(4, empty(9))],
    ["a message again and again", RegisterNodeRequestSchema, empty(4)],
    ["entries of a map", RegisterNodeRequestSchema, field(4, empty(13))],
    ["unknown fields", RegisterNodeRequestSchema, Buffer.alloc(MEGABYTE, Buffer.from([0xf8, 0x7f, 0]))],
    ["small numbers", RegisterNodeRequestSchema, field(4, Buffer.alloc(MEGABYTE, Buffer.from([0x30, 1])))],
    [
      "messages before malformed bytes",
      RegisterNodeRequestSchema,
      field(4, Buffer.concat([empty(9), Buffer.from([7])])),
    ],
    ["messages in a truncated field", RegisterNodeRequestSchema, field(4, empty(9)).subarray(0, MEGABYTE - 10)],
    [
      "messages whose tags name another wire type",
      RegisterNodeRequestSchema,
      field(4, Buffer.alloc(MEGABYTE, Buffer.from([9 << 3, 0]))),
    ],
    [
      "messages beyond the end of the one that they are in",
      RegisterNodeRequestSchema,
      Buffer.concat([field(4, Buffer.from([(9 << 3) | 2, 0xff, 0xff, 0x3f])), empty(1)]),
    ],
    ["messages deep within", HeartbeatRequestSchema, field(3, field(9, empty(1)))],
    [states, PlanStateRequestSchema, empty(1)],
    ["empty texts", SubmitJobRequestSchema, field(1, field(10, empty(1)))],
    ["packed numbers", RegisterNodeRequestSchema, field(4, field(8, field(4, Buffer.alloc(2 * MEGABYTE, 1))))],
  ] as const)("should find %s", (_, schema, bytes) => {
    expect(hasTooManyParts(schema, bytes)).toBe(true);
  });

  it.each([
    ["empty objects", `{"info":{"gpus":[${Array(300_000).fill("{}").join()}]}}`],
    ["lists within lists", "[".repeat(MEGABYTE)],
    ["numbers", `{"info":{"numaNodes":[{"distances":[${Array(400_000).fill("1").join()}]}]}}`],
    ["empty objects behind a text", `{"nodeId":"\\\\","info":{"gpus":[${Array(300_000).fill("{}").join()}]}}`],
  ])("should find JSON of %s", (_, text) => {
    expect(hasTooManyValues(Buffer.from(text))).toBe(true);
  });

  it.each(FILLS.map((fill) => [JSON.stringify(fill), fill] as const))(
    "should accept the largest message of each request with %s, in every encoding",
    (_, fill) => {
      for (const schema of REQUESTS) {
        const message = new Largest(fill).make(schema);
        const bytes = toBinary(schema, message);
        const json = Buffer.from(toJsonString(schema, message));
        const found = [hasTooManyParts(schema, bytes), hasTooManyParts(schema, unpacked(bytes, schema))];
        // Skip a message that exceeds the size limit in JSON because of its escapes.
        if (json.byteLength <= 1_048_576) found.push(hasTooManyValues(json));
        expect([schema.typeName, ...found.filter((it) => it)]).toEqual([schema.typeName]);
      }
    },
  );

  it("should accept any bytes in a piece of output", () => {
    const piece = fc.uint8Array({ minLength: 0, maxLength: 65_536, size: "max" });
    fc.assert(
      fc.property(piece, (data) => {
        const bytes = toBinary(ServeLogsRequestSchema, create(ServeLogsRequestSchema, { data }));
        expect(hasTooManyParts(ServeLogsRequestSchema, bytes)).toBe(false);
      }),
      { numRuns: 50 },
    );
  });

  it("should accept a state of 500 nodes with 64 labels each", () => {
    const labels = Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`l${at}`, `v${at}`]));
    const objects = Array.from({ length: 500 }, (_, at) => ({
      object: { case: "nodeLabels", value: { node: `n${at}`, labels } } as const,
    }));
    const state = create(PlanStateRequestSchema, { objects });
    expect(hasTooManyParts(PlanStateRequestSchema, toBinary(PlanStateRequestSchema, state))).toBe(false);
    expect(hasTooManyValues(Buffer.from(toJsonString(PlanStateRequestSchema, state)))).toBe(false);
  });

  it("should terminate on any input", () => {
    fc.assert(
      fc.property(fc.constantFrom(...REQUESTS), fc.uint8Array({ maxLength: 5_000 }), (schema, bytes) => {
        expect(hasTooManyParts(schema, bytes)).toBe(false);
      }),
    );
  });

  it("should not count the contents of texts", () => {
    const text = JSON.stringify({ reason: '[{,"\\'.repeat(10_000) });
    expect(hasTooManyValues(Buffer.from(text))).toBe(false);
    expect(() => fromJsonString(SubmitJobRequestSchema, text)).not.toThrow();
  });
});
