import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { GetHeldNodesRequestSchema } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { type NodeInfo, NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { RegisterNodeRequestSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import fc from "fast-check";
import { hasTooManyParts } from "./message-parts.ts";

const MEGABYTE = 1_000_000;

/** A field with bytes in it. */
function field(number: number, bytes: Uint8Array): Buffer {
  const length: number[] = [];
  for (let left = bytes.length; ; left >>>= 7) {
    length.push(left > 127 ? (left & 127) | 128 : left);
    if (left <= 127) break;
  }
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), bytes]);
}

/** Fields without anything in them, as many as fit. */
function empty(number: number, size = MEGABYTE): Buffer {
  return Buffer.alloc(size, Buffer.from([(number << 3) | 2, 0]));
}

/** A large machine: more than any that there is. */
function largeMachine(): NodeInfo {
  const many = <T>(count: number, make: (index: number) => T) =>
    Array.from({ length: count }, (_, index) => make(index));
  return create(NodeInfoSchema, {
    hostname: "a".repeat(253),
    numaNodes: many(64, (id) => ({
      id,
      cpus: "0-127,256-383",
      distances: many(64, (at) => 10 + at),
    })),
    gpus: many(64, (index) => ({
      index,
      name: "NVIDIA H100 80GB HBM3",
      uuid: `GPU-${index}`.repeat(8),
      vendor: "NVIDIA",
      pciAddress: `0000:${index}:00.0`,
      driverVersion: "570.1",
    })),
    interfaces: many(128, (index) => ({
      name: `eth${index}`,
      mac: "02:42:ac:11:00:02",
      addresses: many(16, (at) => `10.${index}.${at}.7/24`),
    })),
    labels: Object.fromEntries(many(64, (index) => [`label-${index}`, "\n\n\n value, {[".repeat(4)])),
  });
}

describe("hasTooManyParts()", () => {
  it.each([
    ["empty messages", field(4, empty(9))],
    ["a message again and again", empty(3)],
    ["entries of a map", field(4, empty(13))],
    ["fields that are not known", Buffer.alloc(MEGABYTE, Buffer.from([0xf8, 0x7f, 0]))],
    ["small numbers", Buffer.alloc(MEGABYTE, Buffer.from([0x30, 1]))],
    ["messages before bytes that are none", Buffer.concat([field(4, Buffer.concat([empty(9), Buffer.from([7])]))])],
    ["messages in a field that is cut short", field(4, empty(9)).subarray(0, MEGABYTE - 10)],
    ["messages deep within", [4, 4, 4, 4, 4].reduce((inner, number) => field(number, inner), empty(9))],
    ["JSON of empty objects", Buffer.from(`{"info":{"gpus":[${Array(300_000).fill("{}").join()}]}}`)],
    ["JSON that nests", Buffer.from("[".repeat(MEGABYTE))],
  ])("should find %s", (_, bytes) => {
    expect(hasTooManyParts(bytes)).toBe(true);
  });

  it("should take the largest requests of the contract", () => {
    const info = largeMachine();
    const register = create(RegisterNodeRequestSchema, { nodeId: "n1", info });
    expect(hasTooManyParts(toBinary(RegisterNodeRequestSchema, register))).toBe(false);
    expect(hasTooManyParts(Buffer.from(toJsonString(RegisterNodeRequestSchema, register)))).toBe(false);
    const nodeIds = Array.from({ length: 1_000 }, (_, index) => `node-${index}.example`.padEnd(63, "x"));
    const held = create(GetHeldNodesRequestSchema, { nodeIds });
    expect(hasTooManyParts(toBinary(GetHeldNodesRequestSchema, held))).toBe(false);
  });

  it("should not count what is text", () => {
    const text = JSON.stringify({ reason: '[{,"\\'.repeat(10_000) });
    expect(hasTooManyParts(Buffer.from(text))).toBe(false);
    const reason = "It was, as they say, too old. ".repeat(30_000);
    expect(hasTooManyParts(field(2, Buffer.from(reason)))).toBe(false);
  });

  it("should come to an end with whatever comes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5_000 }), (bytes) => {
        expect(hasTooManyParts(bytes)).toBe(false);
      }),
    );
  });
});
