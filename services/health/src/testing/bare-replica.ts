import { DEFAULT_HEALTH_POLICY, type Health, type Membership, NO_WISHES } from "@rollcall/domain";
import type { OwnedSession } from "@rollcall/store";
import { ManualClock } from "@rollcall/testkit/time";
import type { HealthMetrics } from "../metrics.ts";
import type { SuccessfulOpening } from "../record/health-record.ts";
import type { Farewell } from "../replica/farewell.ts";
import type { NodeStream } from "../replica/held-node.ts";
import { Replica } from "../replica/replica.ts";
import type { WorkFrame } from "../work/work-frames.ts";

/** As an operator has decided. */
export const MEMBERSHIP: Membership = { state: "APPROVED", sinceMs: 0, reason: "R", message: "", actor: "system" };

/** What `Replica.take()` gets of a Hello. */
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

/** A stream that records what is sent. */
export class BareStream implements NodeStream {
  readonly peer = "127.0.0.1:1";
  readonly memberships: Membership[] = [];
  readonly work: WorkFrame[] = [];
  farewell: string | undefined;
  /** Whether it takes no frames about work. */
  isBehind = false;

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

/** A replica without a record and without a network, whose time the test passes. */
export function bareReplica({ heartbeatsPerSecond = 1_000 } = {}) {
  const clock = new ManualClock();
  /** What it handed to its hooks, by node id. */
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
      replica.judge();
    }
  };
  return { clock, replica, changed, inTrouble, pass };
}

/** A recorded state of health. */
export function recordedHealth(state: Health["state"]): Health {
  return { state, sinceMs: 0, reason: "RECORDED", message: "", actor: "replica:other" };
}

/** A session of node n1 that the record has opened. */
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

/** Node n1 as it is adopted. */
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
