import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { type ResourceUsage, ResourceUsageSchema } from "@rollcall/api/rollcall/node/v1/usage_pb";
import type { EventRow } from "@rollcall/store";
import { adopted, BareStream, bareReplica, HELLO, opening, recordedHealth } from "../testing/bare-replica.ts";

function eventOf(revision: bigint, type: EventRow["type"], changes: Partial<EventRow> = {}): EventRow {
  const said = { actor: "token:t", reason: "R", message: "", before: null, after: null };
  return { id: "e", revision, atMs: 0, type, subject: "n1", ...said, ...changes };
}

function usageOf(...celsius: readonly number[]): ResourceUsage {
  const gpus = celsius.map((temperatureCelsius, index) => ({ index, temperatureCelsius }));
  return create(ResourceUsageSchema, { gpus });
}

describe("Replica.apply()", () => {
  it("should keep a session whose opening waited for another that was committed after the membership was read", () => {
    const { replica } = bareReplica();
    replica.take(new BareStream(), opening(3, { revision: 40n, openedRevision: 60n }), HELLO);
    replica.apply([eventOf(50n, "node.session.moved", { actor: "replica:other" })]);
    expect(replica.nodes.find("n1")?.epoch).toBe(3);
    replica.apply([eventOf(51n, "node.rejected")]);
    expect(replica.nodes.find("n1")?.membership?.state).toBe("REJECTED");
    replica.apply([eventOf(61n, "node.session.moved", { actor: "replica:other" })]);
    expect(replica.nodes.find("n1")).toBeUndefined();
  });
});

describe("Replica.take()", () => {
  it("should keep the state of a node that it has held all the time", () => {
    const { replica, pass } = bareReplica();
    replica.take(new BareStream(), opening(1), HELLO);
    pass(60_000);
    const again = new BareStream();
    // The store still has the old state, in which the node is healthy.
    const node = replica.take(again, opening(2, { detectedHealth: recordedHealth("HEALTHY") }), HELLO);
    expect(node.health).toMatchObject({ state: "UNHEALTHY", reason: "HEARTBEATS_MISSED" });
    expect(node.writtenHealth.state).toBe("HEALTHY");
  });

  it("should use the stored state of a node that another replica has held since", () => {
    const { replica } = bareReplica();
    const older = new BareStream();
    replica.take(older, opening(1), HELLO);
    const previous = { replicaId: "other", bootId: null, machineFingerprint: null };
    const recorded = { previous, detectedHealth: recordedHealth("UNHEALTHY") };
    const node = replica.take(new BareStream(), opening(3, recorded), HELLO);
    expect(older.farewell).toBe("SESSION_SUPERSEDED");
    // Whatever the earlier session's state was, only a Beat of the new session can make the node healthy.
    expect(node.health.state).toBe("UNHEALTHY");
    expect(node.timing.health).toBe("UNHEALTHY");
    expect([replica.nodes.size, replica.nodes.sessions]).toEqual([1, 1]);
  });
});

describe("Replica.isContested()", () => {
  it.each([
    ["a first session, or one of the same agent", { isTakenOver: false, isDuplicated: false }, 0],
    ["a session that another agent had", { isTakenOver: true, isDuplicated: false }, 15_000],
    ["a node that two agents are known to use", { isTakenOver: false, isDuplicated: true }, 180_000],
  ])("should count %s", (_, takeover, contestedMs) => {
    const { replica, clock } = bareReplica();
    const node = replica.take(new BareStream(), opening(1, takeover), HELLO);
    if (contestedMs > 0) {
      clock.advance(contestedMs - 1);
      expect(replica.isContested(node)).toBe(true);
      clock.advance(1);
    }
    expect(replica.isContested(node)).toBe(false);
  });
});

describe("Replica.take(), late", () => {
  it("should end a stream whose epoch is older than what was adopted since", () => {
    const { replica } = bareReplica();
    replica.adopt([adopted(3)], 20n);
    const late = new BareStream();
    const node = replica.take(late, opening(1), HELLO);
    expect(late.farewell).toBe("SESSION_SUPERSEDED");
    expect(node).toMatchObject({ epoch: 3, stream: null });
    expect([replica.nodes.size, replica.nodes.sessions]).toEqual([1, 0]);
  });
});

