import { describe, expect, it } from "@jest/globals";
import { DEFAULT_HEALTH_POLICY, type Health, type Membership, NO_WISHES } from "@rollcall/domain";
import type { OwnedSession } from "@rollcall/store";
import { ManualClock } from "@rollcall/testkit/time";
import type { Farewell } from "./farewell.ts";
import type { NodeStream } from "./held-node.ts";
import { type OpenedSession, Replica } from "./replica.ts";

const MEMBERSHIP: Membership = {
  state: "APPROVED",
  sinceMs: 0,
  reason: "R",
  message: "",
  actor: "system",
};
const HELLO = { wishes: NO_WISHES, publicKey: new Uint8Array(32) };

const health = (state: Health["state"]): Health => ({
  state,
  sinceMs: 0,
  reason: "RECORDED",
  message: "",
  actor: "replica:other",
});

class Stream implements NodeStream {
  readonly peer = "127.0.0.1:1";
  readonly memberships: Membership[] = [];
  farewell: string | undefined;

  sendMembership(membership: Membership): void {
    this.memberships.push(membership);
  }

  sendSettings(): void {}
  sendPace(): void {}
  askMove(): boolean {
    return false;
  }

  leave({ reason }: Farewell): void {
    this.farewell ??= reason;
  }
}

function setUp() {
  const clock = new ManualClock();
  const changed: string[] = [];
  const nothing = () => {};
  const replica = new Replica({
    instance: "me",
    clock,
    policy: DEFAULT_HEALTH_POLICY,
    heartbeatsPerSecond: 1_000,
    tickMs: 100,
    random: () => 0,
    metrics: {
      hello: nothing,
      movesAsked: nothing,
      transition: nothing,
      detectionDelay: nothing,
      loopLag: nothing,
      observationLost: nothing,
      deadlineExtended: nothing,
      returnedAtOnce: nothing,
    },
    onChanged: ({ id }) => changed.push(id),
    onLabelsChanged: nothing,
  });
  replica.leaseHeld();
  const pass = (ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += 100) {
      clock.advance(100);
      replica.judge();
    }
  };
  return { clock, replica, changed, pass };
}

const opening = (epoch: number, changes: Partial<OpenedSession> = {}): OpenedSession => ({
  outcome: "OPENED",
  nodeId: "n1",
  epoch,
  membership: MEMBERSHIP,
  marked: false,
  previous: { replicaId: "me", bootId: null, machineFingerprint: null },
  detectedHealth: health("HEALTHY"),
  infoDigest: null,
  revision: 10n,
  ...changes,
});

const adopted = (epoch: number, state: Health["state"] = "HEALTHY"): OwnedSession => ({
  nodeId: "n1",
  epoch,
  connection: { ...health("UNKNOWN"), state: "DISCONNECTED" },
  detectedHealth: health(state),
  marked: false,
  membership: MEMBERSHIP,
});

describe("Replica.take()", () => {
  it("should keep what it knows of a node that it held all along", () => {
    const { replica, pass } = setUp();
    replica.take(new Stream(), opening(1), HELLO);
    pass(60_000);
    const again = new Stream();
    // The record has not heard of it yet.
    const node = replica.take(again, opening(2, { detectedHealth: health("HEALTHY") }), HELLO);
    expect(node.health).toMatchObject({ state: "UNHEALTHY", reason: "HEARTBEATS_MISSED" });
    expect(node.writtenHealth.state).toBe("HEALTHY");
  });

  it("should believe the record about a node that another replica has held since", () => {
    const { replica } = setUp();
    const older = new Stream();
    replica.take(older, opening(1), HELLO);
    const previous = { replicaId: "other", bootId: null, machineFingerprint: null };
    const recorded = { previous, detectedHealth: health("UNHEALTHY") };
    const node = replica.take(new Stream(), opening(3, recorded), HELLO);
    expect(older.farewell).toBe("SESSION_SUPERSEDED");
    // Only a Beat may call it healthy, not what was known here before.
    expect(node.health.state).toBe("UNHEALTHY");
    expect(node.watch.health).toBe("UNHEALTHY");
    expect([replica.nodes.size, replica.nodes.sessions]).toEqual([1, 1]);
  });
});

describe("Replica.take(), late", () => {
  it("should end a stream whose epoch is older than what was adopted since", () => {
    const { replica } = setUp();
    replica.adopt([adopted(3)], 20n);
    const late = new Stream();
    const node = replica.take(late, opening(1), HELLO);
    expect(late.farewell).toBe("SESSION_SUPERSEDED");
    expect(node).toMatchObject({ epoch: 3, stream: null });
    expect([replica.nodes.size, replica.nodes.sessions]).toEqual([1, 0]);
  });
});

describe("Replica.apply()", () => {
  const event = (revision: bigint, type: "node.rejected" | "node.approved" | "node.deleted") => ({
    id: "e",
    revision,
    atMs: 0,
    type,
    subject: "n1",
    actor: "token:t",
    reason: "R",
    message: "",
    before: null,
    after: null,
  });

  it("should pass over what its record said already, and follow what came after", () => {
    const { replica } = setUp();
    const stream = new Stream();
    replica.take(stream, opening(1, { revision: 10n }), HELLO);
    replica.apply([event(9n, "node.rejected"), event(10n, "node.deleted")]);
    expect(stream.farewell).toBeUndefined();
    replica.apply([event(11n, "node.approved")]);
    expect(stream.memberships.map(({ state }) => state)).toEqual(["APPROVED"]);
    replica.apply([event(12n, "node.rejected")]);
    expect(stream.farewell).toBe("NODE_REJECTED");
    expect(replica.nodes.sessions).toBe(0);
  });
});

describe("Replica.adopt()", () => {
  it("should leave alone what it holds under this epoch or a later one", () => {
    const { replica } = setUp();
    const stream = new Stream();
    replica.take(stream, opening(5), HELLO);
    replica.adopt([adopted(4), adopted(5)], 20n);
    expect(stream.farewell).toBeUndefined();
    replica.adopt([adopted(6)], 20n);
    expect(stream.farewell).toBe("SESSION_SUPERSEDED");
    expect(replica.nodes.find("n1")?.epoch).toBe(6);
  });

  it("should judge no adopted node while it turns hellos away", () => {
    const { replica, pass } = setUp();
    replica.adopt([adopted(1)], 20n);
    pass(59_000);
    replica.silence.turnedAway(undefined, 5_000);
    pass(2_000);
    expect(replica.nodes.find("n1")?.health.state).toBe("HEALTHY");
    // Its grace restarted.
    pass(58_000);
    expect(replica.nodes.find("n1")?.health.state).toBe("HEALTHY");
    pass(2_000);
    expect(replica.nodes.find("n1")?.health.state).toBe("UNHEALTHY");
  });
});

describe("Replica.close()", () => {
  it("should judge no node from then on, lease or not", () => {
    const { replica, pass, changed } = setUp();
    const stream = new Stream();
    replica.take(stream, opening(1), HELLO);
    const before = changed.length;
    replica.close(1_000);
    replica.leaseHeld();
    pass(120_000);
    expect(stream.farewell).toBe("SERVER_SHUTTING_DOWN");
    expect(replica.nodes.find("n1")?.health.state).toBe("HEALTHY");
    expect(changed).toHaveLength(before);
  });
});
