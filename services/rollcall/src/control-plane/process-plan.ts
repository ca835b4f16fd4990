import type { ConsoleConfig } from "@rollcall/console";
import type { ProcessConfig } from "../config/process-keys.ts";

/** What one process of the control plane runs, and where it listens. */
export interface ProcessPlan {
  /** How it is called in its node's id, in the log and in Postgres: "up", the service, or "api" for several. */
  readonly name: "up" | "api" | ServiceName;
  readonly services: readonly ServiceName[];
  readonly host: string;
  /** The API's port; 0 takes a free one. */
  readonly port: number;
  readonly probePort: number;
  /** The worker's number when several processes share the ports; absent when the process has them to itself. */
  readonly worker?: number;
}

/** Everything in one process. */
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

/** The keys of a service's ports. `serve` has the flags --port and --probe-port for them. */
export const PORT_KEYS = {
  registry: { port: "Listen.RegistryPort", probePort: "Listen.RegistryProbePort" },
  health: { port: "Listen.HealthPort", probePort: "Listen.HealthProbePort" },
  "health-query": { port: "Listen.HealthPort", probePort: "Listen.HealthProbePort" },
  admin: { port: "Listen.AdminPort", probePort: "Listen.AdminProbePort" },
  scheduler: { port: "Listen.SchedulerPort", probePort: "Listen.SchedulerProbePort" },
  console: { port: "Listen.ConsolePort", probePort: "Listen.ConsoleProbePort" },
} as const satisfies Record<ServiceName, Record<"port" | "probePort", keyof ProcessConfig & string>>;

/** The ports of several services in one process, as those of `up`. */
const SHARED_PORT_KEYS = { port: "Listen.Port", probePort: "Listen.ProbePort" } as const;

/** The keys of the ports of a process that serves these. */
export function portKeysOf(services: ServiceSet): (typeof PORT_KEYS)[ServiceName] | typeof SHARED_PORT_KEYS {
  const [only, ...more] = services;
  return more.length === 0 ? PORT_KEYS[only] : SHARED_PORT_KEYS;
}

/** One service in its own process, or several in one behind one port. */
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

/** Services to run in one process, or what is wrong with naming them. */
export function chooseServices(
  words: readonly string[],
): { readonly ok: true; readonly services: ServiceSet } | { readonly ok: false; readonly problem: string } {
  const known = SERVICE_NAMES.join(", ");
  const unknown = words.find((word) => !SERVICE_NAMES.some((name) => name === word));
  if (unknown !== undefined) return { ok: false, problem: `'${unknown}' is not a service, should be one of: ${known}` };
  const repeated = words.find((word, index) => words.indexOf(word) < index);
  if (repeated !== undefined) return { ok: false, problem: `'${repeated}' is named twice` };
  const [first, ...more] = SERVICE_NAMES.filter((name) => words.includes(name));
  if (first === undefined) return { ok: false, problem: `no service was named, should be one of: ${known}` };
  const services = [first, ...more] as const;
  if (services.includes("health") && services.includes("health-query")) {
    return { ok: false, problem: "health answers readers itself: name health or health-query" };
  }
  return { ok: true, services };
}

/** The same for one of several workers. */
export function planWorker(plan: ProcessPlan, worker: number): ProcessPlan {
  return { ...plan, worker };
}

/** How a process is called in its instance and in its node's id. */
export function shownName({ name, worker }: ProcessPlan): string {
  return worker === undefined ? name : `${name}-w${worker}`;
}

/** The port at which other replicas of health ask this process: each worker has one of its own. 0 takes a free one. */
export function internalPort({ worker = 1 }: ProcessPlan, config: ProcessConfig): number {
  const first = config["Listen.HealthInternalPort"];
  return first === 0 ? 0 : first + worker - 1;
}

/** Whether an address can be reached from other machines. */
export function isBeyondLoopback(host: string): boolean {
  return host !== "localhost" && host !== "::1" && !/^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Where a client on this machine reaches what listens on a host. */
export function localAddress(host: string, port: number): string {
  const reached = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return reached.includes(":") ? `[${reached}]:${port}` : `${reached}:${port}`;
}

/** The services that `serve` runs. health-query is the readers' side of health, without a replica for agents. */
export const SERVICE_NAMES = ["registry", "health", "health-query", "admin", "scheduler", "console"] as const;

/** A service of the control plane. */
export type ServiceName = (typeof SERVICE_NAMES)[number];

/** One service, or several, each once and in the order of SERVICE_NAMES. */
export type ServiceSet = readonly [ServiceName, ...ServiceName[]];
