import { isIPv6 } from "node:net";
import {
  bacalhauNames,
  type ConfigValues,
  decimal,
  defineKeys,
  duration,
  HEARTBEAT_INTERVAL_NAMES,
  INFO_INTERVAL_NAMES,
  int,
  optional,
  text,
} from "@rollcall/config";
import { checkPolicy, DEFAULT_HEALTH_POLICY, type HealthPolicy } from "@rollcall/domain";

const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;

/** Configuration keys of the health service. */
export const HEALTH_KEYS = defineKeys({
  "Orchestrator.NodeManager.DisconnectTimeout": {
    schema: duration({ minMs: SECOND_MS, maxMs: DAY_MS }),
    default: DEFAULT_HEALTH_POLICY.unhealthyAfterMs,
    doc:
      "Silence after which a node is UNHEALTHY. At least twice Compute.Heartbeat.Interval. Agents must " +
      "send at least three heartbeats within this time.",
    aliases: [...bacalhauNames("Requester", "NodeDisconnectedAfter"), "NodeDisconnectedAfter", "HEARTBEAT_TIMEOUT"],
    env: ["HEARTBEAT_TIMEOUT"],
  },
  "Orchestrator.NodeManager.DisconnectTimeoutFactor": {
    schema: optional(decimal({ min: 2, max: 1_000 })),
    default: undefined,
    doc:
      "The same timeout as a multiple of Compute.Heartbeat.Interval: 6 with an interval of 5 seconds is 30 " +
      "seconds. If " +
      "set, it replaces Orchestrator.NodeManager.DisconnectTimeout.",
    aliases: ["HEARTBEAT_TIMEOUT_FACTOR"],
    env: ["HEARTBEAT_TIMEOUT_FACTOR"],
  },
  "Orchestrator.NodeManager.UnknownTimeout": {
    schema: optional(duration({ minMs: SECOND_MS, maxMs: 30 * DAY_MS })),
    default: undefined,
    doc:
      "Silence after which a node is UNKNOWN. It must exceed Orchestrator.NodeManager.DisconnectTimeout. If " +
      "not set: 5 minutes, or twice that timeout if the timeout is 5 minutes or more.",
  },
  "Orchestrator.NodeManager.DetectorTick": {
    schema: duration({ minMs: 10, maxMs: 60 * SECOND_MS }),
    default: 100,
    doc:
      "How often to check for silent nodes; a node can be declared UNHEALTHY or UNKNOWN this much late. The cost " +
      "of a check " +
      "does not depend on the number of nodes.",
    aliases: [
      ...bacalhauNames("Requester", "HeartbeatFrequency"),
      ...bacalhauNames("Requester", "HeartbeatCheckFrequency"),
      "HeartbeatCheckFrequency",
    ],
  },
  "Compute.Heartbeat.Interval": {
    schema: duration({ minMs: 100, maxMs: DAY_MS }),
    default: DEFAULT_HEALTH_POLICY.heartbeatIntervalMs,
    doc:
      "Time between two heartbeats of a node. The control plane sends it to the agents; an agent's own setting " +
      "is only a request.",
    aliases: HEARTBEAT_INTERVAL_NAMES,
    env: ["HEARTBEAT_INTERVAL", "HEARTBEAT_INTERVAL_SECONDS"],
  },
  "Compute.Heartbeat.InfoUpdateInterval": {
    schema: duration({ minMs: SECOND_MS, maxMs: DAY_MS }),
    default: DEFAULT_HEALTH_POLICY.infoIntervalMs,
    doc: "Time between two reports of a node's information. Changes are also reported at once.",
    aliases: INFO_INTERVAL_NAMES,
  },
  "Orchestrator.Brake.GroupLabel": {
    schema: text(),
    default: "zone",
    doc:
      "Label whose values are the groups of the brake, such as zones or racks: reactions are held back when " +
      "most nodes of a group, or of the whole cluster, are lost at once. Only labels set by operators and join " +
      "tokens count. Use the same value on every health replica.",
  },
  "Health.AdvertiseAddress": {
    schema: optional(text()),
    default: undefined,
    doc:
      "HOST:PORT at which agents reach this replica, for example behind a load balancer. If not set: the " +
      "agents' port, on the registry's host if registry and health run in one process, otherwise on this " +
      "machine's host name.",
  },
  "Health.HeartbeatsPerSecond": {
    schema: int({ min: 1, max: 10_000_000 }),
    default: 20_000,
    doc:
      "Maximum number of heartbeats that one replica receives per second from all agents together. With more " +
      "agents, each sends them less often, at intervals of up to a third of the time after which its node would be " +
      "UNHEALTHY. When that is not enough, additional agents are turned away and retry later.",
  },
  "Health.HellosPerSecond": {
    schema: int({ min: 1, max: 100_000 }),
    default: 3_000,
    doc:
      "Maximum number of agents that one replica admits per second, after a burst of the same size. Additional " +
      "agents, and those that do not fit into the queue, get a retry delay. The delays spread over the time that it " +
      "takes to admit them at this rate or at the replica's recent rate, whichever is slower. No node is declared " +
      "unhealthy because its agent was turned away. The agents of a replica that shuts down reconnect within a " +
      "time that depends on this rate and the number of remaining replicas.",
  },
  "Health.Workers": {
    schema: int({ min: 1, max: 64 }),
    default: 1,
    flag: "workers",
    doc:
      "Number of processes that share the ports of `serve health`, or of `up`, on this machine. Each is a " +
      "health replica with its own lease. If a worker crashes, it is restarted, and the others take over its " +
      "nodes at once. Workers call each other at Listen.HealthInternalPort and the ports that follow it. " +
      "Probes and metrics cover all of them together.",
  },
  "Health.MaxConnections": {
    schema: optional(int({ min: 16, max: 1_000_000 })),
    default: undefined,
    doc:
      "Maximum number of concurrent connections to the agents' port of one process. At the limit, connections " +
      "without a call are closed to make room for new ones, starting with those that have been without a call " +
      "for the longest time; welcomed agents are never disconnected for this. If not set: the limit " +
      "of open files (ulimit -n) minus all other uses, at most 65536. A higher value than the limit allows is " +
      "reduced at startup, with a warning in the log.",
  },
  "Health.MaxAnonymousPerAddress": {
    schema: int({ min: 16, max: 1_000_000 }),
    default: 2_048,
    doc:
      "Maximum number of connections from one address to the agents' port that have not finished a Hello. It " +
      "must exceed the number of agents behind one NAT or proxy that can reconnect at the same moment; " +
      "connections beyond it are closed, and their agents retry. Welcomed agents do not count.",
  },
  "Health.HelloQueue": {
    schema: int({ min: 1, max: 100_000 }),
    default: 2_000,
    doc: "Maximum number of agents that wait to be admitted. More are turned away and retry later.",
  },
});

