import { DEFAULT_HEALTH_POLICY, type Health, type Membership, NO_WISHES } from "@rollcall/domain";
import type { OwnedSession } from "@rollcall/store";
import { ManualClock } from "@rollcall/testkit/time";
import type { HealthMetrics } from "../metrics.ts";
import type { Farewell } from "../replica/farewell.ts";
import type { SuccessfulOpening } from "../replica/health-store.ts";
import type { NodeStream } from "../replica/live-node.ts";
import { Replica } from "../replica/replica.ts";
import type { WorkFrame } from "../replica/work-frames.ts";

/** A membership decided by an operator. */
export const MEMBERSHIP: Membership = { state: "APPROVED", sinceMs: 0, reason: "R", message: "", actor: "system" };

/** The part of a Hello that `Replica.take()` uses. */
export const HELLO = { wishes: NO_WISHES, publicKey: new Uint8Array(32) };

/** Metrics that count nothing. */
export const NO_METRICS: HealthMetrics = {
  hello: () => {},
  movesAsked: () => {},
  transition: () => {},
  detectionDelay: () => {},
  loopLag: () => {},
  observationLost: () => {},
  deadlineExtended: () => {},
  returnedAtOnce: () => {},
};

/** A stream that records frames and farewells. */
export class BareStream implements NodeStream {
  readonly peer: string;
  readonly memberships: Membership[] = [];
  readonly work: WorkFrame[] = [];
  farewell: string | undefined;
  /** Whether the stream currently refuses frames about work. */
  isBehind = false;

  constructor(peer = "127.0.0.1:1") {
    this.peer = peer;
  }

  sendMembership(membership: Membership): void {
    this.memberships.push(membership);
  }

  sendSettings(): void {}
  sendPace(): void {}
  sendWork(frame: WorkFrame): boolean {
    if (this.isBehind) return false;
    this.work.push(frame);
    return true;
  }
  askMove(): boolean {
    return false;
  }

  leave({ reason }: Farewell): void {
    this.farewell ??= reason;
  }
}

/** A replica without store and network; the test advances its time. */
export function bareReplica({ heartbeatsPerSecond = 1_000 } = {}) {
  const clock = new ManualClock();
  /** The node ids that the hooks were called with. */
  const changed: string[] = [];
  const inTrouble: string[] = [];
  const replica = new Replica({
    instance: "me",
    clock,
    policy: DEFAULT_HEALTH_POLICY,
    heartbeatsPerSecond,
    tickMs: 100,
    random: () => 0,
    metrics: NO_METRICS,
    onChanged: ({ id }) => changed.push(id),
    onLabelsChanged: () => {},
    onConditionsChanged: ({ id }) => inTrouble.push(id),
  });
  replica.leaseHeld();
  const pass = (ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += 100) {
      clock.advance(100);
      replica.evaluate();
    }
  };
  return { clock, replica, changed, inTrouble, pass };
}

/** A health state as in the store. */
export function recordedHealth(state: Health["state"]): Health {
  return { state, sinceMs: 0, reason: "RECORDED", message: "", actor: "replica:other" };
}

/** A session of node n1 that the store has opened. */
export function opening(epoch: number, changes: Partial<SuccessfulOpening> = {}): SuccessfulOpening {
  return {
    outcome: "OPENED",
    nodeId: "n1",
    epoch,
    membership: MEMBERSHIP,
    marked: false,
    previous: { replicaId: "me", bootId: null, machineFingerprint: null },
    ...{ isTakenOver: false, isDuplicated: false },
    detectedHealth: recordedHealth("HEALTHY"),
    infoDigest: null,
    revision: 10n,
    openedRevision: 10n,
    ...changes,
  };
}

/** An adopted session of node n1. */
export function adopted(epoch: number): OwnedSession {
  return {
    nodeId: "n1",
    epoch,
    connection: { ...recordedHealth("UNKNOWN"), state: "DISCONNECTED" },
    detectedHealth: recordedHealth("HEALTHY"),
    marked: false,
    membership: MEMBERSHIP,
  };
}
