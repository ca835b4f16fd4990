import { mkdtempSync, realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ControlPlaneClient } from "./control-plane-client.ts";
import { freePorts } from "./free-ports.ts";
import { endAll, RollcallProcess } from "./rollcall-process.ts";

/** Thresholds with which a silent node is judged within seconds. */
export const SHORT_THRESHOLDS: readonly string[] = [
  "Orchestrator.NodeManager.DisconnectTimeout=3s",
  "Orchestrator.NodeManager.UnknownTimeout=6s",
  "Compute.Heartbeat.Interval=500ms",
].flatMap((setting) => ["--set", setting]);

/** An `up` that a test can end and start again, with the agents that belong to it. */
export interface UpFixture {
  readonly dataDirectory: string;
  readonly server: string;
  readonly probes: string;
  readonly client: ControlPlaneClient;
  /** Start `up`, and wait until it says that everything is up. */
  up(...more: readonly string[]): Promise<RollcallProcess>;
  /** Start `up`, and wait for nothing. */
  launch(...more: readonly string[]): RollcallProcess;
  /** Start an agent of its own; `name` is its node id and names its state directory. */
  agent(name: string, ...more: readonly string[]): RollcallProcess;
  /** Start an agent on an existing state directory. */
  agentOf(stateDirectory: string): RollcallProcess;
  /** End every process, and remove every file. */
  dispose(): Promise<void>;
}

/** Prepare an `up` with a data directory and ports of its own. */
export async function createUpFixture(): Promise<UpFixture> {
  const root = mkdtempSync(join(realpathSync(tmpdir()), "rollcall-up-"));
  const dataDirectory = join(root, "data");
  const [port = 0, agentPort = 0, probePort = 0, internalPort = 0] = await freePorts(4);
  const server = `127.0.0.1:${port}`;
  const ports = [
    "--port",
    port,
    "--agent-port",
    agentPort,
    "--probe-port",
    probePort,
    "--internal-port",
    internalPort,
  ].map(String);
  const tokenFile = join(dataDirectory, "admin-token");
  const launch = (...more: readonly string[]) =>
    new RollcallProcess(["up", "--data-dir", dataDirectory, ...ports, ...SHORT_THRESHOLDS, ...more]);
  return {
    dataDirectory,
    server,
    probes: `127.0.0.1:${probePort}`,
    client: new ControlPlaneClient({ registry: server, admin: server, tokenFile }),
    up: async (...more) => {
      const process = launch(...more);
      await process.logged("everything is up");
      return process;
    },
    launch,
    agent: (name, ...more) => {
      const state = join(root, name);
      const identity = ["--server", server, "--state-dir", state, "--name", name];
      return new RollcallProcess(["agent", ...identity, ...more]);
    },
    agentOf: (state) => new RollcallProcess(["agent", "--server", server, "--state-dir", state]),
    dispose: async () => {
      await endAll();
      await rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}
