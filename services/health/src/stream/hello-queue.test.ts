import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { GoAwayAction, type HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { MembershipState, NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { generateKeyPair } from "@rollcall/identity";
import { createTestDatabase, eventually, FakeAgent, FakeAgents, type TestDatabase } from "@rollcall/testkit";
import { nodeInfoDigest } from "@rollcall/wire";
import { command, eventsOf, recordOf, register, statesOf } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let replica: TestReplica;

beforeAll(async () => {
  database = await createTestDatabase();
  replica = await replicas.start({ store: database.store });
});

afterEach(() => agents.close());

afterAll(async () => {
  await replicas.close();
  await database.drop();
});

/** Send a Hello that will be refused. Returns how the stream ends. */
async function refusedHello(agent: FakeAgent, hello: MessageInitShape<typeof HelloSchema> = {}) {
  const stream = agent.open(replica.address);
  await stream.hello(hello);
  return stream.end();
}

describe("Hello", () => {
  it("should open a session and welcome the agent", async () => {
    const agent = agents.create("welcomed");
    await register(database.store, [agent]);
    const { welcome } = await agent.join(replica.address);
    expect(welcome).toMatchObject({
      sessionEpoch: 1n,
      clusterId: database.store.clusterId(),
      nodeInfoWanted: true,
    });
    expect(welcome.membership?.state).toBe(MembershipState.APPROVED);
    expect(welcome.settings?.heartbeatInterval).toEqual(durationFromMs(1_000));
    expect(welcome.settings?.infoInterval).toEqual(durationFromMs(60_000));
    expect(welcome.settings?.unhealthyAfter).toEqual(durationFromMs(3_000));
    const record = await recordOf(database.store, "welcomed");
    expect(record.session).toMatchObject({ epoch: 1, replicaId: replica.instance });
    // A Welcome does not make a node healthy.
    expect(await statesOf(database.store, "welcomed")).toEqual(["CONNECTED STREAM_OPENED", "UNKNOWN NEVER_CONNECTED"]);
    expect((await eventsOf(database.store, "welcomed")).map(({ type }) => type)).toEqual(["node.connection.changed"]);
  });

  it("should refuse a stored key that anyone can sign for", async () => {
    const agent = agents.create("weak");
    const neutral = new Uint8Array(32);
    neutral[0] = 1;
    await register(database.store, [{ nodeId: "weak", publicKey: neutral }]);
    const signature = new Uint8Array(64);
    signature[0] = 1;
    const { error } = await refusedHello(agent, { signature });
    expect(error).toMatchObject({ reason: "PROOF_INVALID", metadata: { node: "weak" } });
  });

  it("should welcome a node that is pending approval", async () => {
    const agent = agents.create("pending");
    await register(database.store, [agent], "PENDING");
    const { welcome } = await agent.join(replica.address);
    expect(welcome.membership?.state).toBe(MembershipState.PENDING);
  });

  it.each([
    ["a wish to beat less often, as far as the threshold allows", 60_000, 1_000],
    ["no wish to beat more often", 10, 1_000],
    ["a wish that makes no sense", -5_000, 1_000],
  ])("should answer %s", async (_, wishedMs, grantedMs) => {
    const agent = agents.create(`wish${wishedMs}`.replace("-", "m"));
    await register(database.store, [agent]);
    const { welcome } = await agent.join(replica.address, {
      wishedHeartbeatInterval: durationFromMs(wishedMs),
    });
    expect(welcome.settings?.heartbeatInterval).toEqual(durationFromMs(grantedMs));
  });

  it("should refuse a Hello that another key signed", async () => {
    const agent = agents.create("stolen");
    await register(database.store, [agent]);
    const thief = new FakeAgent({ nodeId: "stolen", keyPair: generateKeyPair() });
    const { goAway, error } = await refusedHello(thief);
    expect(goAway).toMatchObject({
      reason: ErrorReason.PROOF_INVALID,
      action: GoAwayAction.REGISTER,
    });
    expect(error).toMatchObject({ reason: "PROOF_INVALID", metadata: { node: "stolen" } });
    expect((await recordOf(database.store, "stolen")).session.epoch).toBe(0);
  });

  it("should refuse a proof that was made for another stream", async () => {
    const agent = agents.create("replayed");
    await register(database.store, [agent]);
    const first = agent.open(replica.address);
    const signature = agent.sign(await first.nextOf("challenge"));
    const { error } = await refusedHello(agent, { signature });
    expect(error?.reason).toBe("PROOF_INVALID");
  });

  it("should refuse a proof that was made for another method", async () => {
    const agent = agents.create("method");
    await register(database.store, [agent]);
    const stream = agent.open(replica.address);
    const { clusterId } = await stream.nextOf("challenge");
    const other = await agent.open(replica.address).nextOf("challenge");
    const value = { nodeId: "method", signature: agent.sign({ clusterId, nonce: other.nonce }) };
    stream.send({ case: "hello", value });
    expect((await stream.end()).error?.reason).toBe("PROOF_INVALID");
  });

  it("should send a node that is not registered to the registry", async () => {
    const { goAway, error } = await refusedHello(agents.create("nobody"));
    expect(goAway).toMatchObject({
      reason: ErrorReason.NODE_NOT_REGISTERED,
      action: GoAwayAction.REGISTER,
      logId: "",
    });
    expect(error).toMatchObject({ reason: "NODE_NOT_REGISTERED", metadata: { node: "nobody" } });
  });

  it("should send a rejected node the reason, and tell it to retry soon", async () => {
    const agent = agents.create("rejected");
    await register(database.store, [agent], "PENDING");
    await command(database.store, "rejected", "reject", "wrong rack");
    const { goAway, error } = await refusedHello(agent);
    expect(goAway).toMatchObject({
      reason: ErrorReason.NODE_REJECTED,
      message: "node has been rejected: wrong rack",
      action: GoAwayAction.RECONNECT,
      // From the log's id, the node determines which of its executions have ended.
      logId: database.store.logId(),
    });
    const retryAfterMs = goAway?.retryAfter === undefined ? 0 : durationMs(goAway.retryAfter);
    expect(retryAfterMs).toBeGreaterThanOrEqual(10_000);
    // The agent adds at most a quarter, so it waits at most 20 s.
    expect(retryAfterMs).toBeLessThanOrEqual(16_000);
    expect(error).toMatchObject({ reason: "NODE_REJECTED", retryAfterMs });
    expect((await recordOf(database.store, "rejected")).session.epoch).toBe(0);
  });

  it("should tell a node that was rejected long ago to retry within two minutes", async () => {
    const agent = agents.create("outcast");
    await register(database.store, [agent], "PENDING");
    await command(database.store, "outcast", "reject");
    await database.store.db
      .updateTable("nodes")
      .set({ membership_since: new Date(replica.clock.wallMs() - 86_400_000) })
      .where("id", "=", "outcast")
      .execute();
    const { error } = await refusedHello(agent);
    expect(error?.retryAfterMs).toBeGreaterThanOrEqual(60_000);
    expect(error?.retryAfterMs).toBeLessThanOrEqual(96_000);
  });

  it("should admit a rejected node once it is approved", async () => {
    const agent = agents.create("forgiven");
    await register(database.store, [agent], "REJECTED");
    expect((await refusedHello(agent)).error?.reason).toBe("NODE_REJECTED");
    await command(database.store, "forgiven", "approve");
    await replica.caughtUp();
    const { welcome } = await agent.join(replica.address);
    expect(welcome.membership?.state).toBe(MembershipState.APPROVED);
  });

  it.each([
    ["an empty id", { nodeId: "" }, "INVALID_NODE_ID"],
    ["an id with a line break", { nodeId: "a\nb" }, "INVALID_NODE_ID"],
    ["an id that is too long", { nodeId: "x".repeat(257) }, "INVALID_REQUEST"],
    ["no signature", { signature: new Uint8Array() }, "INVALID_REQUEST"],
    ["a long boot id", { bootId: "x".repeat(129) }, "INVALID_REQUEST"],
  ])("should refuse %s and name the invalid field", async (_, hello, reason) => {
    const agent = agents.create("invalid");
    const { error } = await refusedHello(agent, hello);
    expect(error?.reason).toBe(reason);
    expect(error?.violations).toHaveLength(1);
  });

  it("should not let one node's invalid texts fail the others of its batch", async () => {
    const crowd = Array.from({ length: 20 }, (_, index) => agents.create(`crowd${index}`));
    const odd = agents.create("crowd-odd");
    await register(database.store, [...crowd, odd]);
    const [refusal, ...streams] = await Promise.all([
      refusedHello(odd, { bootId: "\0", machineFingerprint: "a\0b" }),
      ...crowd.map((agent) => agent.join(replica.address)),
    ]);
    expect(refusal.error?.violations.map(({ field }) => field)).toEqual(["boot_id", "machine_fingerprint"]);
    expect(streams.map(({ welcome }) => welcome.sessionEpoch)).toEqual(crowd.map(() => 1n));
  });

  it("should ask for information only if the store lacks it", async () => {
    const agent = agents.create("informed");
    await register(database.store, [agent]);
    const info = create(NodeInfoSchema, { hostname: "h1", cpu: { threads: 8 } });
    const nodeInfoDigestBytes = nodeInfoDigest(info);
    const first = await agent.join(replica.address, { nodeInfoDigest: nodeInfoDigestBytes });
    expect(first.welcome.nodeInfoWanted).toBe(true);
    first.send({ case: "nodeInfo", value: info });
    await eventually(async () => {
      expect((await recordOf(database.store, "informed")).summary.cores).toBe(8);
    });
    const second = await agent.join(replica.address, { nodeInfoDigest: nodeInfoDigestBytes });
    expect(second.welcome.nodeInfoWanted).toBe(false);
    const changed = await agent.join(replica.address, { nodeInfoDigest: new Uint8Array(32) });
    expect(changed.welcome.nodeInfoWanted).toBe(true);
  });

  it("should admit a storm of agents, each once", async () => {
    const storm = Array.from({ length: 300 }, (_, index) => agents.create(`storm${index}`));
    await register(database.store, storm);
    await Promise.all(storm.map((agent) => agent.join(replica.address)));
    const records = await Promise.all(storm.map((it) => recordOf(database.store, it.nodeId)));
    expect(new Set(records.map(({ session }) => session.epoch))).toEqual(new Set([1]));
  });

  it("should end the older of two streams when a newer one of the same node is welcomed", async () => {
    const agent = agents.create("twin");
    await register(database.store, [agent]);
    const older = await agent.join(replica.address);
    await older.beatAcknowledged();
    const newer = await agent.join(replica.address);
    expect(newer.welcome.sessionEpoch).toBe(2n);
    const { goAway, error } = await older.end();
    expect(goAway?.reason).toBe(ErrorReason.SESSION_SUPERSEDED);
    expect(error?.reason).toBe("SESSION_SUPERSEDED");
    expect(error?.retryAfterMs).toBeGreaterThanOrEqual(30_000);
    await newer.beatAcknowledged();
    // The node was never without a stream.
    const changes = await eventsOf(database.store, "twin", ["node.connection.changed"]);
    expect(changes).toHaveLength(1);
  });

  it("should keep one of many simultaneous streams of one node", async () => {
    const agent = agents.create("crowded");
    await register(database.store, [agent]);
    const streams = Array.from({ length: 10 }, () => agent.open(replica.address));
    await Promise.all(streams.map((stream) => stream.hello()));
    await eventually(() => {
      expect(streams.filter(({ ended }) => ended === undefined)).toHaveLength(1);
    });
    const [left] = streams.filter(({ ended }) => ended === undefined);
    await left?.nextOf("welcome");
    await left?.beatAcknowledged();
    const ends = await Promise.all(streams.filter((it) => it !== left).map((it) => it.end()));
    expect(new Set(ends.map(({ error }) => error?.reason))).toEqual(new Set(["SESSION_SUPERSEDED"]));
    expect(replica.app.replica.nodes.find("crowded")?.epoch).toBe(
      (await recordOf(database.store, "crowded")).session.epoch,
    );
  });

  it("should disconnect a node whose agent has gone before its Welcome", async () => {
    const agent = agents.create("hasty");
    await register(database.store, [agent]);
    const stream = agent.open(replica.address);
    await stream.hello();
    stream.cancel();
    // Either nothing was written because the agent was gone, or the write is corrected.
    await eventually(async () => {
      expect(replica.app.replica.nodes.find("hasty")?.stream ?? null).toBeNull();
      const [connection] = await statesOf(database.store, "hasty");
      expect(connection).toMatch(/^DISCONNECTED/);
    });
  });

  it("should count their outcomes", async () => {
    expect(await replica.metric('rollcall_health_hellos_total{outcome="welcomed"}')).toBeGreaterThan(300);
    expect(await replica.metric('rollcall_health_hellos_total{outcome="refused"}')).toBeGreaterThan(4);
    expect(await replica.metric("rollcall_health_hello_queue")).toBe(0);
  });
});
