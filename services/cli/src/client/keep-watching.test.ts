import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { SILENT_SINK, type Sink } from "../shell.ts";
import { keepWatching } from "./keep-watching.ts";

const AWAY = new ConnectError("the server is away", Code.Unavailable);
const CONTROL = {
  attempt: async <T>(_at: string, _what: string, call: () => Promise<T>) => call(),
  explain: async (_at: string, error: unknown) => ConnectError.from(error).rawMessage,
};

const LEFT = new Error("the user has left");

interface Breaking {
  /** How many messages a stream has before it breaks. */
  readonly messagesOf: (stream: number) => number;
  readonly giveUpMs: number;
  /** How many streams to open before the user leaves, so that a watch that never ends fails its test. */
  readonly mostStreams: number;
}

/** Watch streams that break. Returns what was received, the lines that the user sees, and the error at the end. */
async function watch({ messagesOf, giveUpMs, mostStreams }: Breaking) {
  const user = new AbortController();
  const said: string[] = [];
  let streams = 0;
  let messages = 0;
  const err: Sink = { ...SILENT_SINK, write: (line) => said.push(String(line)) };
  const watching = keepWatching<number>({
    control: CONTROL,
    at: "registry",
    what: "watch nodes",
    shell: { interrupted: user.signal, err, streamLimits: { silenceMs: 600_000, giveUpMs, firstPauseMs: 1 } },
    open: async function* () {
      streams += 1;
      if (streams > mostStreams) user.abort(LEFT);
      for (let left = messagesOf(streams); left > 0; left -= 1) yield left;
      throw AWAY;
    },
  });
  try {
    for await (const _ of watching) messages += 1;
  } catch (error) {
    return { streams, messages, said, error };
  }
  return { streams, messages, said, error: null };
}

describe("keepWatching()", () => {
  it("should give up when nothing arrives for the whole time after a break", async () => {
    // Only the first stream has a message. After about nine attempts, the pauses add up to the limit.
    const messagesOf = (stream: number) => (stream === 1 ? 1 : 0);
    const { messages, streams, error } = await watch({ messagesOf, giveUpMs: 250, mostStreams: 12 });
    expect(error).toBe(AWAY);
    expect(messages).toBe(1);
    expect(streams).toBeGreaterThan(1);
  });

  it("should report each break, and never give up while messages arrive in between", async () => {
    const { messages, said, error } = await watch({ messagesOf: () => 1, giveUpMs: 600_000, mostStreams: 10 });
    expect(error).toBe(LEFT);
    // The user leaves while the eleventh stream is open.
    expect(messages).toBe(11);
    expect(said).toHaveLength(10);
    expect(new Set(said)).toEqual(new Set(["connection lost: the server is away; trying again\n"]));
  });
});
