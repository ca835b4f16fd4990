import { setTimeout as pause } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { untilSilent } from "./keep-watching.ts";

const SILENCE_MS = 20;
const SHELL = {
  interrupted: new AbortController().signal,
  streamLimits: { silenceMs: SILENCE_MS, giveUpMs: 60_000, firstPauseMs: 1 },
};

/** A stream of messages that are there at once. Like that of a client, it fails when it is aborted. */
async function* stream(signal: AbortSignal, messages: number): AsyncGenerator<number> {
  for (let sent = 0; sent < messages; sent += 1) {
    signal.throwIfAborted();
    yield sent;
  }
}

describe("untilSilent()", () => {
  it("should not count the time that its reader needs for each message", async () => {
    const seen: number[] = [];
    for await (const message of untilSilent(SHELL, ({ signal }) => stream(signal, 3))) {
      seen.push(message);
      await pause(2 * SILENCE_MS);
    }
    expect(seen).toEqual([0, 1, 2]);
  });

  it("should fail when nothing arrives after any number of messages", async () => {
    const open = async function* ({ signal }: { readonly signal: AbortSignal }) {
      yield* stream(signal, 3);
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    const reading = (async () => {
      for await (const _ of untilSilent(SHELL, open)) await pause(2 * SILENCE_MS);
    })();
    await expect(reading).rejects.toThrow(ConnectError);
    await expect(reading).rejects.toMatchObject({ code: Code.Unavailable });
  });
});
