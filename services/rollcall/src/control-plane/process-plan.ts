import type { ProcessConfig } from "../config/process-keys.ts";

/** What one process of the control plane runs, and where it listens. */
export interface ProcessPlan {
  /** How it is called in its node's id, in the log and in Postgres: "up" or the service. */
  readonly name: "up" | ServiceName;
  readonly services: readonly ServiceName[];
  readonly host: string;
  /** The API's port; 0 takes a free one. */
  readonly port: number;
  readonly probePort: number;
  /** The worker's number when several processes share the ports; absent when the process has them to itself. */
  readonly worker?: number;
}

/** Everything in one process. */
export function planUp(config: ProcessConfig): ProcessPlan {
  return {
    name: "up",
    services: ["registry", "health", "admin", "scheduler"],
    host: config["Listen.Host"],
    port: config["Listen.Port"],
    probePort: config["Listen.ProbePort"],
  };
}

/** The keys of a service's ports. `serve` has the flags --port and --probe-port for them. */
export const PORT_KEYS = {
  registry: { port: "Listen.RegistryPort", probePort: "Listen.RegistryProbePort" },
  health: { port: "Listen.HealthPort", probePort: "Listen.HealthProbePort" },
  admin: { port: "Listen.AdminPort", probePort: "Listen.AdminProbePort" },
  scheduler: { port: "Listen.SchedulerPort", probePort: "Listen.SchedulerProbePort" },
} as const satisfies Record<ServiceName, Record<"port" | "probePort", keyof ProcessConfig & string>>;

/** One service in its own process. */
export function planServe(service: ServiceName, config: ProcessConfig): ProcessPlan {
  return {
    name: service,
    services: [service],
    host: config["Listen.Host"],
    port: config[PORT_KEYS[service].port],
    probePort: config[PORT_KEYS[service].probePort],
  };
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

/** The services that `serve` runs. */
export const SERVICE_NAMES = ["registry", "health", "admin", "scheduler"] as const;

/** A service of the control plane. */
export type ServiceName = (typeof SERVICE_NAMES)[number];
