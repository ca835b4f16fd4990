import net from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { until } from "@rollcall/testkit/time";
import type { RollcallProcess } from "./testing/rollcall-process.ts";
import { createServeFixture, type ServeFixture } from "./testing/serve-fixture.ts";

/** Maximum number of open files: so low that a flood on the agents' port could use all descriptors. */
const OPEN_FILES = 400;
const FLOOD = 600;

describe("a process with few descriptors", () => {
  let database: TestDatabase;
  let fixture: ServeFixture;
  let health: RollcallProcess;
  const sockets: net.Socket[] = [];
  beforeAll(async () => {
    database = await createTestDatabase();
    fixture = await createServeFixture(database.url, OPEN_FILES);
    [, health] = await Promise.all([fixture.serve("registry"), fixture.serve("health"), fixture.serve("admin")]);
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await fixture.dispose();
    await database.drop();
  });

  it("should say at startup how many it has, and that they are too few", async () => {
    const line = await health.logged(
      "the limit of open files is too low for the configured connections; accepting fewer, raise ulimit -n",
    );
    expect(line).toMatchObject({ level: "warn", open_files: OPEN_FILES, api: 30, agents: 83 });
  });

  it("should answer probes and the API, and keep its agents, while idle connections flood their port", async () => {
    const agent = fixture.agent("n1");
    await fixture.client.becomes("n1", "APPROVED CONNECTED HEALTHY");
    const [host, port] = fixture.agentsAddress.split(":");
    for (let count = 0; count < FLOOD; count += 1) {
      const socket = net.connect({ host: host ?? "", port: Number(port) });
      sockets.push(socket.on("error", () => {}).resume());
    }
    await until("all have been tried", () => sockets.every(({ connecting }) => !connecting));
    for (const path of ["livez", "readyz"]) {
      const answer = await fetch(`http://${fixture.healthProbes}/${path}`);
      expect([path, answer.status]).toEqual([path, 200]);
    }
    const api = await fetch(`http://${fixture.addresses.health}/`);
    expect(api.status).toBe(404);
    await health.logged("connections without a call were cut to make room at the limit", {
      port: "agents",
    });
    const text = await (await fetch(`http://${fixture.healthProbes}/metrics`)).text();
    expect(text).toMatch(/^rollcall_connections_limit{port="agents"} 83$/m);
    expect(text).toMatch(/^rollcall_health_sessions 1$/m);
    expect(await fixture.client.events("n1")).not.toContainEqual(expect.objectContaining({ reason: "STREAM_BROKEN" }));
    await agent.killed();
  });
});
