import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { SettingsSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { toDuration } from "./hello.ts";
import { DEFAULT_PACE, paceAfter, paceAfterAck, silenceLimitMs, silentAtMs } from "./pace.ts";

describe("paceAfter()", () => {
  it("should apply the given settings and keep the others", () => {
    const settings = create(SettingsSchema, {
      heartbeatInterval: toDuration(2_500),
      unhealthyAfter: toDuration(0),
    });
    expect(paceAfter(DEFAULT_PACE, settings)).toEqual({ ...DEFAULT_PACE, heartbeatMs: 2_500 });
    expect(paceAfter(DEFAULT_PACE, undefined)).toEqual(DEFAULT_PACE);
  });

  it("should never let a server make an agent spin", () => {
    const settings = create(SettingsSchema, { heartbeatInterval: { seconds: 0n, nanos: 1 } });
    expect(paceAfter(DEFAULT_PACE, settings).heartbeatMs).toBe(10);
    expect(paceAfterAck(DEFAULT_PACE, 1).heartbeatMs).toBe(10);
    const negative = create(SettingsSchema, { heartbeatInterval: { seconds: -5n, nanos: 0 } });
    expect(paceAfter(DEFAULT_PACE, negative)).toEqual(DEFAULT_PACE);
  });
});

describe("paceAfterAck()", () => {
  it("should change only the interval, and nothing for 0", () => {
    expect(paceAfterAck(DEFAULT_PACE, 30_000)).toEqual({ ...DEFAULT_PACE, heartbeatMs: 30_000 });
    expect(paceAfterAck(DEFAULT_PACE, 0)).toEqual(DEFAULT_PACE);
  });
});

describe("silenceLimitMs()", () => {
  it.each([
    [60_000, 20_000],
    [59_997, 19_999],
    [300_000, 20_000],
    [3_000, 1_000],
  ])("should be a third of %d ms, and at most 20 s", (unhealthyAfterMs, limitMs) => {
    expect(silenceLimitMs({ ...DEFAULT_PACE, unhealthyAfterMs })).toBe(limitMs);
  });
});

describe("silentAtMs()", () => {
  it.each([
    ["a beat that follows an Ack after 15 s", 0, 15_000, 20_000],
    ["a beat right after an Ack", 0, 100, 20_000],
    ["a beat after a long interval", 0, 60_000, 65_000],
  ])("should count from %s", (_, lastAckAtMs, unansweredSinceMs, atMs) => {
    expect(silentAtMs(DEFAULT_PACE, lastAckAtMs, unansweredSinceMs)).toBe(atMs);
  });

  it("should give an answer no longer than the limit", () => {
    expect(silentAtMs({ ...DEFAULT_PACE, unhealthyAfterMs: 3_000 }, 0, 1_000)).toBe(2_000);
  });
});
