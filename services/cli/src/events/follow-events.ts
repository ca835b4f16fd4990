import { type Client, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import type { Event, EventService, WatchEventsRequest } from "@rollcall/api/rollcall/events/v1/events_pb";
import { keepWatching, type Watching } from "../client/keep-watching.ts";
import { Unreached } from "../failure.ts";
import type { EventQuery, Start } from "./event-query.ts";

type WatchStart = WatchEventsRequest["start"];

export interface FollowOptions extends Pick<Watching<unknown>, "control" | "shell"> {
  readonly client: Client<typeof EventService>;
  readonly query: EventQuery;
  readonly start: Start;
  /** Whether events were read before. If so, the first stream is resumed when it breaks, like any later one. */
  readonly hasBegun: boolean;
}

/**
 * Yield events as they happen, until the shell is interrupted. A stream that breaks after its first message is resumed
 * after the last event, so that no event is missed or repeated. Throws Failure when the stream cannot start, or cannot
 * be resumed.
 */
export async function* followEvents(options: FollowOptions): AsyncGenerator<readonly Event[]> {
  const { control, shell, client, query, hasBegun } = options;
  let start = startOf(options.start);
  const messages = keepWatching({
    ...{ control, shell, hasBegun, at: "registry", what: "follow events" },
    open: (call) => client.watchEvents({ start, ...query.filter }, call),
    onBreak: (error) => {
      start = resumeAt(error) ?? start;
    },
  });
  try {
    for await (const message of messages) {
      start = { case: "resumeToken", value: message.resumeToken };
      if (message.events.length > 0) yield message.events;
    }
  } catch (error) {
    if (!shell.interrupted.aborted) throw error;
  }
  if (!shell.interrupted.aborted) throw new Unreached("the control plane ended the stream of events");
}

function startOf(start: Start): WatchStart {
  switch (start.kind) {
    // These two starts list events first, and then follow from the token of the list.
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

/** Find where to resume after a server has dropped a slow watcher; null for other errors. */
function resumeAt(error: unknown): WatchStart | null {
  const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
  const value = info?.metadata.resumeToken;
  return value === undefined ? null : { case: "resumeToken", value };
}
