import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "@jest/globals";
import { type MetricsRegistry, renderMetrics, silentLogger, systemClock } from "../../../libs/process/src/index.ts";
import {
  accessTokenHash,
  ensureAccessToken,
  lockNodes,
  openStore,
  removeNode,
  type Store,
} from "../../../libs/store/src/index.ts";
import {
  addNode,
  createTestDatabase,
  FakeAgent,
  type FakeStream,
  type TestDatabase,
  until,
} from "../../../libs/testkit/src/index.ts";
import { type Outcome, run, type Surroundings } from "../../../services/cli/src/testing/run.ts";
import { INFO, TestNode } from "../../../services/registry/src/testing/test-node.ts";
import { loadControlPlaneConfig } from "../../../services/rollcall/src/config/control-plane-config.ts";
import { openProbes } from "../../../services/rollcall/src/control-plane/open-probes.ts";
import { planUp, type ServiceName } from "../../../services/rollcall/src/control-plane/process-plan.ts";
import { startControlPlane } from "../../../services/rollcall/src/control-plane/start-control-plane.ts";
import { ControlPlaneClient } from "../../../services/rollcall/src/testing/control-plane-client.ts";

type Info = Parameters<TestNode["register"]>[1];
type Hello = Parameters<FakeAgent["join"]>[1];
type Role = "viewer" | "operator" | "admin";

/** The command line with a complete control plane. */
export interface CliRig {
  readonly store: Store;
  /** The address of the API as HOST:PORT. */
  readonly address: string;
  /** An access token of the role admin. */
  readonly token: string;
  /** An empty directory for this rig. */
  readonly folder: string;
  readonly client: ControlPlaneClient;
  /** Read the control plane's /metrics. */
  metrics(): Promise<string>;
  /** Read the control plane's /readyz. */
  readyz(): Promise<string>;
  /** Run a command line as an administrator. The line is a list of words, or one string without quotes. */
  run(line: string | readonly string[], surroundings?: Surroundings): Promise<Outcome>;
  /** Register a machine through the API. */
  register(id: string, info?: Info): Promise<TestNode>;
  /** Register a machine, and keep its stream open until the test file ends. Resolves when it is HEALTHY. */
  connect(id: string, info?: Info, hello?: Hello): Promise<FakeStream>;
  /** Write this many machines to the store, without events. Returns their ids in order. */
  addNodes(count: number): Promise<readonly string[]>;
  /** Create an access token with a role. Returns its text. */
  createToken(role: Role): Promise<string>;
  /** Remove all machines. */
  removeNodes(): Promise<void>;
}

/**
 * The number of machines that are removed at the same time. It must be less than the number of the store's
 * connections.
 */
const AT_A_TIME = 8;
const FREE_PORTS = { port: "0", "agent-port": "0", "probe-port": "0", "internal-port": "0" };

/** The parts of a running rig. */
interface Parts {
  readonly database: TestDatabase;
  readonly port: number;
  readonly agentPort: number;
  readonly token: string;
  readonly folder: string;
  readonly client: ControlPlaneClient;
  readonly metrics: MetricsRegistry;
  readonly probePort: number;
  close(): Promise<void>;
}

/**
 * Start registry, health and admin in this process before the tests of a file, with a separate database, as
 * `rollcall up` does. `flags` returns the flags of `up`, and is called when `up` starts. `file` is the content of a
 * configuration file. Services in `without` do not run.
 */
