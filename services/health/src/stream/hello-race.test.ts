import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { GoAwayAction } from "@rollcall/api/rollcall/health/v1/health_pb";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { keyFingerprint } from "@rollcall/identity";
import { insertNode } from "@rollcall/store";
import { createTestDatabase, eventually, FakeAgents, saveKey, type TestDatabase, until } from "@rollcall/testkit";
import { captureLog } from "@rollcall/testkit/log-capture";
import { LOST_ANSWER, type MeddledStore, meddle } from "../testing/meddled-store.ts";
import { command, recordOf, register, statesOf } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let meddled: MeddledStore;
let replica: TestReplica;
let nodes = 0;

beforeAll(async () => {
  database = await createTestDatabase();
});

beforeEach(async () => {
  meddled = meddle(await database.openStore());
  replica = await replicas.start({ store: meddled.store });
});

afterEach(async () => {
  agents.close();
  await replicas.close();
});

afterAll(() => database.drop());

async function newAgent(state: "APPROVED" | "PENDING" = "APPROVED") {
  nodes += 1;
  const agent = agents.create(`racer${nodes}`);
  await register(database.store, [agent], state);
  return agent;
}

describe("events while a session is being opened", () => {
  it("should reach the agent instead of the Welcome when it is a rejection", async () => {
    const agent = await newAgent();
    meddled.afterCommit(async () => {
      await command(database.store, agent.nodeId, "reject", "just now");
      await replica.caughtUp();
    });
    const stream = agent.open(replica.address);
    await stream.hello();
    const { goAway, error } = await stream.end();
    expect(error?.reason).toBe("NODE_REJECTED");
    expect(goAway?.message).toBe("node has been rejected: just now");
    expect(stream.pending.map(({ frame }) => frame.case)).toEqual(["goAway"]);
    await eventually(async () => {
      expect((await statesOf(database.store, agent.nodeId))[0]).toBe("DISCONNECTED NODE_REJECTED");
    });
  });

  it("should reach the agent soon after the Welcome when the log is read late", async () => {
    const agent = await newAgent();
    meddled.afterCommit(() => command(database.store, agent.nodeId, "reject", "unread"));
    const stream = agent.open(replica.address);
    await stream.hello();
    expect((await stream.end()).error?.reason).toBe("NODE_REJECTED");
  });

  it("should reach the agent instead of the Welcome when it is a deletion", async () => {
    const agent = await newAgent();
    meddled.afterCommit(async () => {
      await command(database.store, agent.nodeId, "delete");
      await replica.caughtUp();
    });
    const stream = agent.open(replica.address);
    await stream.hello();
    const { goAway, error } = await stream.end();
    expect(error?.reason).toBe("NODE_DELETED");
    expect(goAway?.action).toBe(GoAwayAction.STOP);
    expect(replica.app.replica.nodes.find(agent.nodeId)).toBeUndefined();
  });

  it("should be in the Welcome when it is an approval", async () => {
    const agent = await newAgent("PENDING");
    meddled.afterCommit(async () => {
      await command(database.store, agent.nodeId, "approve", "in time");
      await replica.caughtUp();
    });
    const { welcome, pending } = await agent.join(replica.address);
    expect(welcome.membership).toMatchObject({
      state: MembershipState.APPROVED,
      message: "in time",
    });
    expect(pending).toEqual([]);
  });

  it("should leave no node connected whose stream breaks before its Welcome", async () => {
    const { log, lines } = captureLog();
    const watched = await replicas.start({ store: meddled.store, log });
    const agent = await newAgent();
    const stream = agent.open(watched.address);
    meddled.afterCommit(async () => {
      expect((await statesOf(database.store, agent.nodeId))[0]).toBe("CONNECTED STREAM_OPENED");
      stream.cancel();
      await until("the end of the stream", () => lines.some(({ msg }) => msg === "stream closed without a session"));
    });
    await stream.hello();
    await eventually(async () => {
      expect((await statesOf(database.store, agent.nodeId))[0]).toBe("DISCONNECTED STREAM_BROKEN");
    });
    expect(watched.app.replica.nodes.find(agent.nodeId)?.stream).toBeNull();
    expect(watched.app.replica.nodes.sessions).toBe(0);
  });

  it("should leave the node with another replica that took it in the meantime", async () => {
    const other = await replicas.start({ store: await database.openStore() });
    const agent = await newAgent();
    meddled.afterCommit(async () => {
      await agent.join(other.address);
      await replica.caughtUp();
    });
    const stream = agent.open(replica.address);
    await stream.hello();
    expect((await stream.end()).error?.reason).toBe("SESSION_SUPERSEDED");
    expect(replica.app.replica.nodes.find(agent.nodeId)).toBeUndefined();
    expect((await recordOf(database.store, agent.nodeId)).session.replicaId).toBe(other.instance);
  });

  it("should not open a stream for the key of a deleted node that is now another machine", async () => {
    const agent = await newAgent();
    const { nodeId } = agent;
    const successor = agents.create(nodeId);
    meddled.afterCommit(async () => {
      await command(database.store, nodeId, "delete");
      await database.store.transaction(async (tx) => {
        const { publicKey } = successor;
        const membership = {
          state: "APPROVED",
          sinceMs: 0,
          reason: "T",
          message: "",
          actor: "t",
        } as const;
        await insertNode(tx, { id: nodeId, type: "COMPUTE", membership });
        await saveKey(tx, { nodeId, publicKey, fingerprint: keyFingerprint(publicKey) });
      });
    });
    const stream = agent.open(replica.address);
    await stream.hello();
    expect((await stream.end()).error?.reason).toBe("PROOF_INVALID");
    await (await successor.join(replica.address)).beatAcknowledged();
  });
});

