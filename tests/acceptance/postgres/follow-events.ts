import { setTimeout as delay } from "node:timers/promises";
import type { Event } from "../../../libs/api/src/gen/rollcall/events/v1/events_pb.ts";
import { describeError } from "../../../libs/errors/src/index.ts";
import type { ControlPlaneClient } from "../../../services/rollcall/src/testing/control-plane-client.ts";

/** One more than this is no pause of a failover, but a watch that cannot go on. */
const MOST_ENDS = 1_000;
const PAUSE_MS = 50;

/** What was heard of a node. */
interface EventFollower {
  /** Oldest first. */
  seen(): readonly Event[];
  /** Why each watch ended that had to begin again. */
  ends(): readonly string[];
  stop(): void;
}

/** Follow the events about a node as a client should: by its last token, and from the beginning where that is void. */
export function followEvents(client: ControlPlaneClient, subject: string): EventFollower {
  const ending = new AbortController();
  const ends: string[] = [];
  let seen: Event[] = [];
  let token: string | undefined;
  const following = async () => {
    while (!ending.signal.aborted && ends.length < MOST_ENDS) {
      try {
        for await (const { events, resumeToken } of client.watchEvents(subject, ending.signal, token)) {
          seen.push(...events);
          token = resumeToken;
        }
        ends.push("without a word");
      } catch (error) {
        const { reason, retryAfterMs } = describeError(error);
        ends.push(reason ?? String(error));
        if (reason === "REVISION_COMPACTED") {
          token = undefined;
          seen = [];
        }
        await delay(retryAfterMs ?? PAUSE_MS);
      }
    }
  };
  void following();
  return { seen: () => seen, ends: () => ends, stop: () => ending.abort() };
}
