import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { NodeHealth, WatchNodeHealthResponse } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { HealthState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { healthEvent } from "@rollcall/domain";
import { reasonOf } from "@rollcall/errors";
import { systemClock } from "@rollcall/process";
import { releaseLease } from "@rollcall/store";
import {
  appendEvents,
  createTestDatabase,
  eventually,
  FakeAgents,
  type FakeStream,
  saveMark,
  type TestDatabase,
  until,
} from "@rollcall/testkit";
import { type QueryClient, serveQueries } from "../testing/query-client.ts";
import { command, recordOf, register } from "../testing/record.ts";
import { type TestReplica, TestReplicas } from "../testing/test-replica.ts";
import { MOST_WATCHES } from "./health-watches.ts";

// A heartbeat every 15 s, as in production, because only watched nodes send heartbeats more often.
const config = {
  "Orchestrator.NodeManager.DisconnectTimeout": 60_000,
  "Orchestrator.NodeManager.UnknownTimeout": 300_000,
  "Compute.Heartbeat.Interval": 15_000,
} as const;

const agents = new FakeAgents();
const replicas = new TestReplicas();
const followers: Follower[] = [];
let database: TestDatabase;
let left: TestReplica;
let right: TestReplica;
let reader: QueryClient;

beforeAll(async () => {
  database = await createTestDatabase();
  const { store } = database;
  const options = { store, config, clock: systemClock };
  [left, right] = await Promise.all([replicas.start(options), replicas.start(options)]);
  reader = await serveQueries(left);
});

afterAll(async () => {
  for (const follower of followers) follower.stop();
  agents.close();
  await reader.close();
  await replicas.close();
  await database.drop();
});

async function joined(nodeId: string, at: TestReplica): Promise<FakeStream> {
  const agent = agents.create(nodeId);
  await register(database.store, [agent]);
  const stream = await agent.join(at.address);
  await stream.beatAcknowledged({ cpuPercent: 1 });
  return stream;
}

/** Reads a watch in the background. */
class Follower {
  readonly latest = new Map<string, NodeHealth>();
  readonly seen: WatchNodeHealthResponse[] = [];
  readonly gone: string[] = [];
  failure: unknown;
  readonly #ending = new AbortController();

  constructor(nodeIds: string[], includeSamples = false) {
    followers.push(this);
    const request = { nodeIds, includeSamples };
    void this.#read(reader.client.watchNodeHealth(request, { signal: this.#ending.signal }));
  }

  stop(): void {
    this.#ending.abort();
  }

  cpuOf(nodeId: string): number | undefined {
    return this.latest.get(nodeId)?.latest?.usage?.cpuPercent;
  }

  async #read(answers: AsyncIterable<WatchNodeHealthResponse>): Promise<void> {
    try {
      for await (const answer of answers) {
        this.seen.push(answer);
        for (const node of answer.nodes) this.latest.set(node.nodeId, node);
        for (const id of answer.goneIds) {
          this.latest.delete(id);
          this.gone.push(id);
        }
      }
    } catch (error) {
      this.failure = error;
    }
  }
}

