import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { FailureLimiter, HelloAdmission, NODE_FAILURE_LIMITS } from "@rollcall/domain";
import { StoreUnavailableError } from "@rollcall/errors";
import { generateKeyPair } from "@rollcall/identity";
import { silentLogger } from "@rollcall/process";
import { FailedAttempts } from "@rollcall/rpc";
import { NO_LABELS, type NodeKeys } from "@rollcall/store";
import { settle } from "@rollcall/testkit/time";
import type { Farewell } from "../replica/farewell.ts";
import type { StoredOpening } from "../replica/health-store.ts";
import type { LiveNode } from "../replica/live-node.ts";
import type { GreetedStream, WelcomeFacts } from "../session/session-host.ts";
import { adopted, BareStream, bareReplica, NO_METRICS, opening } from "../testing/bare-replica.ts";
import { HelloQueue } from "./hello-queue.ts";

const { publicKey } = generateKeyPair();
const KEYS: NodeKeys = { nodeId: "n1", publicKey, fingerprint: "f1", next: null, isRotationRequired: false };

/** A stream whose Hello has arrived. */
class Greeted extends BareStream implements GreetedStream {
  readonly proofMethod = "/test";
  isOpening = true;
  facts: WelcomeFacts | null = null;
  said: Farewell | null = null;

  override leave(farewell: Farewell): void {
    super.leave(farewell);
    this.isOpening = false;
    this.said = farewell;
  }

  welcome(_: LiveNode, facts: WelcomeFacts): void {
    this.isOpening = false;
    this.facts = facts;
  }
}

interface Facts {
  readonly keys?: NodeKeys;
  /** The node's keys in the store after the session is open. */
  readonly keysAfter?: NodeKeys | null;
  readonly opened?: StoredOpening;
  readonly isCollected?: boolean;
  /** Whether the store becomes unavailable after the keys were read. */
  readonly isStoreLost?: boolean;
  /** Whether the signature is valid, of each Hello in turn; the last value holds for all further ones. */
  readonly isSigned?: readonly boolean[];
  readonly gatherMs?: number;
}

/** Create a HelloQueue with a fake store that responds according to `facts`. */
function setUp(facts: Facts = {}) {
  const { keys = KEYS, opened = opening(1), isCollected = false, isSigned = [true], gatherMs = 0 } = facts;
  const { replica, clock, pass } = bareReplica();
  let asked = 0;
  let verified = 0;
  const batches: number[] = [];
  const uncertain: string[] = [];
  const limiter = () => new FailureLimiter({ ...NODE_FAILURE_LIMITS, limits: { perSecond: 1, burst: 2 } });
  const queue = new HelloQueue({
    record: {
      clusterId: () => "c",
      keysOf: async (nodeIds) => {
        asked += 1;
        batches.push(nodeIds.length);
        const known = asked % 2 === 0 && facts.keysAfter !== undefined ? facts.keysAfter : keys;
        return new Map(known === null ? [] : [["n1", known]]);
      },
      labelsOf: async () => new Map([["n1", NO_LABELS]]),
      openSessions: async (hellos) => {
        if (facts.isStoreLost === true) throw new StoreUnavailableError("lost");
        return hellos.map(() => opened);
      },
      collectedAmong: async (ids) => new Set(isCollected ? ids : []),
      currentRevision: async () => 0n,
      caughtUpTo: async () => {},
      writeTransitions: async () => new Set(),
      adoptOrphans: async () => [],
      held: async () => [],
    },
    replica,
    validator: { check: () => {} },
    metrics: NO_METRICS,
    log: silentLogger,
    clock,
    random: () => 0,
    gatherMs,
    failures: new FailedAttempts({ node: limiter(), token: limiter() }, clock),
    admission: new HelloAdmission(100, 0),
    reconnects: { others: 1, all: ["own:1", "other:1"], windowMs: () => 0 },
    onUncertain: (nodeIds) => void uncertain.push(...nodeIds),
    policiesKnown: async () => {},
    isSigned: () => isSigned[Math.min(verified++, isSigned.length - 1)] === true,
  });
  const hello = async (digest = "") => {
    const stream = new Greeted();
    const nodeInfoDigest = Buffer.from(digest, "hex");
    queue.submit(stream, create(HelloSchema, { nodeId: "n1", nodeInfoDigest }), new Uint8Array(32));
    await settle();
    return stream;
  };
  return { queue, replica, clock, pass, batches, hello, uncertain };
}

