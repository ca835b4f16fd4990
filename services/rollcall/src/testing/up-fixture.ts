import { chmodSync, mkdtempSync, realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ControlPlaneClient } from "./control-plane-client.ts";
import { freePorts } from "./free-ports.ts";
import { endAll, RollcallProcess } from "./rollcall-process.ts";

/** Thresholds at which a silent node is declared unhealthy within seconds. */
export const SHORT_THRESHOLDS: readonly string[] = [
  "Orchestrator.NodeManager.DisconnectTimeout=3s",
  "Orchestrator.NodeManager.UnknownTimeout=6s",
  "Compute.Heartbeat.Interval=500ms",
].flatMap((setting) => ["--set", setting]);

/** Flags that start the agent of `up` without a keeper, because an idle keeper outlives the agent by 10 s. */
export const WITHOUT_WORK: readonly string[] = ["--set", "Work.Executors="];

/** An `up` that a test can stop and start again, with its agents. */
export interface UpFixture {
  readonly dataDirectory: string;
  readonly server: string;
  /** The address for agents' streams. */
  readonly agentsAddress: string;
  readonly probes: string;
  readonly client: ControlPlaneClient;
  /** Start `up`, and wait until it reports that everything is up. */
  up(...more: readonly string[]): Promise<RollcallProcess>;
  /** Start `up` without waiting. */
  launch(...more: readonly string[]): RollcallProcess;
  /** Start a separate agent; `name` is its node id and names its state directory. */
  agent(name: string, ...more: readonly string[]): RollcallProcess;
  /** Start a separate agent with another address of the registry, HOST:PORT. */
  agentAt(server: string, name: string, ...more: readonly string[]): RollcallProcess;
  /** Start an agent on an existing state directory. */
  agentOf(stateDirectory: string, ...more: readonly string[]): RollcallProcess;
  /** End every process, and remove every file. */
  dispose(): Promise<void>;
}

/** Prepare an `up` with its own data directory and ports. */
export async function createUpFixture(): Promise<UpFixture> {
  const root = mkdtempSync(join(realpathSync(tmpdir()), "rollcall-up-"));
  // Grant the same permissions as on /var/lib, because executions run as other users and must be able to enter the
  // directory.
  chmodSync(root, 0o711);
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
  const agentAt = (at: string, name: string, ...more: readonly string[]) => {
    const identity = ["--server", at, "--state-dir", join(root, name), "--name", name];
    return new RollcallProcess(["agent", ...identity, ...more]);
  };
  return {
    dataDirectory,
    server,
    agentsAddress: `127.0.0.1:${agentPort}`,
    probes: `127.0.0.1:${probePort}`,
    client: new ControlPlaneClient({ registry: server, admin: server, tokenFile }),
    up: async (...more) => {
      const process = launch(...more);
      await process.logged("everything is up");
      return process;
    },
    launch,
    agent: (name, ...more) => agentAt(server, name, ...more),
    agentAt,
    agentOf: (state, ...more) => new RollcallProcess(["agent", "--server", server, "--state-dir", state, ...more]),
    dispose: async () => {
      await endAll();
      await rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}