export function useControlPlane(
  flags: () => Readonly<Record<string, string>> = () => ({}),
  file = "",
  without: readonly ServiceName[] = [],
): CliRig {
  let parts: Parts | undefined;
  const agents: FakeAgent[] = [];
  const running = () => {
    if (parts === undefined) throw new Error("the control plane is not started yet");
    return parts;
  };
  beforeAll(async () => {
    parts = await start(flags(), file, without);
  });
  afterAll(async () => {
    for (const agent of agents) agent.close();
    await parts?.close();
  });
  const address = () => `127.0.0.1:${running().port}`;
  const register = async (id: string, info: Info = INFO) => {
    const node = new TestNode(id);
    await node.register(running().client.registry, info);
    return node;
  };
  return {
    get store() {
      return running().database.store;
    },
    get address() {
      return address();
    },
    get token() {
      return running().token;
    },
    get folder() {
      return running().folder;
    },
    get client() {
      return running().client;
    },
    metrics: () => renderMetrics(running().metrics),
    readyz: async () => (await fetch(`http://127.0.0.1:${running().probePort}/readyz`)).text(),
    run: (line, surroundings = {}) => {
      const env = { ROLLCALL_SERVER: address(), ROLLCALL_TOKEN: running().token, ...surroundings.env };
      const { folder } = running();
      const words = typeof line === "string" ? line.split(" ") : line;
      return run(words, { wallMs: () => Date.now(), cwd: folder, home: folder, ...surroundings, env });
    },
    register,
    connect: async (id, info, hello) => {
      const { keyPair } = await register(id, info);
      const agent = new FakeAgent({ nodeId: id, keyPair });
      agents.push(agent);
      const stream = await agent.join(`127.0.0.1:${running().agentPort}`, hello);
      await stream.beatAcknowledged();
      await running().client.becomes(id, "APPROVED CONNECTED HEALTHY");
      return stream;
    },
    addNodes: async (count) => {
      const ids = Array.from({ length: count }, (_, at) => `n${String(at).padStart(3, "0")}`);
      for (let at = 0; at < count; at += AT_A_TIME) {
        await Promise.all(ids.slice(at, at + AT_A_TIME).map((id) => addNode(running().database.store, id)));
      }
      return ids;
    },
    createToken: (role) => createToken(running().database.store, role),
    removeNodes: async () => {
      for (const agent of agents.splice(0)) agent.close();
      await removeAll(running().database.store);
    },
  };
}

async function start(
  flags: Readonly<Record<string, string>>,
  text: string,
  without: readonly ServiceName[],
): Promise<Parts> {
  const database = await createTestDatabase();
  const { store } = database;
  const folder = mkdtempSync(join(tmpdir(), "rollcall-cli-"));
  const file = join(folder, "rollcall.yaml");
  writeFileSync(file, text);
  const given = { shell: { env: {}, cwd: folder }, file, flags: { ...FREE_PORTS, ...flags } };
  const { values: config } = await loadControlPlaneConfig(given);
  const planned = planUp(config);
  const plan = { ...planned, services: planned.services.filter((service) => !without.includes(service)) };
  const shared = { plan, clock: systemClock, log: silentLogger };
  const probes = await openProbes(shared);
  const own = "Database.PoolSize" in flags ? await openSmallStore(database, config["Database.PoolSize"]) : store;
  const options = { ...shared, config, store: own, probes, version: "0.1.0" };
  const controlPlane = await startControlPlane(options, new AbortController().signal);
  const token = await createToken(store, "admin");
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, token);
  await ownNodeIsConnected(store);
  const { port } = controlPlane;
  const address = `127.0.0.1:${port}`;
  return {
    ...{ database, port, token, folder, metrics: probes.metrics, probePort: probes.port },
    agentPort: controlPlane.agentPort ?? 0,
    client: new ControlPlaneClient({ registry: address, admin: address, tokenFile }),
    close: async () => {
      await controlPlane.close();
      await probes.close();
      if (own !== store) await own.close();
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Open a store that only the control plane uses. It can run out of connections while the test's store still works.
 */
const openSmallStore = ({ url }: TestDatabase, poolSize: number) =>
  openStore({ url, poolSize, log: silentLogger, applicationName: "small" });

/**
 * Wait for the built-in node, which connects after the start. Otherwise its events could appear between a test's
 * own events.
 */
const ownNodeIsConnected = (store: Store) =>
  until("the own node to be connected", async () => {
    const own = await store.db
      .selectFrom("node_sessions")
      .select("node_id")
      .where("connection", "=", "CONNECTED")
      .execute();
    return own.length > 0;
  });

/**
 * Delete all machines and keep tombstones, so that late writes about a deleted machine do not reach a new machine
 * with the same id.
 */
async function removeAll(store: Store): Promise<void> {
  const rows = await store.db.selectFrom("nodes").select("id").where("type", "=", "COMPUTE").execute();
  await store.transaction(async (tx) => {
    const nodes = await lockNodes(
      tx,
      rows.map(({ id }) => id),
    );
    for (const node of nodes) await removeNode(tx, node, { actor: "test", reason: "OPERATOR_DELETED" });
  });
}

async function createToken(store: Store, role: Role): Promise<string> {
  const text = `test-${randomBytes(24).toString("base64url")}`;
  await ensureAccessToken(store.db, { id: randomUUID(), name: role, role, hash: accessTokenHash(text) });
  return text;
}
