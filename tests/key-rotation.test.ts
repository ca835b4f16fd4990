import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { reasonOf } from "../libs/errors/src/index.ts";
import { generateKeyPair, keyFingerprint, type NodeKeyPair } from "../libs/identity/src/index.ts";
import { silentLogger, superviseTasks, systemClock } from "../libs/process/src/index.ts";
import { getNode, keyOf } from "../libs/store/src/index.ts";
import {
  createTestDatabase,
  eventually,
  FakeAgent,
  seededRandom,
  type TestDatabase,
} from "../libs/testkit/src/index.ts";
import { type Rig as AdminRig, startRig as startAdmin } from "../services/admin/src/testing/rig.ts";
import { createAgent } from "../services/agent/src/agent.ts";
import { createRegistrar } from "../services/agent/src/registration/registrar.ts";
import { NodeKeys } from "../services/agent/src/state/node-keys.ts";
import { openStateDirectory, type StateDirectory } from "../services/agent/src/state/state-directory.ts";
import { createGrpcHeartbeatTransport } from "../services/agent/src/stream/grpc-heartbeat-transport.ts";
import { SMALL_FACTS, SMALL_USAGE } from "../services/agent/src/testing/agent-harness.ts";
import { type TestReplica, TestReplicas } from "../services/health/src/testing/test-replica.ts";
import { addHealthReplica, eventsOf } from "../services/registry/src/testing/record.ts";
import { type Rig, startRig as startRegistry } from "../services/registry/src/testing/rig.ts";
import { TestNode } from "../services/registry/src/testing/test-node.ts";

const SEED = 1;
const RUNS = 24;
const STEPS = 15;

let database: TestDatabase;
let registry: Rig;
let admin: AdminRig;
let replica: TestReplica;
const replicas = new TestReplicas();
const endings: (() => Promise<void>)[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  const { store } = database;
  registry = await startRegistry({ store });
  admin = await startAdmin({ store });
  replica = await replicas.start({ store, clock: systemClock, feedPollMs: 50 });
  await addHealthReplica(store, replica.address);
});

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

afterAll(async () => {
  await replicas.close();
  await admin.close();
  await registry.close();
  await database.drop();
});

async function stateDirectory(): Promise<StateDirectory> {
  const path = await mkdtemp(join(tmpdir(), "rollcall-keys-"));
  endings.push(() => rm(path, { recursive: true, force: true }));
  return openStateDirectory(path);
}

function registrar() {
  const { port } = new URL(registry.baseUrl);
  return createRegistrar({ host: "127.0.0.1", port: Number(port) });
}

/**
 * Send a Hello with a key. Returns whether the Hello was welcomed. Throws any error except the refusal of the
 * proof.
 */
async function greet(nodeId: string, keyPair: NodeKeyPair): Promise<boolean> {
  const agent = new FakeAgent({ nodeId, keyPair });
  const stream = agent.open(replica.address);
  try {
    await stream.hello({ bootId: "boot" });
    const { frame } = await stream.next();
    if (frame.case === "welcome") return true;
    const { error } = await stream.end();
    expect(error?.reason).toBe("PROOF_INVALID");
    return false;
  } finally {
    agent.close();
  }
}

/**
 * Rotates the real agent's keys on a real disk with the real control plane, over a network that loses and
 * duplicates messages.
 */
class WireRun {
  readonly #nodeId: string;
  readonly #random: () => number;
  readonly #state: StateDirectory;
  readonly #registrar = registrar();
  readonly retired = new Map<string, NodeKeyPair>();
  #keys: NodeKeys;
  #current: NodeKeyPair;

  static async start(nodeId: string, random: () => number): Promise<WireRun> {
    const state = await stateDirectory();
    const keys = await NodeKeys.load(state, silentLogger);
    await new TestNode(nodeId, keys.toUse()).register(registry.registry);
    return new WireRun(nodeId, random, state, keys);
  }

  private constructor(nodeId: string, random: () => number, state: StateDirectory, keys: NodeKeys) {
    this.#nodeId = nodeId;
    this.#random = random;
    this.#state = state;
    this.#keys = keys;
    this.#current = keys.toUse();
  }

  get isSettled(): boolean {
    return this.#keys.phase === "settled";
  }

