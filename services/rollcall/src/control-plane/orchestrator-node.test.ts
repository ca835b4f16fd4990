import { hostname } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { isNodeId } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { getNode, insertNode } from "@rollcall/store";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { until } from "@rollcall/testkit/time";
import { OrchestratorNode, orchestratorId } from "./orchestrator-node.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

function create(port: number) {
  const { store } = database;
  const shown = {
    service: "registry",
    instance: `i-${port}`,
    address: "h:1",
    port,
    version: "9.9.9",
  };
  const node = new OrchestratorNode(store.reserved, shown, silentLogger);
  const ending = new AbortController();
  const done = node.run(ending.signal, () => {});
  return {
    node,
    find: (attempt = 1) => getNode(store.db, orchestratorId("registry", hostname(), port, attempt)),
    end: async () => {
      ending.abort();
      await done;
    },
  };
}

describe("OrchestratorNode", () => {
  it("should show the process once its lease is held, and again each time", async () => {
    const { node, find, end } = create(7710);
    expect(await find()).toBeNull();
    node.show();
    const first = await until("the node", () => find());
    expect(first).toMatchObject({
      type: "ORCHESTRATOR",
      membership: { state: "APPROVED" },
      connection: { state: "CONNECTED" },
      info: { hostname: hostname(), agentVersion: "9.9.9" },
      session: { replicaId: "i-7710" },
    });
    node.show();
    await until("another join", async () => ((await find())?.session.epoch ?? 0) > first.session.epoch);
    await end();
  });

  it("should take another id if a machine has the first one", async () => {
    const { node, find, end } = create(7711);
    const membership = {
      state: "APPROVED",
      sinceMs: 0,
      reason: "X",
      message: "",
      actor: "system",
    } as const;
    const id = orchestratorId("registry", hostname(), 7711, 1);
    await database.store.transaction((tx) => insertNode(tx, { id, type: "COMPUTE", membership }));
    node.show();
    await until("the node", () => find(2));
    expect(await find(1)).toMatchObject({ type: "COMPUTE" });
    await end();
  });
});

describe("orchestratorId()", () => {
  it("should be the same for the same process", () => {
    expect(orchestratorId("registry", "host.example", 7710, 1)).toBe("registry-host.example-7710");
    expect(orchestratorId("up", "host", 7700, 2)).toBe("up-host-7700-2");
  });

  it.each(["", "ünï cödé/host", "h".repeat(300)])("should be a node id for the host %j", (host) => {
    expect(isNodeId(orchestratorId("health", host, 7711, 1))).toBe(true);
    expect(orchestratorId("health", host, 7711, 12).endsWith("-7711-12")).toBe(true);
  });
});
