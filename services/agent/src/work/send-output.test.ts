import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { LogRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ManualClock, until } from "@rollcall/testkit/time";
import { type OutputCall, type OutputSource, sendOutput } from "./send-output.ts";

/** Outputs in memory, of which a test writes more. */
class Outputs implements OutputSource {
  readonly texts = { 1: "", 2: "" };
  isEnded = false;
  isKept = true;
  isBroken = false;

  async read(_id: string, output: 1 | 2, from: Parameters<OutputSource["read"]>[2], limit: number) {
    if (this.isBroken) throw new Error("the keeper is away");
    if (!this.isKept) return null;
    const text = Buffer.from(this.texts[output]);
    const start = "offset" in from ? Number(from.offset) : Math.max(0, text.length - Number(from.tailBytes));
    const data = text.subarray(start, start + limit);
    return { offset: BigInt(start), data, isEnd: this.isEnded && start + data.length >= text.length };
  }
}

function setUp(request: MessageInitShape<typeof LogRequestSchema> = {}) {
  const clock = new ManualClock();
  const source = new Outputs();
  const sent: string[] = [];
  let left = Number.POSITIVE_INFINITY;
  let ends = 0;
  const call: OutputCall = {
    send: async ({ token, stream, offset, data, failure }) => {
      left -= 1;
      if (left < 0) return false;
      sent.push(failure ?? (token ? `token ${token}` : `${stream}@${offset} ${Buffer.from(data ?? [])}`));
      return true;
    },
    end: () => {
      ends += 1;
    },
  };
  const leaving = new AbortController();
  const begin = () =>
    sendOutput(
      create(LogRequestSchema, { token: new Uint8Array([7]), executionId: "e", ...request }),
      source,
      call,
      clock,
      leaving.signal,
    );
  return {
    ...{ clock, source, sent, leaving, begin },
    ends: () => ends,
    takeOnly: (most: number) => {
      left = most;
    },
  };
}

describe("sendOutput()", () => {
  it("should send a piece of each output in turn, up to what there is", async () => {
    const { source, sent, begin, ends } = setUp();
    source.texts[1] = "out".repeat(30_000);
    source.texts[2] = "err";
    await begin();
    expect(sent.map((it) => it.slice(0, 12))).toEqual(["token 7", "1@0 outoutou", "2@0 err", "1@65536 utou"]);
    expect(
      sent
        .filter((it) => it.startsWith("1"))
        .map((it) => it.split(" ")[1])
        .join(""),
    ).toBe(source.texts[1]);
    expect(ends()).toBe(1);
  });

  it.each([
    ["one output", { stream: 2 }, ["2@0 0123456789"]],
    ["an offset", { stream: 2, offset: 4n }, ["2@4 456789"]],
    ["the tail", { stream: 2, offset: 4n, tailBytes: 3n }, ["2@7 789"]],
  ])("should send what is asked for: %s", async (_, request, expected) => {
    const { source, sent, begin } = setUp(request);
    source.texts[1] = "not asked for";
    source.texts[2] = "0123456789";
    await begin();
    expect(sent.slice(1)).toEqual(expected);
  });

  it("should go on with what is written until the execution ends, when it follows", async () => {
    const { source, sent, begin, clock } = setUp({ follow: true, stream: 1 });
    const sending = begin();
    source.texts[1] = "a";
    const look = async (count: number) =>
      until(`${count} frames`, () => {
        clock.advance(250);
        return sent.length === count;
      });
    await look(2);
    source.texts[1] += "b";
    await look(3);
    source.isEnded = true;
    const ended = sending.then(() => true);
    await until("its end", () => {
      clock.advance(250);
      return Promise.race([ended, Promise.resolve(false)]);
    });
    expect(sent).toEqual(["token 7", "1@0 a", "1@1 b"]);
  });

  it("should say that there is no output, or that it cannot be read", async () => {
    const none = setUp();
    none.source.isKept = false;
    await none.begin();
    expect(none.sent).toEqual(["token 7", "LOG_NOT_FOUND"]);
    const broken = setUp();
    broken.source.isBroken = true;
    await expect(broken.begin()).rejects.toThrow("the keeper is away");
    expect([broken.sent, broken.ends()]).toEqual([["token 7", "LOG_UNAVAILABLE"], 1]);
  });

  it("should stop when the server ends the call, or the agent leaves", async () => {
    const ended = setUp({ follow: true });
    ended.source.texts[1] = "a";
    ended.takeOnly(1);
    await ended.begin();
    expect(ended.sent).toEqual(["token 7"]);
    const left = setUp({ follow: true });
    const sending = left.begin();
    left.leaving.abort(new Error("the agent leaves"));
    await expect(sending).rejects.toThrow("the agent leaves");
    expect(left.sent).toEqual(["token 7"]);
  });
});
