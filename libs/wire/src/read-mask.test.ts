import { create, equals, fromJson, toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { Json } from "@rollcall/domain";
import fc from "fast-check";
import { applyReadMask, MOST_PATHS, maskJson, parseReadMask, type ReadMask } from "./read-mask.ts";

const node = (): Node =>
  create(NodeSchema, {
    id: "n1",
    health: { reason: "R", message: "m" },
    labels: [{ key: "zone", value: "a" }],
    info: {
      hostname: "h",
      memoryBytes: 7n,
      cpu: { model: "c", threads: 4 },
      gpus: [
        { name: "H100", uuid: "u0" },
        { name: "A100", uuid: "u1" },
      ],
      labels: { a: "b" },
    },
  });

function maskOf(...paths: readonly string[]): ReadMask {
  const parsed = parseReadMask(NodeSchema, paths);
  if (!parsed.ok) throw new Error(parsed.description);
  return parsed.mask;
}

function masked(...paths: readonly string[]): unknown {
  const message = node();
  applyReadMask(message, maskOf(...paths));
  return toJson(NodeSchema, message);
}

describe("parseReadMask()", () => {
  it.each([
    [["nope"], 0],
    [["id", "info.nope"], 1],
    [["id", "id.x"], 1],
    [["info.gpus.nope"], 0],
    [["info.labels.zone"], 0],
    [["info", "info.nope"], 1],
  ])("should name the first of %j that names no field", (paths, at) => {
    expect(parseReadMask(NodeSchema, paths)).toMatchObject({ ok: false, at });
  });

  it("should accept paths up to the limit", () => {
    const paths = Array.from({ length: MOST_PATHS }, () => "id");
    expect(parseReadMask(NodeSchema, paths).ok).toBe(true);
    expect(parseReadMask(NodeSchema, [...paths, "id"])).toMatchObject({ ok: false, at: MOST_PATHS });
  });
});

describe("applyReadMask()", () => {
  it.each<[readonly string[], unknown]>([
    [["id"], { id: "n1" }],
    [["health.reason"], { health: { reason: "R" } }],
    [["info.gpus.name"], { info: { gpus: [{ name: "H100" }, { name: "A100" }] } }],
    [["info.labels"], { info: { labels: { a: "b" } } }],
    [["info.memory_bytes", "info.cpu.threads"], { info: { memoryBytes: "7", cpu: { threads: 4 } } }],
    [["health", "health.reason"], { health: { reason: "R", message: "m" } }],
    [["health.reason", "health"], { health: { reason: "R", message: "m" } }],
    [["scheduling.holds.kind", "key_since"], {}],
  ])("should leave %j", (paths, left) => {
    expect(masked(...paths)).toEqual(left);
  });
});

describe("maskJson()", () => {
  it("should keep the same parts of a JSON form as applyReadMask() of the message", () => {
    const paths = ["id", "health", "health.message", "labels.key", "info", "info.cpu", "info.cpu.model"];
    const more = ["info.gpus", "info.gpus.uuid", "info.labels", "info.memory_bytes", "info.hostname"];
    fc.assert(
      fc.property(fc.subarray([...paths, ...more], { minLength: 1 }), (chosen) => {
        const mask = maskOf(...chosen);
        const direct = node();
        applyReadMask(direct, mask);
        const json = maskJson(toJson(NodeSchema, node()) as Json, mask, NodeSchema);
        expect(equals(NodeSchema, fromJson(NodeSchema, json as never), direct)).toBe(true);
      }),
    );
  });
});
