import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { BeatSchema, HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { GpuUsageSchema, NumaNodeUsageSchema, ResourceUsageSchema } from "@rollcall/api/rollcall/node/v1/usage_pb";
import fc from "fast-check";
import { readBeatFrame } from "./beat-reader.ts";

type BeatInit = MessageInitShape<typeof BeatSchema>;

const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const float = fc.float({ noNaN: true });
const gpuFields = {
  index: uint32,
  utilizationPercent: float,
  memoryUsedMib: uint32,
  memoryTotalMib: uint32,
  temperatureCelsius: float,
};
const numaNodeFields = { id: uint32, cpuPercent: float, memoryUsedMib: uint32, memoryTotalMib: uint32 };
const usageFields = {
  cpuPercent: float,
  memoryUsedMib: uint32,
  memoryTotalMib: uint32,
  diskUsedMib: uint32,
  diskTotalMib: uint32,
  temperatureAverageCelsius: float,
  temperatureMaxCelsius: float,
  gpus: fc.array(fc.record(gpuFields, { requiredKeys: [] }), { maxLength: 4 }),
  numaNodes: fc.array(fc.record(numaNodeFields, { requiredKeys: [] }), { maxLength: 4 }),
  gpusUnknown: fc.boolean(),
};
const beatFields = {
  sequence: uint32,
  usage: fc.record(usageFields, { requiredKeys: [] }),
  agentTimeMs: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  settingsGeneration: uint32,
  executionsDigest: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
};
const beat = fc.record(beatFields, { requiredKeys: [] });

const encode = (value: BeatInit) =>
  toBinary(HeartbeatRequestSchema, create(HeartbeatRequestSchema, { frame: { case: "beat", value } }));

const generated = (bytes: Uint8Array) => fromBinary(HeartbeatRequestSchema, bytes);

/** The result of the generated decoder; null if it throws. */
function generatedOrNull(bytes: Uint8Array) {
  try {
    return generated(bytes);
  } catch {
    return null;
  }
}

describe("readBeatFrame()", () => {
  it("should read any Beat as the generated code does", () => {
    fc.assert(
      fc.property(beat, (value) => {
        const bytes = encode(value);
        expect(readBeatFrame(bytes)).toStrictEqual(generated(bytes));
      }),
    );
  });

  it.each<readonly [DescMessage, object]>([
    [BeatSchema, beatFields],
    [ResourceUsageSchema, usageFields],
    [GpuUsageSchema, gpuFields],
    [NumaNodeUsageSchema, numaNodeFields],
  ])("should be tested with every field of %s", (schema, fields) => {
    expect(Object.keys(fields)).toEqual(schema.fields.map(({ localName }) => localName));
  });

  it("should leave frames to the generated code that it would read differently", () => {
    const flaws = fc.record({
      cut: fc.nat(),
      at: fc.nat(),
      byte: fc.integer({ min: 0, max: 255 }),
      more: fc.uint8Array({ maxLength: 6 }),
    });
    fc.assert(
      fc.property(beat, flaws, (value, { cut, at, byte, more }) => {
        const whole = Uint8Array.from([...encode(value), ...more]);
        const bytes = whole.slice(0, whole.length - (cut % 4));
        if (bytes.length > 0) bytes[at % bytes.length] = byte;
        const read = readBeatFrame(bytes);
        if (read !== null) expect(read).toStrictEqual(generatedOrNull(bytes));
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ["a frame that is no Beat", [0x22, 0]],
    ["nothing", []],
    ["a field of the Beat that is unknown here", [0x12, 2, 0x28, 1]],
    ["a field of the frame that is unknown here", [0x12, 0, 0x28, 1]],
    ["usage that comes twice", [0x12, 4, 0x12, 0, 0x12, 0]],
    ["two Beats", [0x12, 0, 0x12, 0]],
    ["a Beat that is longer than the frame", [0x12, 9, 0x08, 1]],
    ["a field of another wire type", [0x12, 2, 0x0d, 1]],
  ])("should not read %s", (_what, bytes) => {
    expect(readBeatFrame(Uint8Array.from(bytes))).toBeNull();
  });
});
