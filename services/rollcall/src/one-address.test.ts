import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { createTestDatabase, sendBearer, type TestDatabase } from "@rollcall/testkit";
import { until } from "@rollcall/testkit/time";
import type { RollcallProcess } from "./testing/rollcall-process.ts";
import { runClient } from "./testing/run-client.ts";
import { createServeFixture, type ServeFixture } from "./testing/serve-fixture.ts";

const CURL_PAGE = fileURLToPath(new URL("../../../docs/heartbeat-with-curl.md", import.meta.url));

// A small deployment: one process with the API, and separate health replicas. The tests build on each other,
// as in serve.test.ts.
describe("rollcall serve with several services", () => {
  let database: TestDatabase;
  let fixture: ServeFixture;
  let api: RollcallProcess;
  let health: RollcallProcess;
  /** A client configuration with the single address that serves all services. */
  let atApi: Pick<ServeFixture, "addresses" | "tokenFile">;

  beforeAll(async () => {
    database = await createTestDatabase();
    fixture = await createServeFixture(database.url);
    [api, health] = await Promise.all([fixture.serveTogether("--manual-approval"), fixture.serve("health")]);
    const { registry } = fixture.addresses;
    atApi = { ...fixture, addresses: { registry, health: registry, admin: registry, scheduler: registry } };
    fixture.agent("n1");
  });
  afterAll(async () => {
    await fixture.dispose();
    await database.drop();
  });

  it("should show the process as one node", async () => {
    await until("two processes", async () => {
      const { nodes } = await fixture.client.registry.listNodes({ types: [1] });
      return nodes.map(({ id }) => id.split("-")[0]).join() === "api,health";
    });
  });

  it("should accept agents and their approval at one address", async () => {
    await api.logged("admin token created", { file: fixture.tokenFile });
    const pending = await until("n1 to wait", async () => {
      const { text } = await runClient("node list", atApi);
      return /^n1 .*pending/m.test(text);
    });
    expect(pending).toBe(true);
    expect(await runClient("node approve n1", atApi)).toEqual({ code: 0, text: "Ok: n1 approved\n" });
    await until("n1 to be well", async () =>
      /^n1 .*approved +healthy/m.test((await runClient("node list", atApi)).text),
    );
  });

  it("should ask the owners for health that readers request", async () => {
    await until("a sample", async () => /^CPU .*%$/m.test((await runClient("node health n1", atApi)).text));
    expect((await runClient("node summary", atApi)).text).toMatch(/^Nodes: +1 connected \/ 1 total$/m);
    const token = readFileSync(fixture.tokenFile, "utf8").trim();
    const transport = createGrpcTransport({
      baseUrl: `http://${fixture.addresses.registry}`,
      interceptors: [sendBearer(token)],
    });
    const client = createClient(HealthQueryService, transport);
    const seen: string[] = [];
    for await (const { nodes } of client.watchNodeHealth({ nodeIds: ["n1"] })) {
      seen.push(...nodes.map(({ nodeId, replicaId }) => `${nodeId} ${replicaId.split("-")[0]}`));
      if (seen.length >= 2) break;
    }
    expect(new Set(seen)).toEqual(new Set(["n1 health"]));
    expect((await client.getClusterHealth({})).missingReplicaIds).toEqual([]);
  });

  it("should open sessions by calls at a replica, and hand their heartbeats on", async () => {
    const open = await fixture.serveTogether("--port", "0", "--probe-port", "0");
    const { port } = await open.logged("serving");
    const script = readFileSync(CURL_PAGE, "utf8").match(/```sh test=whole\n([\s\S]*?)```/)?.[1] ?? "";
    const env = {
      ...process.env,
      NODE: "curl-1",
      REGISTRY: `http://127.0.0.1:${port}`,
      DIR: dirname(fixture.tokenFile),
      BEATS: "3",
      INTERVAL: "0",
    };
    const { stdout } = await promisify(execFile)("sh", ["-c", script], { env });
    const answers = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(answers.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    expect(await open.killed("SIGTERM")).toBe(0);
  });

  it("should report that it cannot while no replica exists, and end cleanly", async () => {
    expect(await health.killed("SIGTERM")).toBe(0);
    const { code, text } = await runClient("node health n1", atApi);
    expect([code, text]).toEqual([0, expect.stringContaining("n1")]);
    expect(await api.killed("SIGTERM")).toBe(0);
    await api.logged("stopped");
  });
});
