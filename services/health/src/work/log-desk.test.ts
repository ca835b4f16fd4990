import { Readable } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import { OutputStream } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { describeError } from "@rollcall/errors";
import { ManualClock, settle } from "@rollcall/testkit/time";
import { BareStream } from "../testing/bare-replica.ts";
import { heldNode } from "../testing/held-node.ts";
import { HeldWork } from "./held-work.ts";
import { type LogCall, LogDesk } from "./log-desk.ts";
import type { WorkFrame } from "./work-frames.ts";

const QUERY = {
  ...{ executionId: "e1", stream: OutputStream.UNSPECIFIED, offset: 0n, stderrOffset: 0n, tailBytes: 0n },
  ...{ tailLines: 0, follow: false, times: false },
};

/** A desk, and a node whose agent brings these pieces when it is asked for output; none where it does not answer. */
function setUp(pieces: readonly string[] | null) {
  const clock = new ManualClock();
  const desk = new LogDesk({ clock, bytesPerSecond: 10, openWithinMs: 5_000 });
  const sendWork = (frame: WorkFrame): boolean => {
    if (frame.kind !== "log-request" || pieces === null) return true;
    const sent = pieces.map((text, index) => ({
      ...(index === 0 && { token: frame.token }),
      ...{ stream: 1, offset: 0n, data: Buffer.from(text), failure: "" },
    }));
    desk.serve(Readable.from(sent) as unknown as LogCall, () => {});
    return true;
  };
  const stream = Object.assign(new BareStream(), { sendWork });
  const node = heldNode("n1", { work: new HeldWork(), stream });
  return { clock, reading: desk.read(node, QUERY, new AbortController().signal) };
}

describe("LogDesk.read()", () => {
  it("should give no more in a second of its clock than one reading may have", async () => {
    const { clock, reading } = setUp(["0123456789", "0123456789", "x"]);
    const taken: number[] = [];
    const done = (async () => {
      for await (const { data } of reading) taken.push(data.byteLength);
    })();
    await settle();
    expect(taken).toEqual([10]);
    await clock.pass(999);
    expect(taken).toEqual([10]);
    await clock.pass(1);
    expect(taken).toEqual([10, 10]);
    await clock.pass(1_000);
    await clock.pass(1_000);
    await done;
    expect(taken).toEqual([10, 10, 1]);
  });

  it("should wait for an agent no longer than it may, by its clock", async () => {
    const { clock, reading } = setUp(null);
    const failed = reading.next().then(() => null, describeError);
    await clock.pass(5_000);
    expect(await failed).toMatchObject({ reason: "LOG_UNAVAILABLE" });
  });
});
