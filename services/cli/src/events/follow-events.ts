import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import type { Event, EventService, WatchEventsRequest } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import type { EventQuery, Since } from "./event-query.ts";

type Start = WatchEventsRequest["start"];

/** How to follow. */
export interface FollowOptions {
  readonly control: ControlPlane;
  readonly client: Client<typeof EventService>;
  readonly query: EventQuery;
  /** Ends it without an error. */
  readonly interrupted: AbortSignal;
  /** Told in one line of each break of the stream. */
  onBreak(line: string): void;
  /** Wait before the next attempt, `attempt` counted from 0. */
  pause(attempt: number): Promise<void>;
}

/** The contract promises a message every 10 s: a stream that is silent for so long is broken. */
const SILENCE_MS = 30_000;

/** With these the same call could succeed a little later. */
const PASSING = new Set([
  Code.Unavailable,
  Code.Aborted,
  Code.Canceled,
  Code.DeadlineExceeded,
  Code.ResourceExhausted,
  Code.Unknown,
  Code.Internal,
]);

/**
 * Events as they happen. A stream that breaks after it began is resumed after the last event: nothing is missed and
 * nothing comes twice. Throws a Failure when it cannot begin, or cannot go on from there.
 */
export async function* followEvents(options: FollowOptions): AsyncGenerator<readonly Event[]> {
  const { control, query, interrupted } = options;
  let start = startOf(query.since);
  let hasBegun = false;
  for (let attempt = 0; !interrupted.aborted; attempt += 1) {
    try {
      for await (const message of openStream(options, start)) {
        hasBegun = true;
        attempt = 0;
        start = { case: "resumeToken", value: message.resumeToken };
        if (message.events.length > 0) yield message.events;
      }
    } catch (error) {
      if (interrupted.aborted) return;
      if (!hasBegun || !PASSING.has(ConnectError.from(error).code)) {
        await control.attempt("registry", "follow events", () => Promise.reject(error));
      }
      start = resumeAt(error) ?? start;
      options.onBreak(await control.explain("registry", error));
    }
    // It rejects only when the user ends it.
    await options.pause(attempt).catch(() => {});
  }
}

/** One stream; it fails when it falls silent. */
async function* openStream({ client, query }: FollowOptions, start: Start) {
  const silence = new AbortController();
  const arm = () =>
    setTimeout(() => {
      silence.abort(new ConnectError("the stream fell silent", Code.Unavailable));
    }, SILENCE_MS);
  let timer = arm();
  try {
    const request = { start, ...query.filter };
    // No deadline: it is to go on for as long as it can.
    const call = { timeoutMs: 0, signal: silence.signal };
    for await (const message of client.watchEvents(request, call)) {
      clearTimeout(timer);
      yield message;
      timer = arm();
    }
  } finally {
    clearTimeout(timer);
  }
}

function startOf(since: Since): Start {
  switch (since.kind) {
    case "now":
      return { case: undefined };
    case "token":
      return { case: "resumeToken", value: since.token };
    case "revision":
      return since.revision === 0n
        ? { case: "fromBeginning", value: true }
        : { case: "afterRevision", value: since.revision };
  }
}

/** A server that cuts a slow watcher says where to go on. */
function resumeAt(error: unknown): Start | null {
  const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
  const value = info?.metadata.resumeToken;
  return value === undefined ? null : { case: "resumeToken", value };
}
