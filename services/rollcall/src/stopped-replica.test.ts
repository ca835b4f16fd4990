import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import type { RollcallProcess } from "./testing/rollcall-process.ts";
import { createServeFixture, type ServeFixture } from "./testing/serve-fixture.ts";

const WELL = "APPROVED CONNECTED HEALTHY";
/**
 * How long a node may be silent, and the replica stands still: longer than an agent on a busy machine needs to come
 * back.
 */
const STOP_MS = 10_000;
const THRESHOLD = ["--set", `Orchestrator.NodeManager.DisconnectTimeout=${STOP_MS / 1_000}s`];
const UNKNOWN = ["--set", "Orchestrator.NodeManager.UnknownTimeout=60s"];

// The drills of bench/drills, shrunk: thresholds and faults together.
describe("a health replica that stands still", () => {
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

  it("should judge no node for its own stop", async () => {
    health.kill("SIGSTOP");
    // The stop is the fault itself, and how long it lasts is all that matters of it.
    await delay(STOP_MS);
    health.kill("SIGCONT");
    // The agent has left what did not answer, and has come back.
    await agent.logged("connected", {}, 1);
    await fixture.client.becomes("n1", WELL);
    expect(await fixture.client.healthHistory("n1")).toEqual(["HEALTHY"]);
  });

  it("should still notice a node that is really gone", async () => {
    agent.kill("SIGSTOP");
    await fixture.client.becomes("n1", "APPROVED DISCONNECTED UNHEALTHY");
    agent.kill("SIGCONT");
    await fixture.client.becomes("n1", WELL);
  });
});