describe("HelloQueue", () => {
  it("should include in the Welcome all replicas' addresses, and whether the store lacks the report", async () => {
    const { hello } = setUp({ opened: opening(1, { infoDigest: "abcd" }) });
    expect((await hello("abcd")).facts).toMatchObject({
      healthEndpoints: ["own:1", "other:1"],
      nodeInfoWanted: false,
      clusterId: "c",
      settings: { rotateKeyWithinMs: null },
    });
    expect((await hello("abce")).facts?.nodeInfoWanted).toBe(true);
  });

  it("should include in the Welcome when the node must rotate its key", async () => {
    const { hello } = setUp({ keysAfter: { ...KEYS, isRotationRequired: true } });
    expect((await hello()).facts?.settings.rotateKeyWithinMs).toBe(0);
  });

  it("should tell a garbage-collected node to register again, and a deleted one to stop", async () => {
    const opened = { outcome: "UNKNOWN_NODE", nodeId: "n1", revision: 1n } as const;
    const collected = await setUp({ opened, isCollected: true }).hello();
    expect(collected.said).toMatchObject({ reason: "NODE_NOT_REGISTERED", action: "REGISTER" });
    const removed = await setUp({ opened }).hello();
    expect(removed.said).toMatchObject({ reason: "NODE_DELETED", action: "STOP" });
    const gone = await setUp({ keysAfter: null }).hello();
    expect(gone.said).toMatchObject({ reason: "NODE_DELETED" });
  });

  it("should look up again a session that it opened for a retired key", async () => {
    const { hello, uncertain } = setUp({ keysAfter: { ...KEYS, fingerprint: "f2" } });
    expect((await hello()).said?.reason).toBe("PROOF_INVALID");
    expect(uncertain).toEqual(["n1"]);
  });

  it("should refuse more attempts from an address after too many bad proofs", async () => {
    const { hello } = setUp({ isSigned: [false] });
    expect((await hello()).said?.reason).toBe("PROOF_INVALID");
    expect((await hello()).said?.reason).toBe("PROOF_INVALID");
    await expect(hello()).rejects.toMatchObject({ message: expect.stringContaining("too many failed attempts") });
  });

  it("should charge a bad proof to its address even while it turns every agent away", async () => {
    const { hello, queue, replica, clock } = setUp({ isSigned: [true, false] });
    expect((await hello()).facts).not.toBeNull();
    replica.leaseDoubted(clock.nowMs());
    for (const peer of ["10.0.0.9:1", "10.0.0.9:2"]) {
      const stream = new Greeted(peer);
      queue.submit(stream, create(HelloSchema, { nodeId: "n1" }), new Uint8Array(32));
      await settle();
      expect(stream.said?.reason).toBe("STORE_UNAVAILABLE");
    }
    const third = create(HelloSchema, { nodeId: "n1" });
    expect(() => queue.submit(new Greeted("10.0.0.9:3"), third, new Uint8Array(32))).toThrow(
      "too many failed attempts from this address",
    );
    expect((await hello()).said?.reason).toBe("STORE_UNAVAILABLE");
  });

  it("should welcome the newer of two simultaneous Hellos of one node, and refuse the older one", async () => {
    const { queue, replica } = setUp();
    const streams = [new Greeted(), new Greeted(), new Greeted()];
    for (const stream of streams) queue.submit(stream, create(HelloSchema, { nodeId: "n1" }), new Uint8Array(32));
    for (let turn = 0; turn < 4; turn += 1) await settle();
    const [first, second, third] = streams;
    expect([first?.farewell, second?.farewell]).toEqual(["SESSION_SUPERSEDED", "SESSION_SUPERSEDED"]);
    expect(third?.facts).not.toBeNull();
    expect(replica.nodes.sessions).toBe(1);
  });

  it.each([
    ["extend", true, 50_000],
    ["not extend", false, 9_000],
  ])("should %s an adopted node's deadline when the store is lost, valid proof: %s", async (_, isSigned, healthyMs) => {
    const { hello, replica, pass } = setUp({ isStoreLost: true, isSigned: [isSigned] });
    replica.adopt([adopted(1)], 20n);
    pass(50_000);
    expect((await hello()).said?.reason).toBe(isSigned ? "STORE_UNAVAILABLE" : "PROOF_INVALID");
    pass(healthyMs);
    expect(replica.nodes.find("n1")?.health.state).toBe("HEALTHY");
    pass(12_000);
    expect(replica.nodes.find("n1")?.health.state).toBe("UNHEALTHY");
  });

  it("should welcome no agent during shutdown, and leave its session to the next replica", async () => {
    const { queue, replica } = setUp();
    const stream = new Greeted();
    queue.submit(stream, create(HelloSchema, { nodeId: "n1" }), new Uint8Array(32));
    replica.drain();
    await settle();
    expect(stream.said).toMatchObject({ reason: "SERVER_SHUTTING_DOWN", action: "RECONNECT" });
    expect(replica.nodes.size).toBe(0);
  });

  it("should wait longer the more Hellos arrive, and not delay a single one", async () => {
    const { queue, clock, batches } = setUp({ gatherMs: 100 });
    let next = 0;
    const come = async (hellos: number, afterMs: number) => {
      for (let hello = 0; hello < hellos; hello += 1) {
        next += 1;
        queue.submit(new Greeted(), create(HelloSchema, { nodeId: `unknown-${next}` }), new Uint8Array(32));
      }
      await clock.pass(afterMs);
    };
    await come(1, 0);
    await come(1, 99);
    expect(batches).toEqual([1]);
    await come(1, 1);
    expect(batches).toEqual([1, 2]);
    await come(9, 199);
    expect(batches).toEqual([1, 2]);
    await come(1, 1);
    expect(batches).toEqual([1, 2, 10]);
    await come(10, 499);
    expect(batches).toEqual([1, 2, 10]);
    await come(10, 1);
    expect(batches).toEqual([1, 2, 10, 20]);
    await come(50, 0);
    expect(batches).toEqual([1, 2, 10, 20, 50]);
  });
});
