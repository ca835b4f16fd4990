import { mkdtempSync, realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ControlPlaneClient } from "./control-plane-client.ts";
import { freePorts } from "./free-ports.ts";
import { endAll, RollcallProcess } from "./rollcall-process.ts";
import { SHORT_THRESHOLDS } from "./up-fixture.ts";

/** The services that run in separate processes. */
type ServiceName = "registry" | "health" | "admin" | "scheduler";

/** The services, each in its own process, on one Postgres. */
export interface ServeFixture {
  readonly client: ControlPlaneClient;
  /** HOST:PORT of each service. */
  readonly addresses: Readonly<Record<ServiceName, string>>;
  /** The address for agents' streams. */
  readonly agentsAddress: string;
  /** The address of health's probes. */
  readonly healthProbes: string;
  readonly tokenFile: string;
  /** Start a service, and wait until it serves. */
  serve(service: ServiceName, ...more: readonly string[]): Promise<RollcallProcess>;
  /** Start all services but health in one process at the registry's address, and wait until it serves. */
  serveTogether(...more: readonly string[]): Promise<RollcallProcess>;
  /** Start an agent; `name` is its node id and names its state directory. */
  agent(name: string): RollcallProcess;
  /** End every process, and remove every file. */
  dispose(): Promise<void>;
}

/**
 * Reserve ports for everything that listens. The database belongs to the test.
 *
 * @param openFiles The limit of open files of each service.
 * @param main Another release's program, for services and agents.
 */
export async function createServeFixture(
  databaseUrl: string,
  openFiles?: number,
  main?: string,
): Promise<ServeFixture> {
  const root = mkdtempSync(join(realpathSync(tmpdir()), "rollcall-serve-"));
  const [registry = 0, health = 0, admin = 0, scheduler = 0, agents = 0, ...probes] = await freePorts(9);
  const ports = { registry, health, admin, scheduler };
  const listening = ["--agent-port", agents, "--internal-port", 0].map(String);
  const probePorts = { registry: probes[0], health: probes[1], admin: probes[2], scheduler: probes[3] };
  const addresses = {
    registry: `127.0.0.1:${registry}`,
    health: `127.0.0.1:${health}`,
    admin: `127.0.0.1:${admin}`,
    scheduler: `127.0.0.1:${scheduler}`,
  };
  const tokenFile = join(root, "admin-token");
  const start = async (words: readonly string[], at: ServiceName, more: readonly string[]) => {
    const own = ["--port", ports[at], "--probe-port", probePorts[at] ?? 0].map(String);
    const all = [...own, ...listening, "--data-dir", root, ...SHORT_THRESHOLDS];
    const env = { DATABASE_URL: databaseUrl };
    const process = new RollcallProcess(["serve", ...words, ...all, ...more], env, openFiles, main);
    await process.logged("serving");
    return process;
  };
  return {
    addresses,
    agentsAddress: `127.0.0.1:${agents}`,
    healthProbes: `127.0.0.1:${probePorts.health}`,
    tokenFile,
    client: new ControlPlaneClient({ ...addresses, tokenFile }),
    serve: (service, ...more) => start([service], service, more),
    serveTogether: (...more) => start(["registry", "health-query", "admin", "scheduler"], "registry", more),
    agent: (name) => {
      const identity = ["--name", name, "--state-dir", join(root, name)];
      return new RollcallProcess(["agent", "--server", addresses.registry, ...identity], {}, undefined, main);
    },
    dispose: async () => {
      await endAll();
      await rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}