describe("watchNodeHealth()", () => {
  it("should send the current state of nodes of every replica, and then each new sample", async () => {
    const near = await joined("w-near", left);
    const far = await joined("w-far", right);
    const follower = new Follower(["w-near", "w-far", "w-nowhere"], true);
    await eventually(() => {
      expect([follower.cpuOf("w-near"), follower.cpuOf("w-far")]).toEqual([1, 1]);
      expect(follower.gone).toEqual(["w-nowhere"]);
    });
    expect(follower.latest.get("w-far")?.samples).toHaveLength(1);
    for (const cpuPercent of [2, 3]) {
      await near.beatAcknowledged({ cpuPercent });
      await far.beatAcknowledged({ cpuPercent });
      await eventually(() => {
        expect([follower.cpuOf("w-near"), follower.cpuOf("w-far")]).toEqual([cpuPercent, cpuPercent]);
      });
    }
    expect(follower.latest.get("w-far")?.samples).toEqual([]);
    follower.stop();
  });

  it("should make nodes send heartbeats every 2 s while they are watched", async () => {
    const stream = await joined("w-paced", right);
    const follower = new Follower(["w-paced"]);
    expect(await stream.nextOf("ack")).toMatchObject({ sequence: 1, nextIntervalMs: 2_000 });
    stream.beat();
    expect(await stream.nextOf("ack")).toMatchObject({ sequence: 2, nextIntervalMs: 2_000 });
    const again = new Follower(["w-paced"]);
    await until("a second watcher", () => again.latest.has("w-paced"));
    again.stop();
    stream.beat();
    expect(await stream.nextOf("ack")).toMatchObject({ sequence: 3, nextIntervalMs: 2_000 });
    follower.stop();
    expect(await stream.nextOf("ack")).toMatchObject({ sequence: 3, nextIntervalMs: 15_000 });
    stream.beat();
    expect(await stream.nextOf("ack")).toMatchObject({ sequence: 4, nextIntervalMs: 0 });
    await eventually(() => expect(right.app.replica.watched.size).toBe(0));
    // The reported interval is that of the policy, which the detector also uses.
    const { nodeHealth } = await reader.client.getNodeHealth({ node: "w-paced" });
    expect(nodeHealth?.heartbeatInterval?.seconds).toBe(15n);
  });

  it("should follow a node to another replica", async () => {
    const agent = agents.create("w-moves");
    await register(database.store, [agent]);
    await (await agent.join(left.address)).beatAcknowledged({ cpuPercent: 1 });
    const follower = new Follower(["w-moves"]);
    await until("the first answer", () => follower.cpuOf("w-moves") === 1);
    const stream = await agent.join(right.address);
    await stream.beatAcknowledged({ cpuPercent: 7 });
    await eventually(() => {
      expect(follower.latest.get("w-moves")).toMatchObject({
        replicaId: right.instance,
        telemetryUnavailable: "",
      });
      expect(follower.cpuOf("w-moves")).toBe(7);
    });
    follower.stop();
  });

  it("should show a mark at once, and drop a node that is deleted", async () => {
    const { store } = database;
    await joined("w-marked", right);
    const follower = new Follower(["w-marked"]);
    await until("the first answer", () => follower.latest.has("w-marked"));
    await store.transaction(async (tx) => {
      await saveMark(tx, "w-marked", { sinceMs: 0, message: "smells", actor: "token:t" });
      const { detectedHealth: before } = await recordOf(store, "w-marked");
      const after = { ...before, actor: "token:t" };
      await appendEvents(tx, [healthEvent({ subject: "w-marked", before, after })]);
    });
    await eventually(() =>
      expect(follower.latest.get("w-marked")?.health).toMatchObject({
        state: HealthState.UNHEALTHY,
        reason: "OPERATOR_MARKED",
      }),
    );
    await command(store, "w-marked", "delete");
    await eventually(() => expect(follower.gone).toEqual(["w-marked"]));
    follower.stop();
  });

  it("should watch all held nodes when none are selected, including later ones", async () => {
    const follower = new Follower([]);
    await until("the existing nodes", () => follower.latest.has("w-near"));
    await joined("w-later", left);
    await eventually(() => expect(follower.cpuOf("w-later")).toBe(1));
    follower.stop();
  });

  it("should refuse watches beyond its limit, and accept them again when others have ended", async () => {
    await eventually(() => expect(followers.every(({ failure }) => failure !== undefined)).toBe(true));
    const crowd = Array.from({ length: MOST_WATCHES }, () => new Follower(["w-near"]));
    await until("all watches", () => crowd.every(({ seen }) => seen.length > 0));
    const late = new Follower(["w-near"]);
    await eventually(() => expect(reasonOf(late.failure)).toBe("OVERLOADED"));
    for (const follower of crowd) follower.stop();
    await eventually(() => expect(left.app.replica.watched.size).toBe(0));
    const last = new Follower(["w-near"]);
    await until("an answer", () => last.latest.has("w-near"));
    last.stop();
  });

  it("should report missing data when a replica is gone, and continue when its nodes are held again", async () => {
    const third = await replicas.start({ store: database.store, config, clock: systemClock });
    await joined("w-orphan", third);
    const follower = new Follower(["w-orphan"]);
    await until("the first answer", () => follower.cpuOf("w-orphan") === 1);
    await third.kill();
    await eventually(() =>
      expect(follower.latest.get("w-orphan")?.telemetryUnavailable).toMatch(/does not answer|gone/),
    );
    expect(follower.latest.get("w-orphan")?.health?.state).toBe(HealthState.HEALTHY);
    const { nodes } = await reader.client.listNodeHealth({ nodeIds: ["w-near", "w-orphan"] });
    expect(nodes.map((it) => [it.nodeId, it.telemetryUnavailable !== ""])).toEqual([
      ["w-near", false],
      ["w-orphan", true],
    ]);
    await releaseLease(database.store.db, third.instance, third.instance);
    left.app.onLeaseHeld();
    await eventually(() => expect(follower.latest.get("w-orphan")?.telemetryUnavailable).toBe(""));
    follower.stop();
  });
});
