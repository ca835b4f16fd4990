import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { GoAwayAction, HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  type AgentFrame,
  createTestDatabase,
  eventually,
  FakeAgents,
  type FakeStream,
  type TestDatabase,
} from "@rollcall/testkit";
import { command, eventsOf, recordOf, register, statesOf } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";

const agents = new FakeAgents();
const replicas = new TestReplicas();
let database: TestDatabase;
let replica: TestReplica;
/** Another agent's stream, which must not be disturbed. */
let witness: FakeStream;

beforeAll(async () => {
  database = await createTestDatabase();
  replica = await replicas.start({ store: database.store });
  witness = await joined("witness", new FakeAgents());
});

afterEach(async () => {
  agents.close();
  await witness.beatAcknowledged();
});

afterAll(async () => {
  await replicas.close();
  await database.drop();
});

async function joined(nodeId: string, from = agents, at = replica) {
  const agent = from.create(nodeId);
  await register(database.store, [agent]);
  return agent.join(at.address);
}

/** Return a frame of more than 64 KiB, most of it in a field that this server does not know. */
function padded(frame: AgentFrame): Uint8Array {
  const bytes = toBinary(HeartbeatRequestSchema, create(HeartbeatRequestSchema, { frame }));
  const writer = new BinaryWriter().tag(100, WireType.LengthDelimited);
  return Buffer.concat([bytes, writer.bytes(new Uint8Array(70_000)).finish()]);
}

