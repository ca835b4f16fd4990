import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { LabelTier, NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type Label, labelsEvent } from "@rollcall/domain";
import {
  createTestDatabase,
  eventually,
  FakeAgents,
  type FakeStream,
  type ManualClock,
  saveLabels,
  type TestDatabase,
} from "@rollcall/testkit";
import { nodeInfoToRow } from "@rollcall/wire";
import { command, eventsOf, recordOf, register } from "../testing/record.ts";
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

async function joined(nodeId: string): Promise<FakeStream> {
  const agent = agents.create(nodeId);
  await register(database.store, [agent]);
  return agent.join(replica.address);
}

const say = (stream: FakeStream, value: MessageInitShape<typeof NodeInfoSchema>) =>
  stream.send({ case: "nodeInfo", value });

/** Each list and each string is within its limit, but the whole report is too large. */
const LARGE = {
  numaNodes: Array.from({ length: 128 }, () => ({ distances: Array(128).fill(100) })),
};

const INFO_EVENTS = ["node.info.changed", "node.labels.changed"] as const;

describe("NodeInfo", () => {
  it("should be written with its events only when it has changed", async () => {
    const stream = await joined("facts");
    say(stream, { hostname: "h1", cpu: { threads: 4 }, memoryBytes: 8n, labels: { zone: "a" } });
    await eventually(async () => {
      const record = await recordOf(database.store, "facts");
      expect(record.summary).toMatchObject({ cores: 4, memoryBytes: 8 });
      expect(record.labels).toEqual([{ key: "zone", value: "a", tier: "agent" }]);
    });
    const [info, labels] = await eventsOf(database.store, "facts", INFO_EVENTS);
    expect(info).toMatchObject({ type: "node.info.changed", actor: "node:facts" });
    expect(labels).toMatchObject({
      type: "node.labels.changed",
      before: { labels: {} },
      after: { labels: { zone: "a" } },
    });
    for (let repeat = 0; repeat < 5; repeat++) {
      say(stream, { hostname: "h1", cpu: { threads: 4 }, memoryBytes: 8n, labels: { zone: "a" } });
    }
    say(stream, { hostname: "h1", cpu: { threads: 4 } });
    await eventually(async () => {
      expect((await recordOf(database.store, "facts")).summary.memoryBytes).toBe(0);
    });
    expect(await eventsOf(database.store, "facts", ["node.info.changed"])).toHaveLength(2);
  });

  it("should send operators' labels to the agent, which its own labels do not override", async () => {
    const stream = await joined("overridden");
    say(stream, { labels: { zone: "a" } });
    await stream.nextOf("settings");
    const label: Label = { key: "zone", value: "b", tier: "operator" };
    await database.store.change(async (tx) => {
      await saveLabels(tx, "overridden", "operator", [label]);
      const { labels: before } = await recordOf(database.store, "overridden");
      const why = { actor: "token:t", reason: "OPERATOR_LABELED", message: "" };
      const event = labelsEvent({
        subject: "overridden",
        ...why,
        before,
        after: [...before, label],
      });
      return { result: null, events: event === null ? [] : [event] };
    });
    const { labels } = await stream.nextOf("settings");
    expect(labels).toMatchObject([{ key: "zone", value: "b", tier: LabelTier.OPERATOR }]);
    say(stream, { labels: { zone: "c", rack: "7" } });
    const settings = await stream.nextOf("settings");
    expect(settings.labels.map(({ key, value }) => `${key}=${value}`)).toEqual(["rack=7", "zone=b"]);
  });

  it("should send the agent its effective labels as they change", async () => {
    const stream = await joined("labelled");
    say(stream, { labels: { zone: "a", rack: "7" } });
    const { labels } = await stream.nextOf("settings");
    expect(labels.map(({ key, value }) => `${key}=${value}`)).toEqual(["rack=7", "zone=a"]);
    const again = await agents.create("other");
    await register(database.store, [again]);
    say(stream, { labels: { zone: "b" } });
    const settings = await stream.nextOf("settings");
    expect(settings.labels.map(({ key, value }) => `${key}=${value}`)).toEqual(["zone=b"]);
    expect(settings.heartbeatInterval?.seconds).toBe(1n);
  });

  it.each([
    ["a label of the control plane's", { labels: { "rollcall.io/zone": "a" } }, "INVALID_LABEL"],
    ["an invalid label", { labels: { "no good": "a" } }, "INVALID_LABEL"],
    [
      "too many labels",
      { labels: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, ""])) },
      "INVALID_LABEL",
    ],
    ["a text that is too long", { hostname: "x".repeat(254) }, "INVALID_REQUEST"],
    ["too many GPUs", { gpus: Array.from({ length: 65 }, () => ({})) }, "INVALID_REQUEST"],
    ["more than it may have as a whole", LARGE, "INVALID_REQUEST"],
    ["a text that Postgres cannot keep", { hostname: "a\0b" }, "INVALID_REQUEST"],
  ])("should be refused, only to its sender, for %s", async (what, info, reason) => {
    const nodeId = what.replaceAll(/[^a-z]+/g, "-");
    const stream = await joined(nodeId);
    say(stream, info);
    const { error } = await stream.end();
    expect(error?.reason).toBe(reason);
    expect(error?.violations.length).toBeGreaterThan(0);
    expect((await recordOf(database.store, nodeId)).info).toBeNull();
  });

  it("should remove hardware missing from the report, and accept sizes that no column can hold", async () => {
    const stream = await joined("hardware");
    say(stream, {
      gpus: [
        { index: 0, uuid: "GPU-0" },
        { index: 1, uuid: "GPU-1" },
      ],
      memoryBytes: 2n ** 64n - 1n,
    });
    await eventually(async () => {
      expect((await recordOf(database.store, "hardware")).summary.gpus).toBe(2);
    });
    say(stream, {});
    await eventually(async () => {
      expect((await recordOf(database.store, "hardware")).summary.gpus).toBe(0);
    });
  });

  it("should keep the last of many reports", async () => {
    const stream = await joined("hasty");
    for (let threads = 1; threads <= 50; threads++) say(stream, { cpu: { threads } });
    await eventually(async () => {
      expect((await recordOf(database.store, "hasty")).summary.cores).toBe(50);
    });
    await stream.beatAcknowledged();
    expect((await recordOf(database.store, "hasty")).summary.cores).toBe(50);
  });

  it("should publish no event for ballooning memory, and one at once for lost memory", async () => {
    const stream = await joined("balloon");
    const gib = 2n ** 30n;
    const report = (memory: bigint, numa: bigint) => ({
      hostname: "b",
      memoryBytes: memory,
      numaNodes: [{ id: 0, cpus: "0-7", memoryBytes: numa }],
    });
    const infos = async () => (await eventsOf(database.store, "balloon", ["node.info.changed"])).length;
    const seen = async (value: ReturnType<typeof report>) => {
      const { digest } = nodeInfoToRow(create(NodeInfoSchema, value));
      say(stream, value);
      await eventually(() => {
        // Advance the clock, so that a write that failed on a busy machine is retried.
        (replica.clock as ManualClock).advance(1);
        expect(replica.app.replica.nodes.find("balloon")?.infoDigest).toBe(digest);
      });
    };
    await seen(report(64n * gib, 64n * gib));
    for (let minute = 1n; minute <= 20n; minute += 1n) {
      await seen(report(64n * gib - minute * 2n ** 20n, 64n * gib - minute * 2n ** 28n));
    }
    expect(await infos()).toBe(1);
    say(stream, report(48n * gib, 48n * gib));
    await eventually(async () => expect(await infos()).toBe(2));
    expect((await recordOf(database.store, "balloon")).missingHardware).toMatchObject([
      { kind: "HARDWARE_DEGRADED", part: "memory" },
    ]);
  });

  it("should not be restored by a deleted node", async () => {
    const stream = await joined("gone");
    say(stream, { hostname: "h" });
    await command(database.store, "gone", "delete");
    await stream.end();
    await eventually(() => expect(replica.app.replica.nodes.find("gone")).toBeUndefined());
  });
});