  async step(): Promise<void> {
    const actions = [
      () => this.offer(this.#random() < 0.4),
      () => this.offer(this.#random() < 0.4),
      () => this.greet(this.#random() < 0.4),
      () => this.crash(),
    ];
    await actions[Math.floor(this.#random() * actions.length)]?.();
    await this.check();
  }

  async offer(isAnswerLost = false): Promise<void> {
    const keyPair = this.#keys.toUse();
    const offer = { nodeId: this.#nodeId, keyPair, next: await this.#keys.prepareNext() };
    const signal = AbortSignal.timeout(60_000);
    try {
      // Sometimes make two offers at the same time, each with a separate proof.
      const twice = this.#random() < 0.3 ? [offer, offer] : [offer];
      const answers = await Promise.all(twice.map((it) => this.#registrar.rotateKey(it, signal)));
      if (isAnswerLost) return;
      for (const answer of answers) await this.#keys.answered(answer);
    } catch (error) {
      if (reasonOf(error) !== "PROOF_INVALID") throw error;
      if (!isAnswerLost) this.#keys.refused(keyPair);
    }
  }

  async greet(isAnswerLost = false): Promise<void> {
    const keyPair = this.#keys.toUse();
    const isTaken = await greet(this.#nodeId, keyPair);
    if (isAnswerLost) return;
    if (isTaken) await this.#keys.accepted(keyPair);
    else this.#keys.refused(keyPair);
  }

  async crash(): Promise<void> {
    this.#keys = await NodeKeys.load(this.#state, silentLogger);
  }

  /** Check that the disk contains the key that the store has for the node, whatever happened. */
  async check(): Promise<void> {
    const { store } = database;
    const recorded = (await keyOf(store.db, [this.#nodeId])).get(this.#nodeId)?.fingerprint;
    const held = [await this.#state.keyPair(), await this.#state.nextKeyPair()];
    const current = held.find((it) => it && keyFingerprint(it.publicKey) === recorded);
    if (current === undefined) throw new Error(`locked out of ${this.#nodeId}`);
    if (current.publicKey === this.#current.publicKey) return;
    if (keyFingerprint(this.#current.publicKey) !== recorded) {
      this.retired.set(keyFingerprint(this.#current.publicKey), this.#current);
    }
    this.#current = current;
  }

  async finish(): Promise<void> {
    for (let turn = 0; turn < 6 && !this.isSettled; turn += 1) {
      await this.offer();
      await this.greet();
    }
    await this.check();
  }

  async expectRetiredKeysRefused(): Promise<void> {
    const signal = AbortSignal.timeout(60_000);
    for (const keyPair of this.retired.values()) {
      const offer = { nodeId: this.#nodeId, keyPair, next: generateKeyPair() };
      const call = this.#registrar.rotateKey(offer, signal).then(() => null, reasonOf);
      expect(await call).toBe("PROOF_INVALID");
      expect(await greet(this.#nodeId, keyPair)).toBe(false);
    }
  }
}

describe("key rotation over the wire", () => {
  it(`should lock no node out and accept no retired key in ${RUNS} runs (seed ${SEED})`, async () => {
    let retired = 0;
    const one = async (index: number) => {
      const run = await WireRun.start(`wire-${index}`, seededRandom(SEED + index));
      for (let step = 0; step < STEPS; step += 1) await run.step();
      await run.finish();
      expect(run.isSettled).toBe(true);
      await run.expectRetiredKeysRefused();
      retired += run.retired.size;
      const rotations = (await eventsOf(database.store, `wire-${index}`)).filter(
        ({ type }) => type === "node.key.rotated",
      );
      expect(rotations).toHaveLength(run.retired.size);
    };
    for (let start = 0; start < RUNS; start += 8) {
      await Promise.all(Array.from({ length: 8 }, (_, index) => one(start + index)));
    }
    expect(retired).toBeGreaterThan(RUNS / 2);
  });

  it("should be carried out by a real agent on an operator's request, without interrupting its connection", async () => {
    const { store } = database;
    const state = await stateDirectory();
    const keys = await NodeKeys.load(state, silentLogger);
    const before = keys.fingerprint;
    const agent = createAgent({
      identity: {
        ...{
          nodeId: "forced",
          keys,
          agentVersion: "0.1.0",
          wishes: { heartbeatMs: undefined, infoMs: undefined },
        },
        ...{ instanceId: "i", bootId: "boot", machineFingerprint: "machine" },
      },
      description: { agentVersion: "0.1.0", advertiseUrl: "", labels: {} },
      state,
      facts: { read: async () => SMALL_FACTS },
      usage: { refresh: async () => {}, latest: () => SMALL_USAGE },
      registrar: registrar(),
      transport: createGrpcHeartbeatTransport(),
      clock: systemClock,
      log: silentLogger,
      random: Math.random,
    });
    const ending = new AbortController();
    const { done } = superviseTasks(agent.tasks, {
      ...{ log: silentLogger, clock: systemClock, signal: ending.signal },
    });
    endings.push(async () => {
      ending.abort();
      await done;
    });
    await eventually(() => expect(agent.status().phase).toBe("connected"));
    const { node } = await admin.admin.requireKeyRotation({ node: "forced", reason: "leaked" });
    expect(node?.keyRotationRequiredSince).toBeDefined();
    await eventually(async () => {
      const now = await getNode(store.db, "forced");
      expect(now?.keyFingerprint).not.toBe(before);
      expect(now).toMatchObject({ keyRotationRequiredSinceMs: null, nextKeyFingerprint: null });
      expect(keys.fingerprint).toBe(now?.keyFingerprint);
      expect((await state.readSentinel())?.keyFingerprint).toBe(keys.fingerprint);
    });
    expect(agent.status().phase).toBe("connected");
    const events = await eventsOf(store, "forced");
    expect(events.filter(({ type }) => type.startsWith("node.key"))).toMatchObject([
      { type: "node.key.rotation.required", reason: "OPERATOR_REQUIRED", message: "leaked" },
      { type: "node.key.offered", after: { nextKeyFingerprint: keys.fingerprint } },
      {
        type: "node.key.rotated",
        actor: "node:forced",
        before: { keyFingerprint: before },
        after: { keyFingerprint: keys.fingerprint },
      },
    ]);
    expect(events.filter(({ type }) => type === "node.connection.changed")).toHaveLength(1);
  });
});
