import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { GoAwayAction } from "@rollcall/api/rollcall/health/v1/health_pb";
import { createTestDatabase, eventually, FakeAgents, type FakeStream, type TestDatabase } from "@rollcall/testkit";
import { recordOf, register, statesOf } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterEach(async () => {
  agents.close();
  await replicas.close();
});

afterAll(() => database.drop());

async function joined(nodeId: string, at: TestReplica) {
  const agent = agents.create(nodeId);
  await register(database.store, [agent]);
  return agent.join(at.address);
}

/**
 * Number of beats whose Acks together exceed the 64 KiB that Node.js buffers before it reports that a peer is behind.
 */
const BEATS = 12_000;

describe("AgentStream, as time passes", () => {
  let timed: TestReplica;

  beforeEach(async () => {
    timed = await replicas.start({ store: await database.openStore() });
  });

  it("should end a stream without a frame for 10 s", async () => {
    const stream = agents.create("mute").open(timed.address);
    await stream.nextOf("challenge");
    await timed.pass(9_900);
    expect(stream.ended).toBeUndefined();
    await timed.pass(300);
    const { goAway, error } = await stream.end();
    expect(error?.reason).toBe("DEADLINE_EXCEEDED");
    expect(goAway?.action).toBe(GoAwayAction.RECONNECT);
  });

  it("should treat a Goodbye as an intentional end", async () => {
    const stream = await joined("goodbye", timed);
    await stream.beatAcknowledged();
    stream.send({ case: "goodbye", value: { reason: "maintenance\0" } });
    expect((await stream.end()).code).toBe(0);
    await eventually(async () => {
      expect(await statesOf(database.store, "goodbye")).toEqual([
        "DISCONNECTED AGENT_SHUTDOWN",
        "UNHEALTHY AGENT_SHUTDOWN",
      ]);
    });
    const record = await recordOf(database.store, "goodbye");
    expect(record.detectedHealth.message).toBe("its agent shut down: maintenance\uFFFD");
    await timed.pass(8_800);
    expect(timed.app.replica.nodes.find("goodbye")?.health.state).toBe("UNHEALTHY");
    await timed.pass(300);
    await eventually(async () => {
      expect((await statesOf(database.store, "goodbye"))[1]).toBe("UNKNOWN HEARTBEATS_MISSED");
    });
  });

  it("should drop a peer that does not read", async () => {
    const config = {
      "Orchestrator.NodeManager.DisconnectTimeout": 60_000,
      "Orchestrator.NodeManager.UnknownTimeout": 300_000,
    };
    const patient = await replicas.start({ store: await database.openStore(), config });
    const stream = await unread("slow", patient);
    const held = () => patient.app.replica.nodes.find("slow");
    await patient.pass(9_900);
    const before = patient.app.replica.beats;
    stream.beat();
    await eventually(() => expect(patient.app.replica.beats).toBe(before + 1));
    expect(held()?.stream).not.toBeNull();
    await patient.pass(200);
    stream.beat();
    await eventually(() => expect(held()?.stream).toBeNull());
    stream.resume();
    expect((await stream.end()).error?.reason).toBe("PEER_TOO_SLOW");
  });

  it("should send one Ack for all Beats that a slow peer has missed", async () => {
    const stream = await unread("behind", timed);
    const received = stream.pending.length;
    stream.resume();
    let acks = 0;
    let sequence = 0;
    for (; sequence < stream.sequence; acks++) ({ sequence } = await stream.nextOf("ack"));
    expect(acks + received).toBeLessThan((BEATS * 2) / 3);
  });

  /** Open an agent's stream and leave Acks unread until no further frame can be sent to it. */
  async function unread(nodeId: string, at: TestReplica): Promise<FakeStream> {
    const agent = agents.create(nodeId);
    await register(database.store, [agent]);
    const stream = agent.open(at.address, { "grpc-node.flow_control_window": 1_000 });
    await stream.hello();
    await stream.nextOf("welcome");
    stream.pause();
    const before = at.app.replica.beats;
    for (let beats = 0; beats < BEATS; beats++) stream.beat();
    await eventually(() => expect(at.app.replica.beats - before).toBe(BEATS));
    return stream;
  }
});