describe("AgentStream", () => {
  it("should acknowledge each Beat by its sequence", async () => {
    const stream = await joined("beats");
    for (const sequence of [1, 2, 7, 4_294_967_295]) {
      stream.send({ case: "beat", value: { sequence } });
      expect((await stream.nextOf("ack")).sequence).toBe(sequence);
    }
  });

  it.each([
    ["Beat", { case: "beat", value: { sequence: 1_000 } }],
    ["NodeInfo", { case: "nodeInfo", value: { hostname: "large" } }],
  ] as const)("should refuse a %s above 64 KiB", async (name, frame) => {
    const stream = await joined(`large-${name}`);
    await stream.beatAcknowledged();
    stream.sendBytes(padded(frame));
    expect((await stream.end()).error?.reason).toBe("MESSAGE_TOO_LARGE");
  });

  it("should report which limit a frame exceeds", async () => {
    const stream = await joined("overfull");
    // A list of twenty thousand empty GPUs.
    const gpus = Buffer.alloc(40_000, Buffer.from([(9 << 3) | 2, 0]));
    stream.sendBytes(new BinaryWriter().tag(3, WireType.LengthDelimited).bytes(gpus).finish());
    const { error } = await stream.end();
    expect([error?.reason, error?.message]).toEqual(["MESSAGE_TOO_LARGE", expect.stringContaining("more fields")]);
    const larger = await joined("larger");
    larger.sendBytes(padded({ case: "beat", value: { sequence: 1_000 } }));
    expect((await larger.end()).error?.message).toContain("64 KiB");
  });

  it("should acknowledge the highest sequence when an older Beat comes again", async () => {
    const stream = await joined("again");
    const before = replica.app.replica.beats;
    for (const sequence of [5, 5, 3]) stream.send({ case: "beat", value: { sequence } });
    for (const _ of [1, 2, 3]) expect((await stream.nextOf("ack")).sequence).toBe(5);
    expect(replica.app.replica.beats - before).toBe(1);
  });

  it.each([
    ["a Beat", { case: "beat", value: { sequence: 1 } }],
    ["NodeInfo", { case: "nodeInfo", value: { hostname: "h" } }],
    ["a Goodbye", { case: "goodbye", value: {} }],
  ] as const)("should refuse %s before the Hello", async (_, frame) => {
    const stream = agents.create("early").open(replica.address);
    stream.send(frame);
    const { code, goAway, error } = await stream.end();
    expect(code).toBe(9);
    expect(goAway).toMatchObject({
      reason: ErrorReason.HELLO_REQUIRED,
      action: GoAwayAction.RECONNECT,
    });
    expect(error?.reason).toBe("HELLO_REQUIRED");
  });

  it("should refuse an empty frame before the Hello, and ignore one after it", async () => {
    const early = agents.create("empty").open(replica.address);
    early.sendBytes(new Uint8Array());
    expect((await early.end()).error?.reason).toBe("HELLO_REQUIRED");
    const stream = await joined("newer");
    // Field 99, which an agent newer than this server could send.
    stream.sendBytes(new Uint8Array([0x9a, 0x06, 0x00]));
    await stream.beatAcknowledged();
  });

  it("should refuse a second Hello", async () => {
    const stream = await joined("repeated");
    stream.send({ case: "hello", value: { nodeId: "repeated", signature: new Uint8Array(64) } });
    expect((await stream.end()).error?.reason).toBe("HELLO_REPEATED");
    await eventually(async () => {
      expect((await statesOf(database.store, "repeated"))[0]).toBe("DISCONNECTED STREAM_BROKEN");
    });
  });

  it("should refuse garbage", async () => {
    for (const stream of [await joined("garbage"), agents.create("garbage2").open(replica.address)]) {
      stream.sendBytes(new Uint8Array([0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3]));
      expect((await stream.end()).error?.reason).toBe("MALFORMED_MESSAGE");
    }
    await eventually(async () => {
      expect((await statesOf(database.store, "garbage"))[0]).toBe("DISCONNECTED STREAM_BROKEN");
    });
  });

  it("should survive bytes that are not HTTP/2", async () => {
    const [host, port] = replica.address.split(":");
    const socket = connect(Number(port), host);
    socket.on("error", () => {});
    socket.resume();
    socket.write("GET / HTTP/1.1\r\n\r\nwhatever");
    await eventually(() => expect(socket.closed || socket.readableEnded).toBe(true));
    socket.destroy();
  });

  it("should refuse messages that are too large", async () => {
    const stream = await joined("large");
    stream.sendBytes(new Uint8Array(2_000_000));
    expect((await stream.end()).error?.reason).toBe("MESSAGE_TOO_LARGE");
    const info = await joined("largeinfo");
    const labels = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`k${i}`, "x".repeat(900)]));
    info.send({ case: "nodeInfo", value: { labels } });
    expect((await info.end()).error?.reason).toBe("MESSAGE_TOO_LARGE");
  });

  it.each([
    ["gpus", "gpus", { gpus: Array.from({ length: 257 }, (_, index) => ({ index })) }],
    ["numa-nodes", "numa_nodes", { numaNodes: Array.from({ length: 33 }, (_, id) => ({ id })) }],
  ])("should refuse a sample of more %s than fit", async (nodeId, name, usage) => {
    const stream = await joined(nodeId);
    stream.beat(usage);
    expect((await stream.end()).error).toMatchObject({
      reason: "INVALID_REQUEST",
      violations: [{ field: `beat.usage.${name}` }],
    });
  });

  it("should push an approval as it happens", async () => {
    const agent = agents.create("approved");
    await register(database.store, [agent], "PENDING");
    const stream = await agent.join(replica.address);
    await command(database.store, "approved", "approve", "looks fine");
    expect(await stream.nextOf("membership")).toMatchObject({
      state: MembershipState.APPROVED,
      reason: "OPERATOR_APPROVED",
      message: "looks fine",
      actor: "token:test",
    });
    await stream.beatAcknowledged();
  });

  it("should disconnect a rejected node with the reason", async () => {
    const stream = await joined("cut");
    await command(database.store, "cut", "reject", "retired");
    const { goAway, error } = await stream.end();
    expect(goAway).toMatchObject({
      reason: ErrorReason.NODE_REJECTED,
      message: "node has been rejected: retired",
      action: GoAwayAction.RECONNECT,
    });
    expect(error?.reason).toBe("NODE_REJECTED");
    await eventually(async () => {
      expect((await statesOf(database.store, "cut"))[0]).toBe("DISCONNECTED NODE_REJECTED");
    });
  });

  it("should disconnect a banned node within a second with the reason, and again when it returns", async () => {
    const agent = agents.create("banned");
    await register(database.store, [agent]);
    const stream = await agent.join(replica.address);
    await stream.beatAcknowledged();
    await command(database.store, "banned", "ban", "stolen");
    const { goAway, error } = await stream.end();
    expect(goAway).toMatchObject({
      reason: ErrorReason.NODE_BANNED,
      message: "node banned has been banned: stolen",
      action: GoAwayAction.RECONNECT,
    });
    expect(error?.reason).toBe("NODE_BANNED");
    await eventually(async () => {
      expect((await statesOf(database.store, "banned"))[0]).toBe("DISCONNECTED NODE_BANNED");
    });
    const again = agent.open(replica.address);
    await again.hello();
    expect((await again.end()).goAway?.reason).toBe(ErrorReason.NODE_BANNED);
    await command(database.store, "banned", "unban");
    await replica.caughtUp();
    const lifted = agent.open(replica.address);
    await lifted.hello();
    expect((await lifted.end()).goAway?.reason).toBe(ErrorReason.NODE_REJECTED);
  });

  it("should disconnect a deleted node and tell it to stay away", async () => {
    const stream = await joined("deleted");
    await stream.beatAcknowledged();
    await command(database.store, "deleted", "delete");
    const { goAway, error } = await stream.end();
    expect(goAway).toMatchObject({ reason: ErrorReason.NODE_DELETED, action: GoAwayAction.STOP });
    expect(error?.reason).toBe("NODE_DELETED");
    expect(replica.app.replica.nodes.find("deleted")).toBeUndefined();
  });

  it("should end the stream of a node that deregistered elsewhere", async () => {
    const stream = await joined("left");
    await command(database.store, "left", "deregister");
    expect((await stream.end()).goAway?.action).toBe(GoAwayAction.STOP);
  });

  it("should end cleanly for an agent that half-closes, and show its node as disconnected", async () => {
    const stream = await joined("half");
    await stream.beatAcknowledged();
    stream.halfClose();
    expect((await stream.end()).code).toBe(0);
    await eventually(async () => {
      expect(await statesOf(database.store, "half")).toEqual([
        "DISCONNECTED STREAM_BROKEN",
        "HEALTHY HEARTBEAT_RECEIVED",
      ]);
    });
  });

  it.each([
    ["aborts its call", (stream: FakeStream) => stream.cancel()],
    ["loses its connection", (stream: FakeStream) => stream.breakConnection()],
  ])("should notice an agent at once that %s", async (what, act) => {
    const nodeId = what.replaceAll(" ", "-");
    const stream = await joined(nodeId);
    await stream.beatAcknowledged();
    act(stream);
    await eventually(async () => {
      expect(await statesOf(database.store, nodeId)).toEqual([
        "DISCONNECTED STREAM_BROKEN",
        "HEALTHY HEARTBEAT_RECEIVED",
      ]);
    });
  });

  it("should ignore all frames on a superseded stream", async () => {
    const agent = agents.create("fenced");
    await register(database.store, [agent]);
    const older = await agent.join(replica.address);
    await agent.join(replica.address);
    older.send({ case: "goodbye", value: {} });
    older.send({ case: "nodeInfo", value: { hostname: "old" } });
    await older.end();
    const newer = await agent.join(replica.address);
    await newer.beatAcknowledged();
    await eventually(async () => {
      expect((await statesOf(database.store, "fenced"))[0]).toBe("CONNECTED STREAM_OPENED");
    });
    expect((await recordOf(database.store, "fenced")).info).toBeNull();
    const changes = await eventsOf(database.store, "fenced", ["node.connection.changed"]);
    expect(changes).toHaveLength(1);
  });
});
