import type { Clock, Logger } from "@rollcall/process";
import type { PeerList } from "../internal/peers.ts";
import { moveBeforeEnd, type Random } from "../replica/farewell.ts";
import type { LiveNodes } from "../replica/live-nodes.ts";
import type { Replica } from "../replica/replica.ts";
import type { Reconnects } from "./reconnects.ts";
import type { SessionMover } from "./session-mover.ts";

export interface DrainOptions {
  readonly replica: Pick<Replica, "drain"> & { readonly nodes: Pick<LiveNodes, "sessions"> };
  readonly peers: Pick<PeerList, "refresh">;
  readonly reconnects: Reconnects;
  readonly mover: Pick<SessionMover, "leaving" | "askAll">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: Random;
  /** Keep new agents from connecting to this replica. */
  readonly withdraw: () => Promise<void>;
}

/**
 * Maximum time over which moves are spread. An agent that has not moved by the end must reconnect to another
 * replica.
 */
const MOST_WINDOW_MS = 6_000;
/**
 * How long to wait for the last moves after the window has ended: an agent waits up to another second before it moves,
 * and then needs time to connect.
 */
const MOVE_TAKES_MS = 3_000;
/**
 * How long to wait for replicas that shut down together, such as workers of one machine, to see each other
 * withdraw.
 */
const SETTLE_MS = 300;
const SCAN_EVERY_MS = 50;

/**
 * Move the agents away before shutdown. Each agent opens a stream at another replica before it leaves this one, so
 * it is never disconnected. Returns immediately when there is no other replica.
 */
export async function drain(options: DrainOptions): Promise<void> {
  const { replica, peers, reconnects, mover, clock, log, random } = options;
  const signal = new AbortController().signal;
  const { sessions } = replica.nodes;
  replica.drain();
  if (sessions === 0) return;
  await options.withdraw();
  await clock.sleep(SETTLE_MS, signal);
  await peers.refresh(0);
  if (reconnects.others === 0) return;
  const windowMs = Math.min(reconnects.windowMs(sessions), MOST_WINDOW_MS);
  mover.askAll(() => moveBeforeEnd(windowMs, shuffled(reconnects.endpoints, random), random));
  const untilMs = clock.nowMs() + windowMs + MOVE_TAKES_MS;
  while (mover.leaving() > 0 && clock.nowMs() < untilMs) await clock.sleep(SCAN_EVERY_MS, signal);
  log.info({ sessions, left: replica.nodes.sessions }, "agents moved to other replicas before shutdown");
}

/** Rotate the endpoints by a random offset, so that each agent gets a different order. */
function shuffled(endpoints: readonly string[], random: Random): readonly string[] {
  const start = Math.floor(random() * endpoints.length);
  return [...endpoints.slice(start), ...endpoints.slice(0, start)];
}
