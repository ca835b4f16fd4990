import type { ConsoleConfig } from "@rollcall/console";
import type { ProcessConfig } from "../config/process-keys.ts";

/** The services that one process of the control plane runs, and the ports that it listens on. */
export interface ProcessPlan {
  /** The name of the process in the node id, the log and Postgres: "up", the service, or "api" for several services. */
  readonly name: "up" | "api" | ServiceName;
  readonly services: readonly ServiceName[];
  readonly host: string;
  /** The API port; 0 picks a free one. */
  readonly port: number;
  readonly probePort: number;
  /** The worker's number when several processes share the ports; otherwise absent. */
  readonly worker?: number;
}

/** Plan the process of `up`: all services except health-query, and the console only if it is enabled. */
export function planUp(config: ProcessConfig & Pick<ConsoleConfig, "Console.Enabled">): ProcessPlan {
  const left = config["Console.Enabled"] ? ["health-query"] : ["health-query", "console"];
  return {
    name: "up",
    services: SERVICE_NAMES.filter((name) => !left.includes(name)),
    host: config["Listen.Host"],
    port: config["Listen.Port"],
    probePort: config["Listen.ProbePort"],
  };
}

/** The port keys of a service. `serve` has the flags --port and --probe-port for them. */
export const PORT_KEYS = {
  registry: { port: "Listen.RegistryPort", probePort: "Listen.RegistryProbePort" },
  health: { port: "Listen.HealthPort", probePort: "Listen.HealthProbePort" },
  "health-query": { port: "Listen.HealthPort", probePort: "Listen.HealthProbePort" },
  admin: { port: "Listen.AdminPort", probePort: "Listen.AdminProbePort" },
  scheduler: { port: "Listen.SchedulerPort", probePort: "Listen.SchedulerProbePort" },
  console: { port: "Listen.ConsolePort", probePort: "Listen.ConsoleProbePort" },
} as const satisfies Record<ServiceName, Record<"port" | "probePort", keyof ProcessConfig & string>>;

/** The port keys of several services in one process, the same as for `up`. */
const SHARED_PORT_KEYS = { port: "Listen.Port", probePort: "Listen.ProbePort" } as const;

/** The port keys of a process with these services. */
export function portKeysOf(services: ServiceSet): (typeof PORT_KEYS)[ServiceName] | typeof SHARED_PORT_KEYS {
  const [only, ...more] = services;
  return more.length === 0 ? PORT_KEYS[only] : SHARED_PORT_KEYS;
}

/** Plan a process for one service, or for several behind one port. */
export function planServe(services: ServiceSet, config: ProcessConfig): ProcessPlan {
  const { port, probePort } = portKeysOf(services);
  const [only, ...more] = services;
  return {
    name: more.length === 0 ? only : "api",
    services,
    host: config["Listen.Host"],
    port: config[port],
    probePort: config[probePort],
  };
}

/** Choose the services to run in one process, or explain the problem with the names. */
export function chooseServices(
  words: readonly string[],
): { readonly ok: true; readonly services: ServiceSet } | { readonly ok: false; readonly problem: string } {
  const known = SERVICE_NAMES.join(", ");
  const unknown = words.find((word) => !SERVICE_NAMES.some((name) => name === word));
  if (unknown !== undefined) return { ok: false, problem: `'${unknown}' is not a service, should be one of: ${known}` };
  const repeated = words.find((word, index) => words.indexOf(word) < index);
  if (repeated !== undefined) return { ok: false, problem: `'${repeated}' is given twice` };
  const [first, ...more] = SERVICE_NAMES.filter((name) => words.includes(name));
  if (first === undefined) return { ok: false, problem: `missing service, should be one of: ${known}` };
  const services = [first, ...more] as const;
  if (services.includes("health") && services.includes("health-query")) {
    return { ok: false, problem: "health includes health-query: name only one of them" };
  }
  return { ok: true, services };
}

/** The plan for one of several workers. */
export function planWorker(plan: ProcessPlan, worker: number): ProcessPlan {
  return { ...plan, worker };
}

/** The process's name in its instance and in its node id. */
export function shownName({ name, worker }: ProcessPlan): string {
  return worker === undefined ? name : `${name}-w${worker}`;
}

/** The port at which other health replicas call this process. Each worker has its own port. 0 picks a free one. */
export function internalPort({ worker = 1 }: ProcessPlan, config: ProcessConfig): number {
  const first = config["Listen.HealthInternalPort"];
  return first === 0 ? 0 : first + worker - 1;
}

/** Whether other machines can connect to an address. */
export function isBeyondLoopback(host: string): boolean {
  return host !== "localhost" && host !== "::1" && !/^127(?:\.\d{1,3}){3}$/.test(host);
}

/** The address at which a client on this machine reaches a server that listens on `host`. */
export function localAddress(host: string, port: number): string {
  const reached = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return reached.includes(":") ? `[${reached}]:${port}` : `${reached}:${port}`;
}

/** The services that `serve` can run. health-query serves clients that read health, and holds no agents' streams. */
export const SERVICE_NAMES = ["registry", "health", "health-query", "admin", "scheduler", "console"] as const;

/** A service of the control plane. */
export type ServiceName = (typeof SERVICE_NAMES)[number];

/** One service, or several without duplicates, in the order of SERVICE_NAMES. */
export type ServiceSet = readonly [ServiceName, ...ServiceName[]];
