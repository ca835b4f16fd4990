import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import type { RollcallProcess } from "./testing/rollcall-process.ts";
import { createServeFixture, type ServeFixture } from "./testing/serve-fixture.ts";

const WELL = "APPROVED CONNECTED HEALTHY";
/**
 * How long the replica is stopped, and how long a node can be silent. An agent on a busy machine needs less
 * time to reconnect.
 */
const STOP_MS = 10_000;
const THRESHOLD = ["--set", `Orchestrator.NodeManager.DisconnectTimeout=${STOP_MS / 1_000}s`];
const UNKNOWN = ["--set", "Orchestrator.NodeManager.UnknownTimeout=60s"];

// A small version of the drills in bench/drills, with thresholds and faults scaled down together.
describe("a stopped health replica", () => {
  let database: TestDatabase;
  let fixture: ServeFixture;
  let health: RollcallProcess;
  let agent: RollcallProcess;

  beforeAll(async () => {
    database = await createTestDatabase();
    fixture = await createServeFixture(database.url);
    [health] = await Promise.all([
      fixture.serve("health", ...THRESHOLD, ...UNKNOWN),
      fixture.serve("registry"),
      fixture.serve("admin"),
    ]);
    agent = fixture.agent("n1");
    await agent.logged("connected");
    await fixture.client.becomes("n1", WELL);
  });

  afterAll(async () => {
    await fixture.dispose();
    await database.drop();
  });

  it("should declare no node unhealthy while it is paused", async () => {
    health.kill("SIGSTOP");
    // Use a fixed delay, because the stop itself is the fault, so only its duration matters.
    await delay(STOP_MS);
    health.kill("SIGCONT");
    // The agent has left the silent connection and reconnected.
    await agent.logged("connected", {}, 1);
    await fixture.client.becomes("n1", WELL);
    expect(await fixture.client.healthHistory("n1")).toEqual(["HEALTHY"]);
  });

  it("should still notice a node that is gone", async () => {
    agent.kill("SIGSTOP");
    await fixture.client.becomes("n1", "APPROVED DISCONNECTED UNHEALTHY");
    agent.kill("SIGCONT");
    await fixture.client.becomes("n1", WELL);
  });
});
