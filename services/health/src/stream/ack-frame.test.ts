import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { HeartbeatResponseSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import fc from "fast-check";
import { encodeAck } from "./ack-frame.ts";

const generated = (sequence: number, nextIntervalMs = 0) =>
  Buffer.from(
    toBinary(
      HeartbeatResponseSchema,
      create(HeartbeatResponseSchema, {
        frame: { case: "ack", value: { sequence, nextIntervalMs } },
      }),
    ),
  );

describe("encodeAck()", () => {
  const edges = [0, 1, 7, 14, 21, 28].flatMap((bits) => [2 ** bits - 1, 2 ** bits, 2 ** bits + 1]);

  it.each([...edges, 2 ** 31, 2 ** 32 - 1])("should encode %i as the generated code does", (sequence) => {
    expect(encodeAck(sequence)).toEqual(generated(sequence));
  });

  it("should encode any sequence as the generated code does", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), (sequence) =>
        encodeAck(sequence).equals(generated(sequence)),
      ),
    );
  });

  it("should encode any sequence with any interval as the generated code does", () => {
    const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
    fc.assert(
      fc.property(uint32, uint32, (sequence, nextIntervalMs) =>
        encodeAck(sequence, nextIntervalMs).equals(generated(sequence, nextIntervalMs)),
      ),
    );
  });
});
