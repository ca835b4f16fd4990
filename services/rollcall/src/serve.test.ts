import { statSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { until } from "@rollcall/testkit/time";
import type { RollcallProcess } from "./testing/rollcall-process.ts";
import { runClient } from "./testing/run-client.ts";
import { createServeFixture, type ServeFixture } from "./testing/serve-fixture.ts";

const WELL = "APPROVED CONNECTED HEALTHY";

// One story: each test continues with the state of the previous one.
describe("rollcall serve", () => {
  let database: TestDatabase;
  let fixture: ServeFixture;
  let registry: RollcallProcess;
  let health: RollcallProcess;
  let admin: RollcallProcess;
  let scheduler: RollcallProcess;
  let agent: RollcallProcess;
  beforeAll(async () => {
    database = await createTestDatabase();
    fixture = await createServeFixture(database.url);
    [registry, health, admin, scheduler] = await Promise.all([
      fixture.serve("registry", "--manual-approval", "--set", `Join.PackagesDir=${tmpdir()}`),
      fixture.serve("health"),
      fixture.serve("admin"),
      fixture.serve("scheduler"),
    ]);
  });
  afterAll(async () => {
    await fixture.dispose();
    await database.drop();
  });

  it("should create the first token, and say where", async () => {
    await admin.logged("admin token created", { file: fixture.tokenFile });
    expect(statSync(fixture.tokenFile).mode & 0o777).toBe(0o600);
  });

  it("should serve what machines need to join at the registry, and print the line", async () => {
    const { registry: server } = fixture.addresses;
    const { text } = await runClient("token create", fixture);
    expect(text).toContain(
      `\n  s=$(curl -fsS http://${server}/join.sh) && ROLLCALL_JOIN_TOKEN=TOKEN sh -c "$s" join.sh`,
    );
    expect((await fetch(`http://${server}/join.sh`)).status).toBe(200);
    expect((await fetch(`http://${fixture.addresses.admin}/join.sh`)).status).toBe(404);
  });

  it("should show each process as a separate node", async () => {
    await until("four nodes", async () => {
      const { nodes } = await fixture.client.registry.listNodes({ types: [1] });
      const services = nodes.map(({ id }) => id.split("-")[0]);
      return services.join() === "admin,health,registry,scheduler";
    });
  });

  it("should register an agent that waits for approval, and notify it of the approval immediately", async () => {
    agent = fixture.agent("n1");
    await agent.logged("waiting for an operator's approval");
    const pending = await fixture.client.becomes("n1", "PENDING CONNECTED HEALTHY");
    expect(pending.mayTakeWork).toBe(false);
    await fixture.client.grantTime("n1");
    await fixture.client.admin.approveNode({ node: "n1" });
    await agent.logged("membership changed", { membership: "APPROVED" });
    expect((await fixture.client.becomes("n1", WELL)).mayTakeWork).toBe(true);
  });

  it("should answer the command line as one, with each service at its own address", async () => {
    const listed = await runClient("node list --show labels,seen", fixture);
    expect(listed.code).toBe(0);
    expect(listed.text).toMatch(/^n1 +Compute +approved +healthy +- +\d+s ago$/m);
    expect(await runClient("node approve n1", fixture)).toEqual({
      code: 0,
      text: "Ok: n1 was already approved\n",
    });
    expect(await runClient("node cordon n1", fixture)).toEqual({ code: 0, text: "Ok: n1 cordoned\n" });
    expect((await runClient("node health n1", fixture)).text).toMatch(/^CPU .*%$/m);
    expect((await runClient("node summary", fixture)).text).toMatch(/^Nodes: +1 connected \/ 1 total$/m);
  });

  it.each(["registry", "health", "admin", "scheduler"] as const)(
    "should survive the death of %s: the agent is never declared unhealthy",
    async (service) => {
      const before = await fixture.client.node("n1");
      const process = { registry, health, admin, scheduler }[service];
      await process.killed();
      const again = await fixture.serve(service, "--manual-approval");
      if (service === "registry") registry = again;
      if (service === "health") health = again;
      if (service === "admin") admin = again;
      if (service === "scheduler") scheduler = again;
      if (service === "health") await health.logged("session opened", { node: "n1" });
      const node = await fixture.client.becomes("n1", WELL);
      expect(node.membership).toEqual(before?.membership);
      expect(await fixture.client.healthHistory("n1")).toEqual(["HEALTHY"]);
    },
  );

  it("should end the stream of a rejected node, with the reason", async () => {
    await fixture.client.admin.rejectNode({ node: "n1", reason: "wrong rack" });
    const { detail } = await agent.logged("connection lost", { reason: "NODE_REJECTED" });
    expect(detail).toContain("wrong rack");
    await fixture.client.becomes("n1", "REJECTED DISCONNECTED HEALTHY");
  });

  it("should admit a rejected node when it is approved and restarted", async () => {
    await fixture.client.admin.approveNode({ node: "n1" });
    expect(await agent.killed("SIGTERM")).toBe(0);
    agent = fixture.agent("n1");
    await agent.logged("connected");
    await fixture.client.becomes("n1", WELL);
  });

  it("should end the stream of a deleted node, and leave its agent idle", async () => {
    await fixture.client.admin.deleteNode({ node: "n1", reason: "sold" });
    await agent.logged("node was deleted, idle until the agent is restarted");
    expect(await fixture.client.node("n1")).toBeNull();
    expect(await agent.killed("SIGTERM")).toBe(0);
  });

  it("should shut down cleanly when asked, and no longer be shown as connected", async () => {
    expect(await health.killed("SIGTERM")).toBe(0);
    expect(await admin.killed("SIGTERM")).toBe(0);
    expect(await scheduler.killed("SIGTERM")).toBe(0);
    const { nodes } = await fixture.client.registry.listNodes({ types: [1] });
    const connected = nodes.filter(({ connection }) => connection?.state === 1);
    expect(connected.map(({ id }) => id.split("-")[0])).toEqual(["registry"]);
    expect(await registry.killed("SIGTERM")).toBe(0);
    for (const process of [registry, health, admin, scheduler]) await process.logged("stopped");
  });
});
