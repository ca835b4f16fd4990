import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { SetHealthPolicyRequestSchema } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { WatchEventsResponseSchema } from "@rollcall/api/rollcall/events/v1/events_pb";
import { HeartbeatResponseSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { GetClusterHealthResponseSchema } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { NodeInfoSchema, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { ResourceUsageSchema } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { NodeChangeSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { encodeFast } from "./fast-encoder.ts";

function expectSame<Desc extends DescMessage>(desc: Desc, init: MessageInitShape<Desc>): void {
  const message = create(desc, init);
  expect(Buffer.from(encodeFast(desc, message)).toString("hex")).toBe(
    Buffer.from(toBinary(desc, message)).toString("hex"),
  );
}

const MACHINE: MessageInitShape<typeof NodeInfoSchema> = {
  hostname: "rack1-07 ä € 😀 \ud800",
  cpu: { model: "EPYC", sockets: 2, cores: 2 ** 32 - 1, usableMillis: 192_000 },
  memoryBytes: 2n ** 64n - 1n,
  diskBytes: 2n ** 53n,
  numaNodes: [{ id: 0, cpus: "0-95", memoryBytes: 1n, distances: [10, 32, 300] }, {}],
  gpus: [{ index: 0, name: "H100" }, { index: 1 }],
  vm: { capable: true },
  labels: { zone: "a", "": "", 7: "seven" },
};

describe("encodeFast()", () => {
  it("should write machines, texts of all lengths, maps and lists as the library does", () => {
    expectSame(NodeInfoSchema, {});
    expectSame(NodeInfoSchema, MACHINE);
    for (const length of [127, 128, 16_383, 16_384, 200_000]) {
      expectSame(NodeInfoSchema, { hostname: "x".repeat(length), labels: { a: "€".repeat(length) } });
    }
  });

  it("should write nested messages, enums, times before 1970, and oneofs", () => {
    const createTime = { seconds: -(2n ** 40n), nanos: 999 };
    const labels = [{ key: "k", value: "v" }];
    const node = create(NodeSchema, { id: "n", type: 1, info: MACHINE, labels, createTime, mayTakeWork: true });
    expectSame(NodeSchema, node);
    expectSame(NodeChangeSchema, { change: { case: "upserted", value: node } });
    expectSame(NodeChangeSchema, { change: { case: "removedId", value: "" } });
    expectSame(NodeChangeSchema, {});
  });

  it("should write structs, durations and numbers below 0", () => {
    expectSame(WatchEventsResponseSchema, {
      events: [{ id: "a", after: { membership: "APPROVED", of: [1, null, { deep: true }] } }, { before: {} }],
      revision: 2n ** 64n - 7n,
    });
    const values = { unhealthyAfter: { seconds: -1n, nanos: -5 } };
    expectSame(SetHealthPolicyRequestSchema, {
      scope: { scope: { case: "group", value: "g" } },
      ...{ priority: -5, values, updateMask: { paths: ["priority"] } },
    });
    for (const cpuPercent of [0, -0, 12.5, Number.NaN]) expectSame(GetClusterHealthResponseSchema, { cpuPercent });
  });

  it("should write floats, set or not, in messages and lists", () => {
    const gpus = [
      { utilizationPercent: 99.5, temperatureCelsius: 0 },
      { utilizationPercent: Number.POSITIVE_INFINITY },
    ];
    for (const cpuPercent of [0, -0, 12.5, 1 / 3, Number.NaN]) {
      expectSame(ResourceUsageSchema, { cpuPercent, temperatureAverageCelsius: cpuPercent, gpus });
    }
  });

  it("should reject numbers outside the type of their field, as the library does", () => {
    const infos: MessageInitShape<typeof NodeInfoSchema>[] = [
      ...[-1, 2 ** 32, 1.5, Number.NaN].map((cores) => ({ cpu: { cores } })),
      ...[-1n, 2n ** 64n].map((memoryBytes) => ({ memoryBytes })),
    ];
    for (const init of infos) {
      const message = create(NodeInfoSchema, init);
      expect(() => toBinary(NodeInfoSchema, message)).toThrow();
      expect(() => encodeFast(NodeInfoSchema, message)).toThrow(RangeError);
    }
    for (const nanos of [2 ** 31, -(2 ** 31) - 1]) {
      const message = create(HeartbeatResponseSchema, { frame: { case: "goAway", value: { retryAfter: { nanos } } } });
      expect(() => encodeFast(HeartbeatResponseSchema, message)).toThrow(RangeError);
    }
    for (const cpuPercent of [1e39, -1e39]) {
      const usage = create(ResourceUsageSchema, { cpuPercent });
      expect(() => toBinary(ResourceUsageSchema, usage)).toThrow();
      expect(() => encodeFast(ResourceUsageSchema, usage)).toThrow(RangeError);
    }
    const late = create(NodeSchema, { createTime: { seconds: 2n ** 63n } });
    expect(() => encodeFast(NodeSchema, late)).toThrow(RangeError);
    // Check that the next message contains no part of the rejected message.
    expectSame(NodeInfoSchema, MACHINE);
  });

  it("should write the messages sent to agents", () => {
    const settings = { heartbeatInterval: { seconds: 15n }, labels: [{ key: "zone", value: "a" }], generation: 3 };
    const value = { sessionEpoch: 2n ** 40n, settings, clusterId: "c", nodeInfoWanted: true, healthEndpoints: ["a:1"] };
    expectSame(HeartbeatResponseSchema, { frame: { case: "welcome", value } });
    expectSame(HeartbeatResponseSchema, { frame: { case: "challenge", value: { nonce: new Uint8Array(32).fill(7) } } });
    expectSame(HeartbeatResponseSchema, { frame: { case: "goAway", value: { reason: 5, retryAfter: { nanos: 1 } } } });
    expectSame(HeartbeatResponseSchema, {});
  });

  it("should write unknown fields", () => {
    const message = create(NodeInfoSchema, { hostname: "a" });
    message.$unknown = [{ no: 200, wireType: 2, data: new Uint8Array([1, 7]) }];
    expect(encodeFast(NodeInfoSchema, message)).toEqual(toBinary(NodeInfoSchema, message));
  });
});