describe("Replica.apply()", () => {
  it("should skip events that its state already includes, and apply later ones", () => {
    const { replica } = bareReplica();
    const stream = new BareStream();
    replica.take(stream, opening(1, { revision: 10n }), HELLO);
    replica.apply([eventOf(9n, "node.rejected"), eventOf(10n, "node.deleted")]);
    expect(stream.farewell).toBeUndefined();
    replica.apply([eventOf(11n, "node.approved")]);
    expect(stream.memberships.map(({ state }) => state)).toEqual(["APPROVED"]);
    replica.apply([eventOf(12n, "node.rejected")]);
    expect(stream.farewell).toBe("NODE_REJECTED");
    expect(replica.nodes.sessions).toBe(0);
  });

  it("should learn from the event which report the store has", () => {
    const { replica } = bareReplica();
    const node = replica.take(new BareStream(), opening(1), HELLO);
    replica.apply([eventOf(11n, "node.info.changed", { after: { infoDigest: "new" } })]);
    expect(node.infoDigest).toBe("new");
  });

  it("should end the stream of a replaced key, and accept no more proofs by it", () => {
    const { replica } = bareReplica();
    const stream = new BareStream();
    const node = replica.take(stream, opening(1), HELLO);
    replica.apply([eventOf(11n, "node.key.rotated", { after: { keyFingerprint: "another" } })]);
    expect(stream.farewell).toBe("NODE_KEY_RETIRED");
    expect(node.publicKey).toHaveLength(0);
    expect(node.connection).toMatchObject({ state: "DISCONNECTED", reason: "KEY_RETIRED" });
  });

  it("should tell watchers that another replica took a node, and forget its samples", () => {
    const { replica } = bareReplica();
    const node = replica.take(new BareStream(), opening(1), HELLO);
    replica.beat(node, usageOf(), true);
    const released: string[] = [];
    replica.watched.watch("n1", { touched: () => {}, released: (id) => released.push(id) });
    replica.apply([eventOf(11n, "node.session.moved", { actor: "replica:other" })]);
    expect(released).toEqual(["n1"]);
    expect(node.samples).toBeNull();
    expect(replica.nodes.size).toBe(0);
  });
});

describe("Replica.beat()", () => {
  it("should report when a GPU's state has certainly changed, and only then", () => {
    const { replica, inTrouble } = bareReplica();
    const node = replica.take(new BareStream(), opening(1), HELLO);
    replica.beat(node, usageOf(60, 60), true);
    replica.beat(node, usageOf(60), false);
    replica.beat(node, usageOf(60), false);
    expect(inTrouble).toEqual([]);
    replica.beat(node, usageOf(60), false);
    expect(inTrouble).toEqual(["n1"]);
    replica.beat(node, usageOf(60), false);
    expect(inTrouble).toEqual(["n1"]);
  });

  it("should forget the evidence of a declaration once the node is back", () => {
    const { replica, pass } = bareReplica();
    const node = replica.take(new BareStream(), opening(1), HELLO);
    pass(60_100);
    expect(node.evidence).not.toBeNull();
    replica.take(new BareStream(), opening(2), HELLO);
    replica.beat(node, undefined, true);
    expect(node).toMatchObject({ health: { state: "HEALTHY" }, evidence: null });
  });

  it("should notify the node's watchers", () => {
    const { replica } = bareReplica();
    const node = replica.take(new BareStream(), opening(1), HELLO);
    let touched = 0;
    replica.watched.watch("n1", { touched: () => (touched += 1), released: () => {} });
    replica.beat(node, usageOf(), true);
    replica.beat(node, usageOf(), false);
    expect(touched).toBe(2);
  });
});

describe("the end of a stream that a newer one has replaced", () => {
  it("should change nothing, whether it breaks or says goodbye", () => {
    const { replica, changed } = bareReplica();
    const older = new BareStream();
    replica.take(older, opening(1), HELLO);
    const newer = new BareStream();
    const node = replica.take(newer, opening(2), HELLO);
    const before = changed.length;
    replica.broken(node, older);
    replica.goodbye(node, older, "maintenance");
    expect(node).toMatchObject({ connection: { state: "CONNECTED" }, health: { state: "HEALTHY" } });
    expect(node.stream).toBe(newer);
    expect([replica.nodes.sessions, changed.length]).toEqual([1, before]);
  });
});

describe("Replica.drain()", () => {
  it("should admit no more Hellos, with or without the lease, and still declare nodes", () => {
    const { replica, pass } = bareReplica();
    const node = replica.take(new BareStream(), opening(1), HELLO);
    expect(replica.mayOpen).toBe(true);
    replica.drain();
    replica.leaseHeld();
    expect(replica.mayOpen).toBe(false);
    pass(60_100);
    expect(node.health.state).toBe("UNHEALTHY");
  });
});

describe("Replica.adopt()", () => {
  it("should not change nodes held under this epoch or a later one", () => {
    const { replica } = bareReplica();
    const stream = new BareStream();
    replica.take(stream, opening(5), HELLO);
    replica.adopt([adopted(4), adopted(5)], 20n);
    expect(stream.farewell).toBeUndefined();
    replica.adopt([adopted(6)], 20n);
    expect(stream.farewell).toBe("SESSION_SUPERSEDED");
    expect(replica.nodes.find("n1")?.epoch).toBe(6);
  });

  it("should declare no adopted node while it turns Hellos away", () => {
    const { replica, pass } = bareReplica();
    replica.adopt([adopted(1)], 20n);
    pass(59_000);
    replica.detector.turnedAway(undefined, 5_000);
    pass(2_000);
    expect(replica.nodes.find("n1")?.health.state).toBe("HEALTHY");
    // The node's grace period has restarted.
    pass(58_000);
    expect(replica.nodes.find("n1")?.health.state).toBe("HEALTHY");
    pass(2_000);
    expect(replica.nodes.find("n1")?.health.state).toBe("UNHEALTHY");
  });
});

describe("Replica.close()", () => {
  it("should declare no node from then on, with or without the lease", () => {
    const { replica, pass, changed } = bareReplica();
    const stream = new BareStream();
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
