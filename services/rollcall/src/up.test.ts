import { statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { readRunFile } from "@rollcall/cli";
import { until } from "@rollcall/testkit/time";
import { statesOf } from "./testing/control-plane-client.ts";
import { endProcess, type RollcallProcess } from "./testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "./testing/up-fixture.ts";

const WELL = "APPROVED CONNECTED HEALTHY";
const CHANGES: readonly string[] = ["node.connection.changed", "node.health.changed"];

// One story: each test continues with the state of the previous one.
describe("rollcall up", () => {
  let fixture: UpFixture;
  let up: RollcallProcess;
  let own: string;
  let second: RollcallProcess;
  let ownAgent: RollcallProcess;
  beforeAll(async () => {
    fixture = await createUpFixture();
    up = await fixture.up();
  });
  afterAll(() => fixture.dispose());

  it("should show its own machine, approved and HEALTHY, and itself", async () => {
    const { client } = fixture;
    own = await until("a compute node", async () => {
      const { nodes } = await client.registry.listNodes({ types: [2] });
      return nodes[0]?.id;
    });
    await client.becomes(own, WELL);
    // The node can take work as soon as its keeper has reported its capabilities.
    const node = await until("a node that may take work", async () => {
      const { node: seen } = await client.registry.getNode({ node: own });
      return seen?.mayTakeWork && seen;
    });
    // The test stops and starts this machine's agent more often than a healthy machine would. This must not count as
    // flapping.
    const scope = { scope: { case: "node", value: own } } as const;
    await client.policies.setHealthPolicy({ scope, values: { flappingHold: { seconds: 0n } } });
    expect(node.info?.cpu?.threads).toBeGreaterThan(0);
    expect(node.info?.memoryBytes).toBeGreaterThan(0n);
    const { nodes } = await client.registry.listNodes({ types: [1] });
    expect(nodes.map(({ id }) => id)).toEqual([expect.stringMatching(/^up-.+-\d+$/)]);
    expect(nodes.map(statesOf)).toEqual([expect.stringMatching(/^APPROVED CONNECTED/)]);
  });

  it("should leave what its clients need, readable only by their user", () => {
    const { dataDirectory, server } = fixture;
    expect(readRunFile(dataDirectory)).toMatchObject({ pid: up.pid, server });
    for (const file of ["admin-token", "run.json", "agent/node-key.pem"]) {
      expect([file, statSync(join(dataDirectory, file)).mode & 0o777]).toEqual([file, 0o600]);
    }
  });

  it("should answer probes", async () => {
    const ready = await fetch(`http://${fixture.probes}/readyz`);
    expect(ready.status).toBe(200);
    expect(await ready.json()).toMatchObject({ ready: true });
    expect((await fetch(`http://${fixture.probes}/livez`)).status).toBe(200);
    const metrics = await (await fetch(`http://${fixture.probes}/metrics`)).text();
    expect(metrics).toContain("rollcall_");
  });

  it("should show an agent that was killed as DISCONNECTED, UNHEALTHY, then UNKNOWN", async () => {
    const { client } = fixture;
    const lost = fixture.agent("lost");
    second = fixture.agent("second");
    await client.becomes("lost", WELL);
    await client.becomes("second", WELL);
    await client.grantTime("second");
    await lost.killed();
    await client.becomes("lost", "APPROVED DISCONNECTED UNKNOWN");
    // Read the states from the event log instead of polling, because on a busy machine, a state can end before the next
    // poll.
    const changes = (await client.events("lost")).filter(({ type }) => CHANGES.includes(type)).slice(-3);
    expect(changes.map(({ after }) => after?.health ?? after?.connection)).toEqual([
      "DISCONNECTED",
      "UNHEALTHY",
      "UNKNOWN",
    ]);
  });

  it("should restart its agent when it is killed, and leave it stopped when it is stopped", async () => {
    endProcess(Number((await up.logged("local agent started")).pid));
    expect(await up.logged("the local agent crashed; restarting it")).toMatchObject({ signal: "SIGKILL" });
    const { pid } = await up.logged("local agent started", {}, 1);
    await fixture.client.becomes(own, WELL);
    endProcess(Number(pid), "SIGTERM");
    const { command } = await up.logged("the local agent exited; restart it with this command");
    expect(command).toBe(
      `rollcall agent --set Compute.Heartbeat.Interval=500ms --server ${fixture.server} --state-dir ` +
        `${fixture.dataDirectory}/agent`,
    );
  });

  it("should show it HEALTHY again after a restart", async () => {
    ownAgent = fixture.agentOf(join(fixture.dataDirectory, "agent"));
    await fixture.client.becomes(own, WELL);
    await fixture.client.grantTime(own);
  });

  it("should refuse a second agent with the same state directory", async () => {
    const third = fixture.agentOf(join(fixture.dataDirectory, "agent"));
    expect(await third.exit()).toBe(1);
    expect(third.err).toBe(
      `an agent is already running for ${fixture.dataDirectory}/agent, as process ${ownAgent.pid}: stop it first, or ` +
        "choose another --state-dir\n",
    );
  });

  it("should survive the death of Postgres: streams continue, no node becomes unhealthy, and everything settles", async () => {
    const before = await fixture.client.epoch("second");
    const { pid } = await up.logged("postgres started");
    endProcess(Number(pid));
    await up.logged("postgres started", {}, 1);
    await until("a decision", () => fixture.client.admin.cordonNode({ node: "second", reason: "drill" }));
    expect(await until("its epoch", () => fixture.client.epoch("second"))).toBe(before);
    expect(await fixture.client.healthHistory("second")).toEqual(["HEALTHY"]);
  });

  it("should survive its own death: agents that kept running reconnect and are never declared unhealthy", async () => {
    const epochs = await epochsOf("second", own);
    expect(await up.killed()).toBe("SIGKILL");
    up = await fixture.up();
    await up.logged("an agent is already running; leaving it unchanged", { pid: ownAgent.pid });
    await haveComeBack(epochs);
    expect(await fixture.client.healthHistory("second")).toEqual(["HEALTHY"]);
  });

  it("should survive the death of everything at once", async () => {
    const epochs = await epochsOf("second", own);
    const { pid } = await up.logged("postgres started");
    for (const process of [up, second, ownAgent]) process.kill("SIGKILL");
    endProcess(Number(pid));
    await Promise.all([up, second, ownAgent].map((process) => process.exit()));
    up = await fixture.up();
    second = fixture.agent("second");
    await haveComeBack(epochs);
    // Earlier decisions are still in effect.
    const node = await fixture.client.node("second");
    expect(node?.scheduling?.holds.map(({ message }) => message)).toEqual(["drill"]);
    expect(await fixture.client.healthHistory("second")).toEqual(["HEALTHY"]);
  });

  it("should shut down cleanly when asked", async () => {
    const epochs = await epochsOf("second", own);
    up.kill("SIGTERM");
    expect(await up.exit()).toBe(0);
    await up.logged("stopped");
    expect(readRunFile(fixture.dataDirectory)).toBeNull();
    up = await fixture.up();
    await haveComeBack(epochs);
    const events = await fixture.client.events(own);
    const goodbye = events.findIndex(
      ({ type, reason }) => type === "node.connection.changed" && reason === "AGENT_SHUTDOWN",
    );
    // Do not check this event's reason. It depends on how many times the node failed earlier, while its thresholds were
    // short.
    const next = events.slice(goodbye).find(({ type }) => type === "node.health.changed");
    expect([goodbye >= 0, next?.after?.health]).toEqual([true, "UNHEALTHY"]);
    expect(await fixture.client.healthHistory("second")).toEqual(["HEALTHY"]);
  });

  /** The session epoch of each node. */
  async function epochsOf(...ids: readonly string[]): Promise<ReadonlyMap<string, bigint>> {
    const epochs = ids.map(async (id) => [id, await fixture.client.epoch(id)] as const);
    return new Map(await Promise.all(epochs));
  }

  /** Wait until each node has opened a new stream and is healthy. */
  async function haveComeBack(epochs: ReadonlyMap<string, bigint>): Promise<void> {
    for (const [id, epoch] of epochs) {
      await until(`a new stream of ${id}`, async () => {
        const next = await fixture.client.epoch(id);
        return next > epoch ? next : undefined;
      });
      await fixture.client.becomes(id, WELL);
    }
  }
});
