import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { EventSchema, EventService } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import { SILENT_SINK, type Sink } from "../shell.ts";
import { parseEventQuery } from "./event-query.ts";
import { followEvents } from "./follow-events.ts";

/** How a stream ends after it has sent the events up to a revision. */
type Ending = { readonly through: number; readonly error: ConnectError };

function tooSlow(resumeToken: string): ConnectError {
  const value = { reason: "WATCHER_TOO_SLOW", domain: "rollcall.io", metadata: { resumeToken } };
  const details = [{ desc: ErrorInfoSchema, value }];
  return new ConnectError("the watcher does not keep up", Code.ResourceExhausted, undefined, details);
}

/**
 * Follow streams that end in these ways until `count` events have arrived. Returns the requested
 * starts and the reported breaks.
 */
async function follow(endings: readonly Ending[], count: number) {
  const asked: string[] = [];
  const said: string[] = [];
  const revisions: number[] = [];
  const left = [...endings];
  const transport = createRouterTransport(({ service }) => {
    service(EventService, {
      watchEvents: async function* ({ start }) {
        asked.push(`${start.case} ${start.value}`);
        const from = Number(String(start.value).replace(/\D/g, ""));
        const ending = left.shift();
        for (let revision = from + 1; revision <= (ending?.through ?? count); revision += 1) {
          const event = create(EventSchema, { revision: BigInt(revision) });
          yield { events: [event], resumeToken: `token-${revision}`, revision: BigInt(revision) };
        }
        if (ending !== undefined) throw ending.error;
      },
    });
  });
  const control = {
    attempt: async (_at: string, _what: string, call: () => Promise<unknown>) => call(),
    explain: async (_at: string, error: unknown) => ConnectError.from(error).rawMessage,
  } as unknown as ControlPlane;
  const stop = new AbortController();
  const err: Sink = { ...SILENT_SINK, write: (line) => said.push(String(line)) };
  const batches = followEvents({
    control,
    client: createClient(EventService, transport),
    query: parseEventQuery({ follow: true, since: "1" }, 0),
    start: { kind: "revision", revision: 1n },
    hasBegun: false,
    shell: { interrupted: stop.signal, err, streamLimits: { silenceMs: 60_000, giveUpMs: 60_000, firstPauseMs: 0 } },
  });
  for await (const batch of batches) {
    revisions.push(...batch.map(({ revision }) => Number(revision)));
    if (revisions.length >= count - 1) stop.abort();
  }
  return { asked, said, revisions };
}

describe("followEvents()", () => {
  it("should resume after the last event, without missing or repeating any", async () => {
    const error = new ConnectError("the server is shutting down", Code.Unavailable);
    const { asked, said, revisions } = await follow(
      [
        { through: 3, error },
        { through: 3, error },
      ],
      6,
    );
    expect(revisions).toEqual([2, 3, 4, 5, 6]);
    expect(asked).toEqual(["afterRevision 1", "resumeToken token-3", "resumeToken token-3"]);
    expect(said).toEqual(["connection lost: the server is shutting down; trying again\n"]);
  });

  it("should resume at the token of the server that dropped it", async () => {
    const { asked, said } = await follow([{ through: 3, error: tooSlow("token-2") }], 5);
    expect(asked).toEqual(["afterRevision 1", "resumeToken token-2"]);
    expect(said).toEqual(["connection lost: the watcher does not keep up; trying again\n"]);
  });

  it("should fail if it cannot start, and for permanent errors", async () => {
    const away = new ConnectError("away", Code.Unavailable);
    await expect(follow([{ through: 1, error: away }], 5)).rejects.toThrow("away");
    const compacted = new ConnectError("compacted", Code.OutOfRange);
    await expect(follow([{ through: 3, error: compacted }], 9)).rejects.toThrow("compacted");
  });
});
