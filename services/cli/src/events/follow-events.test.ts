import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { EventSchema, EventService } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import { parseEventQuery } from "./event-query.ts";
import { followEvents } from "./follow-events.ts";

/** What a stream does after it has sent the events up to a revision. */
type Ending = { readonly through: number; readonly error: ConnectError };

function tooSlow(resumeToken: string): ConnectError {
  const value = { reason: "WATCHER_TOO_SLOW", domain: "rollcall.io", metadata: { resumeToken } };
  const details = [{ desc: ErrorInfoSchema, value }];
  return new ConnectError("the watcher does not keep up", Code.ResourceExhausted, undefined, details);
}

/** Follow streams that end so, until `count` events came; what they were asked, and what was said. */
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
  const batches = followEvents({
    control,
    client: createClient(EventService, transport),
    query: parseEventQuery({ follow: true, since: "1" }, 0),
    start: { kind: "revision", revision: 1n },
    hasBegun: false,
    interrupted: stop.signal,
    onBreak: (line) => said.push(line),
    pause: async () => {},
  });
  for await (const batch of batches) {
    revisions.push(...batch.map(({ revision }) => Number(revision)));
    if (revisions.length >= count - 1) stop.abort();
  }
  return { asked, said, revisions };
}

describe("followEvents()", () => {
  it("should resume after the last event, with nothing missed and nothing twice", async () => {
    const error = new ConnectError("the server is ending", Code.Unavailable);
    const { asked, said, revisions } = await follow(
      [
        { through: 3, error },
        { through: 3, error },
      ],
      6,
    );
    expect(revisions).toEqual([2, 3, 4, 5, 6]);
    expect(asked).toEqual(["afterRevision 1", "resumeToken token-3", "resumeToken token-3"]);
    expect(said).toEqual(["the server is ending", "the server is ending"]);
  });

  it("should go on from where a server that cuts it says", async () => {
    const { asked, said } = await follow([{ through: 3, error: tooSlow("token-2") }], 5);
    expect(asked).toEqual(["afterRevision 1", "resumeToken token-2"]);
    expect(said).toEqual(["the watcher does not keep up"]);
  });

  it("should fail when it cannot begin, and for what does not pass", async () => {
    const away = new ConnectError("away", Code.Unavailable);
    await expect(follow([{ through: 1, error: away }], 5)).rejects.toThrow("away");
    const compacted = new ConnectError("compacted", Code.OutOfRange);
    await expect(follow([{ through: 3, error: compacted }], 9)).rejects.toThrow("compacted");
  });
});
