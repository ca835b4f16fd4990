import type { DescService } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { JoinTokenService } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { describeError } from "@rollcall/errors";
import { keyFingerprint } from "@rollcall/identity";
import { silentLogger, systemClock } from "@rollcall/process";
import { accessTokenHash, ensureAccessToken, getNode, listLeases, readEvents, readLease } from "@rollcall/store";
import {
  addNode,
  createGate,
  createTestDatabase,
  FakeAgent,
  refusalOf,
  saveKey,
  sendBearer,
  type TestDatabase,
  until,
} from "@rollcall/testkit";
import { sql } from "kysely";
import { loadControlPlaneConfig } from "../config/control-plane-config.ts";
import { openProbes } from "./open-probes.ts";
import { planUp } from "./process-plan.ts";
import { startControlPlane } from "./start-control-plane.ts";

const FLAGS = {
  ...{ port: "0", "agent-port": "0", "probe-port": "0", "internal-port": "0" },
  "Compute.Heartbeat.Interval": "1s",
  "Orchestrator.NodeManager.DisconnectTimeout": "3s",
  "Orchestrator.NodeManager.UnknownTimeout": "1h",
};
/** Maximum number of calls at a time: more than there are connections for calls, and fewer than can wait. */
const CALLS_AT_A_TIME = 200;
const TOKENS = [1, 2, 3, 4, 5].map((index) => `an-admin-that-reads-a-lot-${index}`);

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function start() {
  const shell = { env: {}, cwd: "/" };
  const { values } = await loadControlPlaneConfig({ shell, file: undefined, flags: FLAGS });
  const plan = planUp(values);
  const shared = { plan, clock: systemClock, log: silentLogger };
  const probes = await openProbes(shared);
  // The store of the process. The test uses another one.
  const store = await database.openStore("up");
  const { signal } = new AbortController();
  const running = await startControlPlane({ ...shared, config: values, store, probes, version: "9.9.9" }, signal);
  return { running, probes };
}

async function agentOf(nodeId: string): Promise<FakeAgent> {
  const { store } = database;
  const agent = new FakeAgent({ nodeId });
  const { publicKey } = agent;
  await addNode(store, nodeId, { hasKey: false });
  const key = { nodeId, publicKey, fingerprint: keyFingerprint(publicKey) };
  await store.transaction((tx) => saveKey(tx, key));
  return agent;
}

/** Keep `CALLS_AT_A_TIME` calls in progress until stopped. Collects the reasons of refusals. */
function flood(call: () => Promise<unknown>) {
  const reasons = new Set<string | undefined>();
  let isOver = false;
  const again = async (): Promise<void> => {
    while (!isOver) {
      await call().catch((error: unknown) => reasons.add(describeError(error).reason));
    }
  };
  const done = Promise.all(Array.from({ length: CALLS_AT_A_TIME }, again));
  const stop = async () => {
    isOver = true;
    await done;
  };
  return { reasons, stop };
}

it("should keep nodes safe while calls hold all their connections", async () => {
  const { store } = database;
  for (const [index, text] of TOKENS.entries()) {
    const id = `reader${index}`;
    const hash = accessTokenHash(text);
    await ensureAccessToken(store.db, { id, name: id, role: "admin", hash });
  }
  const [early, late] = [await agentOf("early"), await agentOf("late")];
  const { running, probes } = await start();
  const baseUrl = `http://127.0.0.1:${running.port}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  const clientOf = <S extends DescService>(service: S, token = TOKENS[0] ?? "") =>
    createClient(service, createGrpcTransport({ baseUrl, sessionManager, interceptors: [sendBearer(token)] }));
  const agentAddress = `127.0.0.1:${running.agentPort}`;
  const blocked = createGate();
  const locked = createGate();
  // Lock a table like a long migration, until the transaction is rolled back.
  const blocking = store
    .transaction(async (tx) => {
      // The transaction must last as long as the test takes on a busy machine.
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx);
      await tx.schema.alterTable("join_tokens").addColumn("more", "text").execute();
      locked.open();
      await blocked.passed;
      throw new Error("rolled back");
    })
    .catch(() => {});
  try {
    await locked.passed;
    const stream = await early.join(agentAddress);
    await stream.beatAcknowledged();
    await until("the first node to be HEALTHY", async () => {
      return (await getNode(store.db, "early"))?.health.state === "HEALTHY";
    });
    // Use several tokens, because one caller cannot occupy all connections.
    const clients = TOKENS.slice(1).map((token) => clientOf(JoinTokenService, token));
    let turn = 0;
    const readers = flood(async () => {
      turn += 1;
      await clients[turn % clients.length]?.getJoinToken({ id: "none" });
    });
    await until("the calls to hold every connection", async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${probes.port}/metrics`)).text();
      return /^rollcall_database_waiting{pool="calls"} [1-9]/m.test(metrics);
    });
    const own = async () => (await listLeases(store.db)).find(({ name, instance }) => name === instance);
    const [leaseBefore, brakeBefore] = [await own(), await readLease(store.db, "brake")];

    // Even a caller with few calls is refused with a retry delay.
    expect(await refusalOf(clientOf(RegistryService).listNodes({}))).toMatchObject({
      reason: "OVERLOADED",
      retryAfterMs: expect.any(Number),
    });
    // An agent can still send its hello.
    await (await late.join(agentAddress)).beatAcknowledged();
    // A transition is written, and the brake decides about its reaction.
    early.close();
    await until("the loss to be declared, and its reaction to be let go", async () => {
      const { events } = await readEvents(store.db, { after: 0n, limit: 1_000 });
      return events.some(({ type, subject }) => type === "node.reactions.allowed" && subject === "early");
    });
    await until("both leases to be renewed", async () => {
      const [lease, brake] = [await own(), await readLease(store.db, "brake")];
      return (lease?.counter ?? 0) > (leaseBefore?.counter ?? 0) && (brake?.counter ?? 0) > (brakeBefore?.counter ?? 0);
    });
    expect((await fetch(`http://127.0.0.1:${probes.port}/readyz`)).status).toBe(200);

    blocked.open();
    await blocking;
    await readers.stop();
    // No call hung. Each failed only with a refusal that it can retry, or with its own deadline.
    const harmless = ["OVERLOADED", "TOO_MANY_CALLS", "DEADLINE_EXCEEDED", "JOIN_TOKEN_NOT_FOUND"];
    for (const reason of readers.reasons) expect(harmless).toContain(reason);
    expect(readers.reasons).toContain("OVERLOADED");
    expect((await clientOf(RegistryService).listNodes({})).nodes.length).toBeGreaterThan(1);
  } finally {
    blocked.open();
    await blocking;
    early.close();
    late.close();
    sessionManager.abort();
    await running.close();
    await probes.close();
  }
});
