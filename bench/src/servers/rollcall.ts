import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BenchContext } from "../bench-context.ts";
import { freePort } from "./free-port.ts";
import { ServerProcess } from "./server-process.ts";

const PROGRAM =
  extname(import.meta.url) === ".ts" ? "services/rollcall/src/main.ts" : "services/rollcall/bundle/src/start.cjs";

/** The executable of the checkout. It is the built one or, in tests, its source. */
export const ROLLCALL_PROGRAM = fileURLToPath(new URL(`../../../${PROGRAM}`, import.meta.url));

/** A running process of one service, on a store. */
export interface RunningService {
  readonly server: ServerProcess;
  /** The port of the service's API or, for health, of the agents' streams. */
  readonly port: number;
  readonly ports: ProcessPorts;
}

/** Where to run a service. The default is free ports. */
export interface ServicePlace {
  /** Ports that the service used before. Reuse them so that its agents find the service again. */
  readonly ports?: ProcessPorts;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Starts `rollcall serve` for one service, on free ports of the loopback interface. The service ends with the
 * benchmark.
 */
export async function startService(
  context: BenchContext,
  service: "registry" | "health" | "admin" | "scheduler",
  databaseUrl: string,
  flags: readonly string[] = [],
  more: ServicePlace = {},
): Promise<RunningService> {
  const ports = more.ports ?? (await freePorts());
  const port = service === "health" ? ports.agents : ports.api;
  const server = await ServerProcess.start({
    program: ROLLCALL_PROGRAM,
    args: ["serve", service, ...portFlags(ports, service === "health"), ...flags],
    env: { DATABASE_URL: databaseUrl, ...more.env },
    port,
    logFile: join(context.directory, `${service}-${port}.log`),
  });
  context.atEnd(() => server.stop());
  return { server, port, ports };
}

/** The ports of one process of the control plane. */
export interface ProcessPorts {
  readonly api: number;
  readonly agents: number;
  readonly probes: number;
  /** The port for calls between health replicas. */
  readonly internal: number;
}

/** Find free ports for one process of the control plane. */
export async function freePorts(): Promise<ProcessPorts> {
  return {
    api: await freePort(),
    agents: await freePort(),
    probes: await freePort(),
    internal: await freePort(),
  };
}

/** The flags that put a process on these ports. */
export function portFlags(ports: ProcessPorts, takesAgents: boolean): readonly string[] {
  const api = ["--port", String(ports.api), "--probe-port", String(ports.probes)];
  const agents = ["--agent-port", String(ports.agents), "--internal-port", String(ports.internal)];
  return takesAgents ? [...api, ...agents] : api;
}
