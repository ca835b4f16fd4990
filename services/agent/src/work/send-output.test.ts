import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { LogRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ManualClock, until } from "@rollcall/testkit/time";
import type { OutputSource } from "./output-source.ts";
import { type OutputCall, refuseOutput, sendOutput } from "./send-output.ts";

/** Outputs in memory. Tests can append to them, and drop the beginning. */
class Outputs implements OutputSource {
  readonly texts = { 1: "", 2: "" };
  /** The number of bytes that are no longer kept. */
  readonly gone = { 1: 0, 2: 0 };
  /** The position that is returned for a request by wall time. */
  readonly sinceAt = { 1: 0, 2: 0 };
  isEnded = false;
  isKept = true;
  isBroken = false;
  reads = 0;

  async read(
    _id: string,
    output: 1 | 2,
    from: Parameters<OutputSource["read"]>[2],
    { limitBytes }: { readonly limitBytes: number },
  ) {
    this.reads += 1;
    if (this.isBroken) throw new Error("the keeper is away");
    if (!this.isKept) return null;
    const text = Buffer.from(this.texts[output]);
    const asked =
      "offset" in from
        ? Number(from.offset)
        : "tailBytes" in from
          ? Math.max(0, text.length - Number(from.tailBytes))
          : this.sinceAt[output];
    const start = Math.max(asked, this.gone[output]);
    // A keeper returns at most the content of one file.
    const data = text.subarray(start, start + Math.min(limitBytes, 50_000));
    const isEnd = this.isEnded && start + data.length >= text.length;
    return { offset: BigInt(start), data, isEnd, isCut: start > asked, times: [] };
  }
}

function setUp(request: MessageInitShape<typeof LogRequestSchema> = {}) {
  const clock = new ManualClock();
  const source = new Outputs();
  const sent: string[] = [];
  let left = Number.POSITIVE_INFINITY;
  let ends = 0;
  const call: OutputCall = {
    send: async ({ token, stream, offset, data, failure, failureMessage, cut }) => {
      left -= 1;
      if (left < 0) return false;
      const text = `${stream}@${offset}${cut === true ? " cut" : ""} ${Buffer.from(data ?? [])}`;
      const failed = failure === undefined ? null : [failure, failureMessage].filter(Boolean).join(": ");
      sent.push(failed ?? (token ? `token ${token}` : text));
      return true;
    },
    end: () => {
      ends += 1;
    },
  };
  const leaving = new AbortController();
  const logRequest = create(LogRequestSchema, { token: new Uint8Array([7]), executionId: "e", ...request });
  return {
    ...{ clock, source, sent, leaving, call, logRequest },
    begin: () => sendOutput(logRequest, { source, clock }, call, leaving.signal),
    ends: () => ends,
    takeOnly: (most: number) => {
      left = most;
    },
  };
}

describe("sendOutput()", () => {
  it("should send pieces of both outputs alternately, up to the available end", async () => {
    const { source, sent, begin, ends } = setUp();
    source.texts[1] = "out".repeat(30_000);
    source.texts[2] = "err";
    await begin();
    expect(sent.map((it) => it.slice(0, 12))).toEqual(["token 7", "1@0 outoutou", "2@0 err", "1@50000 tout"]);
    expect(
      sent
        .filter((it) => it.startsWith("1@"))
        .map((it) => it.split(" ")[1])
        .join(""),
    ).toBe(source.texts[1]);
    expect(ends()).toBe(1);
  });

  it.each([
    ["one output", { stream: 2 }, ["2@0 0123456789"]],
    ["an offset", { stream: 2, offset: 4n }, ["2@4 456789"]],
    ["the tail", { stream: 2, offset: 4n, tailBytes: 3n }, ["2@7 789"]],
    ["the latest of several places", { stream: 2, offset: 8n, tailBytes: 3n, tailLines: 1 }, ["2@8 89"]],
    ["a place in each output", { offset: 12n, stderrOffset: 9n }, ["1@12 r", "2@9 9"]],
  ])("should send the requested output: %s", async (_, request, expected) => {
    const { source, sent, begin } = setUp(request);
    source.texts[1] = "not asked for";
    source.texts[2] = "0123456789";
    await begin();
    expect(sent.slice(1)).toEqual(expected);
  });

  it("should continue until the execution ends, if it follows", async () => {
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

  it("should report that there is no output, or that it cannot be read", async () => {
    const none = setUp();
    none.source.isKept = false;
    await none.begin();
    expect(none.sent).toEqual(["token 7", "LOG_NOT_FOUND"]);
    const broken = setUp();
    broken.source.isBroken = true;
    await expect(broken.begin()).rejects.toThrow("the keeper is away");
    expect([broken.sent, broken.ends()]).toEqual([["token 7", "LOG_UNAVAILABLE: the keeper is away"], 1]);
  });

  it("should stop when the server ends the call or the agent stops", async () => {
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

  it("should send the last lines, even if they are longer than a piece or unfinished", async () => {
    const long = "x".repeat(150_000);
    const { source, sent, begin } = setUp({ stream: 1, tailLines: 2 });
    source.texts[1] = `first\n${"-".repeat(99_999)}\n${long}\nlast`;
    await begin();
    const text = sent
      .slice(1)
      .map((it) => it.split(" ")[1])
      .join("");
    expect(text).toBe(`${long}\nlast`);
  });

  it("should read no more of an output than the requested lines", async () => {
    const { source, begin } = setUp({ stream: 1, tailLines: 3 });
    source.texts[1] = "line\n".repeat(1_000_000);
    await begin();
    expect(source.reads).toBeLessThan(8);
  });

  it("should report that lines are missing that are no longer kept", async () => {
    const { source, sent, begin } = setUp({ stream: 1, tailLines: 9 });
    source.texts[1] = "one\ntwo\nthree\n";
    source.gone[1] = 6;
    await begin();
    expect(sent.slice(1)).toEqual(["1@6 cut o\nthree\n"]);
  });

  it("should start with a whole line if it is requested by time", async () => {
    const { source, sent, begin } = setUp({ sinceAge: { seconds: 60n } });
    source.texts[1] = "one\ntwo\nthree\n";
    source.sinceAt[1] = 6;
    source.texts[2] = "gone before";
    source.gone[2] = 5;
    await begin();
    expect(sent.slice(1)).toEqual(["1@4 two\nthree\n", "2@5 cut before"]);
  });

  it("should report once where output starts whose beginning is gone", async () => {
    const { source, sent, begin } = setUp({ stream: 1 });
    source.texts[1] = "x".repeat(70_000);
    source.gone[1] = 10;
    await begin();
    expect(sent.slice(1).map((it) => it.slice(0, 11))).toEqual(["1@10 cut xx", "1@50010 xxx"]);
  });
});

describe("refuseOutput()", () => {
  it("should send the reason, so that the reader does not wait", async () => {
    const { logRequest, call, sent, ends } = setUp();
    let first = "";
    const named: OutputCall = {
      ...call,
      send: (piece) => {
        first = String(piece.token);
        return call.send(piece);
      },
    };
    await refuseOutput(logRequest, 16, named);
    expect([first, sent, ends()]).toEqual(["7", ["TOO_MANY_STREAMS: its agent sends at most 16 outputs at a time"], 1]);
  });
});
