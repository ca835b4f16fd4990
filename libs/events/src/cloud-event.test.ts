import { describe, expect, it } from "@jest/globals";
import {
  type CloudEvent,
  encodeCloudEvent,
  type OutwardEvent,
  readEventPosition,
  toCloudEvent,
} from "./cloud-event.ts";

const EVENT: OutwardEvent = {
  id: "0190c2a4-7f5e-7c3a-9d55-3f1f6f0f2b11",
  revision: 9_007_199_254_740_993n,
  timeMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  type: "node.health.changed",
  subject: "rack1.node-7",
  actor: "replica:health-2",
  reason: "HEARTBEAT_MISSED",
  message: "no heartbeat for 60 seconds",
  before: { health: "HEALTHY" },
  after: { health: "UNHEALTHY" },
  logId: "log-7",
  clusterId: "cluster one",
};

function decode(encoded: Uint8Array): CloudEvent {
  return JSON.parse(Buffer.from(encoded).toString()) as CloudEvent;
}

describe("toCloudEvent()", () => {
  it("should contain everything in the log", () => {
    expect(toCloudEvent(EVENT)).toEqual({
      specversion: "1.0",
      id: "0190c2a4-7f5e-7c3a-9d55-3f1f6f0f2b11",
      source: "/rollcall/cluster%20one",
      type: "io.rollcall.node.health.changed",
      subject: "rack1.node-7",
      time: "2026-01-02T03:04:05.678Z",
      datacontenttype: "application/json",
      revision: "9007199254740993",
      logid: "log-7",
      data: {
        actor: "replica:health-2",
        reason: "HEARTBEAT_MISSED",
        message: "no heartbeat for 60 seconds",
        before: { health: "HEALTHY" },
        after: { health: "UNHEALTHY" },
      },
    });
  });

  it("should write absent values as null", () => {
    expect(toCloudEvent({ ...EVENT, before: null }).data.before).toBeNull();
  });

  it("should leave out an empty subject, which CloudEvents does not allow", () => {
    expect(toCloudEvent({ ...EVENT, subject: "" })).not.toHaveProperty("subject");
  });

  it("should name its attributes as CloudEvents requires: lower case letters and digits", () => {
    for (const name of Object.keys(toCloudEvent(EVENT))) expect(name).toMatch(/^[a-z0-9]{1,20}$/);
  });
});

describe("encodeCloudEvent()", () => {
  it("should omit parts of an event only above the limit", () => {
    const { length } = encodeCloudEvent(EVENT);
    expect(decode(encodeCloudEvent(EVENT, length))).toEqual(toCloudEvent(EVENT));
    const cut = decode(encodeCloudEvent(EVENT, length - 1));
    expect(cut.data).not.toHaveProperty("before");
    expect(cut.data).not.toHaveProperty("after");
    expect(cut.data.message).toBe(EVENT.message);
    expect(cut.data.omitted).toEqual(["before", "after"]);
  });

  it("should omit a large message too", () => {
    const cut = decode(encodeCloudEvent({ ...EVENT, message: "ä".repeat(2_000) }, 1_000));
    expect(cut.data).toEqual({
      actor: EVENT.actor,
      reason: EVENT.reason,
      omitted: ["message", "before", "after"],
    });
    expect(cut.id).toBe(EVENT.id);
  });
});

describe("readEventPosition()", () => {
  it("should read the position of an encoded event", () => {
    expect(readEventPosition(encodeCloudEvent(EVENT))).toEqual({
      revision: EVENT.revision,
      logId: "log-7",
    });
  });

  it.each([
    "",
    "not JSON",
    "null",
    "{}",
    '{"revision":7,"logid":"x"}',
    '{"revision":"-7","logid":"x"}',
    '{"revision":"7"}',
  ])("should find no position in %j", (text) => {
    expect(readEventPosition(Buffer.from(text))).toBeNull();
  });
});