describe("a lost response of the store", () => {
  it("should leave no node CONNECTED without an owner", async () => {
    const agent = await newAgent();
    meddled.afterCommit(async () => {
      throw LOST_ANSWER;
    });
    const stream = agent.open(replica.address);
    await stream.hello();
    const { error } = await stream.end();
    expect(error?.reason).toBe("STORE_UNAVAILABLE");
    expect(await statesOf(database.store, agent.nodeId)).toEqual([
      "CONNECTED STREAM_OPENED",
      "UNKNOWN NEVER_CONNECTED",
    ]);
    await eventually(async () => {
      await replica.pass(2_000);
      expect((await statesOf(database.store, agent.nodeId))[0]).toBe("DISCONNECTED STREAM_BROKEN");
    });
    expect(replica.app.replica.nodes.find(agent.nodeId)?.epoch).toBe(1);
    const { welcome } = await agent.join(replica.address);
    expect(welcome.sessionEpoch).toBe(2n);
  });

  it("should keep the session of a connected node that was opened last", async () => {
    const agent = await newAgent();
    const older = await agent.join(replica.address);
    await older.beatAcknowledged();
    await eventually(async () => {
      expect((await statesOf(database.store, agent.nodeId))[1]).toMatch(/^HEALTHY/);
    });
    meddled.afterCommit(async () => {
      throw LOST_ANSWER;
    });
    const newer = agent.open(replica.address);
    await newer.hello();
    expect((await newer.end()).error?.reason).toBe("STORE_UNAVAILABLE");
    // The store assigned a newer epoch that no session uses. It fences the older stream, so its agent has to reconnect.
    await eventually(async () => {
      await replica.pass(500);
      expect(older.ended?.error?.reason).toBe("SESSION_SUPERSEDED");
    });
    await (await agent.join(replica.address)).beatAcknowledged();
    await eventually(async () => {
      expect(await statesOf(database.store, agent.nodeId)).toEqual([
        "CONNECTED STREAM_OPENED",
        "HEALTHY HEARTBEAT_RECEIVED",
      ]);
    });
  });

  it("should leave no node lost in the store that came back before the write of its loss was confirmed", async () => {
    const agent = await newAgent();
    const states = () => statesOf(database.store, agent.nodeId);
    const older = await agent.join(replica.address);
    await older.beatAcknowledged();
    await eventually(async () => expect((await states())[1]).toMatch(/^HEALTHY/));
    // Only the replica knows that the node fell silent; the store does not.
    meddled.refuseTransitions(true);
    await eventually(async () => {
      await replica.pass(1_000);
      const { health } = replica.app.replica.nodes.find(agent.nodeId) ?? {};
      expect(health?.state).toBe("UNHEALTHY");
    });
    const newer = await agent.join(replica.address);
    const seen: (string | undefined)[] = [];
    meddled.afterCommit(async () => {
      seen.push((await states())[1]);
      await newer.beatAcknowledged();
      throw LOST_ANSWER;
    }, "transition");
    meddled.refuseTransitions(false);
    await eventually(async () => {
      await replica.pass(100);
      expect(seen).toEqual(["UNHEALTHY HEARTBEATS_MISSED"]);
    });
    await eventually(async () => {
      await replica.pass(100);
      expect(await states()).toEqual(["CONNECTED STREAM_OPENED", "HEALTHY HEARTBEAT_RECEIVED"]);
    });
  });
});
