import type { Event } from "../../../libs/api/src/gen/rollcall/events/v1/events_pb.ts";
import { describeError } from "../../../libs/errors/src/index.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import type { ControlPlaneClient } from "../../../services/rollcall/src/testing/control-plane-client.ts";

/** The time limit of a follower. It is longer than any test here follows a node. */
const PATIENCE_MS = 300_000;

/** A follower of a node's events. */
interface EventFollower {
  /** Oldest first. */
  seen(): readonly Event[];
  /** Return why watches ended, for each watch that had to start over. */
  ends(): readonly string[];
  stop(): void;
}

/**
 * Follow the events about a node as a client should. It starts from its last token or, if that token is no longer
 * valid, from the beginning.
 */
export function followEvents(client: ControlPlaneClient, subject: string): EventFollower {
  const ending = new AbortController();
  const ends: string[] = [];
  let seen: Event[] = [];
  let token: string | undefined;
  const follow = async () => {
    try {
      for await (const { events, resumeToken } of client.watchEvents(subject, ending.signal, token)) {
        seen.push(...events);
        token = resumeToken;
      }
      ends.push("without a word");
    } catch (error) {
      const reason = describeError(error).reason ?? String(error);
      ends.push(reason);
      if (reason === "REVISION_COMPACTED") {
        token = undefined;
        seen = [];
      }
    }
    return ending.signal.aborted;
  };
  until(`enough to be heard of ${subject}`, follow, PATIENCE_MS).catch((error: unknown) => ends.push(String(error)));
  return { seen: () => seen, ends: () => ends, stop: () => ending.abort() };
}
