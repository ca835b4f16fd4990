import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ExecutionObservationSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import { executionsDigest, reportParts } from "./report-parts.ts";

const FRAME_BYTES = 65_536;
const observation = (index: number, message = "") =>
  create(ExecutionObservationSchema, { id: `e${index}`, change: 1n, message, specDigest: new Uint8Array(32) });
const report = { number: 7, whole: true, digest: 5n };

describe("reportParts()", () => {
  it("should be one frame for an empty report", () => {
    expect(reportParts(report, [])).toEqual([{ number: 7n, whole: true, more: false, digest: 5n, observations: [] }]);
  });

  it.each([
    ["many", Array.from({ length: 2_500 }, (_, index) => observation(index))],
    ["large", Array.from({ length: 300 }, (_, index) => observation(index, "\u{1F600}".repeat(256)))],
  ])("should keep frames of %s below the limit, in order and without repeats", (_, observations) => {
    const parts = reportParts(report, observations);
    expect(parts.length).toBeGreaterThan(1);
    for (const value of parts) {
      const frame = create(HeartbeatRequestSchema, { frame: { case: "executionReport", value } });
      expect(toBinary(HeartbeatRequestSchema, frame).length).toBeLessThan(FRAME_BYTES);
      expect(value.observations?.length).toBeLessThanOrEqual(1_000);
    }
    expect(parts.map(({ more }) => more)).toEqual(parts.map((_part, index) => index < parts.length - 1));
    expect(parts.flatMap((part) => (part.observations ?? []).map(({ id }) => id))).toEqual(
      observations.map(({ id }) => id),
    );
  });
});

describe("executionsDigest()", () => {
  it("should change with each change, and not with the order", () => {
    const [a, b] = [observation(1), observation(2)];
    expect(executionsDigest([a, b])).toBe(executionsDigest([b, a]));
    expect(executionsDigest([a, b])).not.toBe(executionsDigest([a, { ...b, change: 2n }]));
    expect(executionsDigest([])).toBe(0n);
  });
});
