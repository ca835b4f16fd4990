import type { Clock, Logger } from "@rollcall/process";
import type { PeerList } from "../internal/peers.ts";
import { moveBeforeEnd, type Random } from "../replica/farewell.ts";
import type { HeldNodes } from "../replica/held-nodes.ts";
import type { Replica } from "../replica/replica.ts";
import type { Reconnects } from "./reconnects.ts";
import type { SessionMover } from "./session-mover.ts";

export interface DrainOptions {
  readonly replica: Pick<Replica, "drain"> & { readonly nodes: Pick<HeldNodes, "sessions"> };
  readonly peers: Pick<PeerList, "refresh">;
  readonly reconnects: Reconnects;
  readonly mover: Pick<SessionMover, "leaving" | "askAll">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: Random;
  /** Stop new agents from coming here. */
  readonly withdraw: () => Promise<void>;
}

/** The longest wait; agents that are left then are told to reconnect elsewhere. */
const MOST_WINDOW_MS = 6_000;
/** An agent adds up to a second of its own before it moves, and needs time to connect. */
const MOVE_TAKES_MS = 3_000;
/** Within this time replicas that end together, such as workers of one machine, learn of each other. */
const SETTLE_MS = 300;
const LOOK_EVERY_MS = 50;

/**
 * Move the agents away before the end: each opens a stream at another replica before it leaves this one, so that it is
 * never away. Returns at once without another replica.
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
  while (mover.leaving() > 0 && clock.nowMs() < untilMs) await clock.sleep(LOOK_EVERY_MS, signal);
  log.info({ sessions, left: replica.nodes.sessions }, "agents were handed on");
}

/** A different order for each agent. */
function shuffled(endpoints: readonly string[], random: Random): readonly string[] {
  const start = Math.floor(random() * endpoints.length);
  return [...endpoints.slice(start), ...endpoints.slice(0, start)];
}
