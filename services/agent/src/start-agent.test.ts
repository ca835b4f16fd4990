import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { GoAwayAction } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { loadConfig } from "@rollcall/config";
import { silentLogger } from "@rollcall/process";
import { eventually } from "@rollcall/testkit";
import { type AgentConfig, agentKeys, checkAgentConfig } from "./config.ts";
import { type RunningAgent, startAgent } from "./start-agent.ts";
import { FakeGrpcServer, send } from "./testing/fake-grpc-server.ts";

let server: FakeGrpcServer;
let stateDir: string;
let agent: RunningAgent | undefined;

beforeEach(async () => {
  server = new FakeGrpcServer();
  await server.listen();
  stateDir = join(await mkdtemp(join(tmpdir(), "rollcall-agent-")), "state");
});

afterEach(async () => {
  await agent?.close();
  agent = undefined;
  server.destroy();
  await rm(join(stateDir, ".."), { recursive: true, force: true });
});

function configOf(flags: Record<string, string> = {}): AgentConfig {
  const result = loadConfig({
    keys: agentKeys,
    flags: {
      server: `127.0.0.1:${server.port}`,
      "state-dir": stateDir,
      name: "wire-1",
      ...flags,
    },
    check: checkAgentConfig,
  });
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.config.values;
}

async function start(flags: Record<string, string> = {}): Promise<RunningAgent> {
  agent = await startAgent({
    config: configOf(flags),
    version: "0.1.0",
    log: silentLogger,
    // Backoff is short, because these tests wait for the retry.
    random: () => 0.02,
  });
  return agent;
}

const beats = () => server.kinds().filter((kind) => kind === "beat").length;

describe("startAgent()", () => {
  it("should join, beat and report over the wire, and say goodbye", async () => {
    const running = await start({ label: "zone=a", "advertise-url": "http://10.0.0.7:9000" });
    await eventually(() => expect(beats()).toBeGreaterThan(3));
    expect(server.registrations).toHaveLength(1);
    expect(server.registrations[0]).toMatchObject({
      nodeId: "wire-1",
      info: { advertiseUrl: "http://10.0.0.7:9000", agentVersion: "0.1.0", labels: { zone: "a" } },
    });
    await eventually(() => expect(server.kinds()).toContain("nodeInfo"));
    expect(server.kinds()[0]).toBe("hello");
    // On a busy machine, the stream may be opening again.
    await eventually(() => expect(running.status()).toMatchObject({ phase: "connected", membership: "APPROVED" }));
    await running.close();
    expect(server.kinds().at(-1)).toBe("goodbye");
    expect(server.kinds().filter((kind) => kind === "goodbye")).toHaveLength(1);
  });

  it("should keep its state closed to others, and skip registration the next time", async () => {
    await (await start()).close();
    expect((await stat(stateDir)).mode & 0o777).toBe(0o700);
    expect((await stat(join(stateDir, "node-key.pem"))).mode & 0o777).toBe(0o600);
    await start();
    await eventually(() => expect(agent?.status().phase).toBe("connected"));
    await agent?.close();
    const sentinel = JSON.parse(await readFile(join(stateDir, "sentinel.json"), "utf8"));
    expect(sentinel).toMatchObject({
      nodeId: "wire-1",
      clusterId: "cluster-wire",
      healthEndpoints: [`127.0.0.1:${server.port}`],
    });
    const before = server.registrations.length;
    await start();
    await eventually(() => expect(agent?.status().phase).toBe("connected"));
    expect(server.registrations).toHaveLength(before);
  });

  it("should keep its registered name if none is given", async () => {
    await start();
    await eventually(() => expect(agent?.status().phase).toBe("connected"));
    await agent?.close();
    const { "Compute.Name": _, ...rest } = configOf();
    agent = await startAgent({
      config: { ...rest, "Compute.Name": undefined },
      version: "0.1.0",
      log: silentLogger,
    });
    expect(agent.status().nodeId).toBe("wire-1");
  });

  it("should register again when the status of its stream says so", async () => {
    await start();
    await eventually(() => expect(beats()).toBeGreaterThan(0));
    server.forgetAll();
    server.streams[0]?.end();
    await eventually(() => expect(server.registrations).toHaveLength(2));
    await eventually(() => expect(agent?.status().phase).toBe("connected"));
  });

  it("should receive a GoAway right before the end of the stream", async () => {
    await start();
    await eventually(() => expect(beats()).toBeGreaterThan(0));
    const told = new Set<unknown>();
    await eventually(() => {
      // On a busy machine, the agent may have opened another stream in the meantime.
      const stream = server.streams.at(-1);
      if (stream !== undefined && !told.has(stream)) {
        told.add(stream);
        send(stream, { case: "goAway", value: { reason: ErrorReason.NODE_DELETED, action: GoAwayAction.STOP } });
        stream.end();
      }
      expect(agent?.status().phase).toBe("idle");
    });
    await eventually(async () => {
      await expect(stat(join(stateDir, "sentinel.json"))).rejects.toThrow("ENOENT");
    });
  });

  it("should reconnect automatically after the server was killed and restarted", async () => {
    await start();
    await eventually(() => expect(beats()).toBeGreaterThan(0));
    const { port } = server;
    server.destroy();
    await eventually(() => expect(agent?.status().phase).not.toBe("connected"));
    const next = new FakeGrpcServer();
    next.inherit(server);
    await next.listen(port);
    server = next;
    await eventually(() => expect(beats()).toBeGreaterThan(0));
    expect(agent?.status().phase).toBe("connected");
  });

  it("should wait for a control plane that has not started yet", async () => {
    const { port } = server;
    server.destroy();
    const running = await start();
    server = new FakeGrpcServer();
    await server.listen(port);
    await eventually(() => expect(running.status().phase).toBe("connected"));
  });

  it("should refuse to start in a state directory that is a file", async () => {
    await expect(start({ "state-dir": "/etc/hostname" })).rejects.toThrow(/EEXIST|ENOTDIR/);
  });
});
