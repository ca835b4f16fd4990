import { describe, expect, it } from "@jest/globals";
import { OutputStream } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { describeError } from "@rollcall/errors";
import { ManualClock, settle } from "@rollcall/testkit/time";
import { LiveWork } from "../replica/live-work.ts";
import type { WorkFrame } from "../replica/work-frames.ts";
import { BareStream } from "../testing/bare-replica.ts";
import { FakeLogCall } from "../testing/fake-log-call.ts";
import { liveNode } from "../testing/live-node.ts";
import { LogProxy } from "./log-proxy.ts";

const QUERY = {
  ...{ executionId: "e1", stream: OutputStream.UNSPECIFIED, offset: 0n, stderrOffset: 0n, tailBytes: 0n },
  ...{ tailLines: 0, follow: false, times: false },
};

/**
 * Create a LogProxy, and a node whose agent sends these pieces when output is requested; with null, the agent
 * does not respond.
 */
function setUp(pieces: readonly string[] | null) {
  const clock = new ManualClock();
  const queue = new LogProxy({ clock, bytesPerSecond: 10, openWithinMs: 5_000 });
  const sendWork = (frame: WorkFrame): boolean => {
    if (frame.kind !== "log-request" || pieces === null) return true;
    const call = new FakeLogCall(queue);
    for (const [index, text] of pieces.entries()) {
      call.push({ ...(index === 0 && { token: frame.token }), stream: 1, data: Buffer.from(text) });
    }
    call.push(null);
    return true;
  };
  const stream = Object.assign(new BareStream(), { sendWork });
  const node = liveNode("n1", { work: new LiveWork(), stream });
  const read = () => queue.read(node, QUERY, new AbortController().signal);
  return { clock, read, reading: read() };
}

describe("LogProxy.read()", () => {
  it("should limit the bytes per second of one reader", async () => {
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

  it("should wait for an agent only for the configured time", async () => {
    const { clock, reading } = setUp(null);
    const failed = reading.next().then(() => null, describeError);
    await clock.pass(5_000);
    expect(await failed).toMatchObject({ reason: "LOG_UNAVAILABLE" });
  });

  it("should allow any number of readings, one after the other", async () => {
    const { read } = setUp(["x"]);
    // At most 200 readings can be in progress at the same time.
    for (let count = 1; count <= 201; count += 1) {
      const reading = read();
      expect(await reading.next()).toMatchObject({ done: false });
      await reading.return(undefined);
    }
  });
});
