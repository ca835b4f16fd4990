import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import type { Event, EventService, WatchEventsRequest } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import type { EventQuery, Start } from "./event-query.ts";

type WatchStart = WatchEventsRequest["start"];

/** How to follow. */
export interface FollowOptions {
  readonly control: ControlPlane;
  readonly client: Client<typeof EventService>;
  readonly query: EventQuery;
  /** Where to begin. */
  readonly start: Start;
  /** Whether events were read before: then the first stream that breaks is resumed, too. */
  readonly hasBegun: boolean;
  /** Ends it without an error. */
  readonly interrupted: AbortSignal;
  /** Called with one line for each break of the stream. */
  onBreak(line: string): void;
  /** Wait before the next attempt, `attempt` counted from 0. */
  pause(attempt: number): Promise<void>;
}

/** The server sends a message every 10 s: a stream that is silent for so long is broken. */
const SILENCE_MS = 30_000;

/** With these codes the same call may succeed later. */
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
  const { control, interrupted } = options;
  let start = startOf(options.start);
  let { hasBegun } = options;
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

/** One stream. It fails when it falls silent. */
async function* openStream({ client, query, interrupted }: FollowOptions, start: WatchStart) {
  const silence = new AbortController();
  const arm = () =>
    setTimeout(() => {
      silence.abort(new ConnectError("the stream fell silent", Code.Unavailable));
    }, SILENCE_MS);
  let timer = arm();
  try {
    const request = { start, ...query.filter };
    // No deadline: it is to go on for as long as it can.
    const call = { timeoutMs: 0, signal: AbortSignal.any([silence.signal, interrupted]) };
    for await (const message of client.watchEvents(request, call)) {
      clearTimeout(timer);
      yield message;
      timer = arm();
    }
  } finally {
    clearTimeout(timer);
  }
}

function startOf(start: Start): WatchStart {
  switch (start.kind) {
    // Both are listed first, and followed by the token of the list.
    case "latest":
    case "time":
      return { case: undefined };
    case "token":
      return { case: "resumeToken", value: start.token };
    case "revision":
      return start.revision === 0n
        ? { case: "fromBeginning", value: true }
        : { case: "afterRevision", value: start.revision };
  }
}

/** A server that cuts a slow watcher says where to go on. */
function resumeAt(error: unknown): WatchStart | null {
  const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
  const value = info?.metadata.resumeToken;
  return value === undefined ? null : { case: "resumeToken", value };
}