/** The values of the health service's keys. */
export type HealthConfig = ConfigValues<typeof HEALTH_KEYS>;

/** The configured policy. It applies to nodes without an override. */
export function policyOf(config: HealthConfig): HealthPolicy {
  const heartbeatIntervalMs = config["Compute.Heartbeat.Interval"];
  const factor = config["Orchestrator.NodeManager.DisconnectTimeoutFactor"];
  const unhealthyAfterMs =
    factor === undefined
      ? config["Orchestrator.NodeManager.DisconnectTimeout"]
      : Math.round(factor * heartbeatIntervalMs);
  return {
    ...DEFAULT_HEALTH_POLICY,
    unhealthyAfterMs,
    unknownAfterMs: config["Orchestrator.NodeManager.UnknownTimeout"] ?? unknownAfterMs(unhealthyAfterMs),
    heartbeatIntervalMs,
    infoIntervalMs: config["Compute.Heartbeat.InfoUpdateInterval"],
  };
}

/**
 * The default time to UNKNOWN: that of the default policy, or twice the time to UNHEALTHY if the default policy's time
 * is not longer than the time to UNHEALTHY. The second case occurs with configurations that were written for programs
 * without an UNKNOWN state.
 */
function unknownAfterMs(unhealthyAfterMs: number): number {
  const { unknownAfterMs: usualMs } = DEFAULT_HEALTH_POLICY;
  return unhealthyAfterMs < usualMs ? usualMs : 2 * unhealthyAfterMs;
}

/** Check the values against each other, for loadConfig. */
export function checkHealthConfig(
  config: HealthConfig,
): readonly { readonly path: keyof HealthConfig; readonly message: string }[] {
  const path = "Orchestrator.NodeManager.DisconnectTimeout";
  return checkPolicy(policyOf(config)).map((message) => ({ path, message }));
}

/** The address that agents are given for this replica. */
export function agentEndpointOf(options: {
  /** The configured address; undefined for none. */
  readonly advertise: string | undefined;
  /** The port that serves agents' streams. */
  readonly port: number;
  /**
   * This machine's host name; null when registry and health run in one process, because agents then use the registry's
   * host.
   */
  readonly hostname: string | null;
}): string {
  const { advertise, port, hostname } = options;
  if (advertise === undefined) return `${hostname ?? ""}:${port}`;
  if (isIPv6(advertise)) return `[${advertise}]:${port}`;
  // Append the port to a bare host.
  return /:\d+$/.test(advertise) ? advertise : `${advertise}:${port}`;
}
