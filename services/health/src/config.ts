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

/** What can be configured of health. */
export const HEALTH_KEYS = defineKeys({
  "Orchestrator.NodeManager.DisconnectTimeout": {
    schema: duration({ minMs: SECOND_MS, maxMs: DAY_MS }),
    default: DEFAULT_HEALTH_POLICY.unhealthyAfterMs,
    doc:
      "Silence after which a node is UNHEALTHY. At least two of Compute.Heartbeat.Interval; agents are told to " +
      "beat three times as often as this at least.",
    aliases: [...bacalhauNames("Requester", "NodeDisconnectedAfter"), "NodeDisconnectedAfter", "HEARTBEAT_TIMEOUT"],
    env: ["HEARTBEAT_TIMEOUT"],
  },
  "Orchestrator.NodeManager.DisconnectTimeoutFactor": {
    schema: optional(decimal({ min: 2, max: 1_000 })),
    default: undefined,
    doc:
      "The same as a multiple of Compute.Heartbeat.Interval: 6 with an interval of 5 seconds is 30 seconds. When " +
      "set, it takes the place of Orchestrator.NodeManager.DisconnectTimeout.",
    aliases: ["HEARTBEAT_TIMEOUT_FACTOR"],
    env: ["HEARTBEAT_TIMEOUT_FACTOR"],
  },
  "Orchestrator.NodeManager.UnknownTimeout": {
    schema: optional(duration({ minMs: SECOND_MS, maxMs: 30 * DAY_MS })),
    default: undefined,
    doc:
      "Silence after which a node is UNKNOWN. It must exceed Orchestrator.NodeManager.DisconnectTimeout. When " +
      "not set: 5 minutes, or twice that timeout where it is not shorter.",
  },
  "Orchestrator.NodeManager.DetectorTick": {
    schema: duration({ minMs: 10, maxMs: 60 * SECOND_MS }),
    default: 100,
    doc:
      "How often silent nodes are looked for, and so by how much one may be declared late. The cost of a tick " +
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
      "Time between two heartbeats of a node. The control plane tells it to its agents; an agent's own setting " +
      "is a wish.",
    aliases: HEARTBEAT_INTERVAL_NAMES,
    env: ["HEARTBEAT_INTERVAL", "HEARTBEAT_INTERVAL_SECONDS"],
  },
  "Compute.Heartbeat.InfoUpdateInterval": {
    schema: duration({ minMs: SECOND_MS, maxMs: DAY_MS }),
    default: DEFAULT_HEALTH_POLICY.infoIntervalMs,
    doc: "Time between two reports of a node's information, besides one whenever it changes.",
    aliases: INFO_INTERVAL_NAMES,
  },
  "Orchestrator.Brake.GroupLabel": {
    schema: text(),
    default: "zone",
    doc:
      "Label whose values are the groups of the brake, such as zones or racks: reactions are held back when most " +
      "nodes of a group, or of the whole cluster, are lost at once. Only labels of operators and join tokens " +
      "count. The same on every replica of health.",
  },
  "Health.AdvertiseAddress": {
    schema: optional(text()),
    default: undefined,
    doc:
      "HOST:PORT at which agents reach this replica, for example behind a load balancer. When not set: the host " +
      "by which they reach the registry where both run in one process, else this machine's host name, each with " +
      "the agents' port.",
  },
  "Health.HeartbeatsPerSecond": {
    schema: int({ min: 1, max: 10_000_000 }),
    default: 20_000,
    doc:
      "Most heartbeats of all agents together that one replica receives in a second. With more agents each is " +
      "told to beat less often, up to a third of the time after which it would be UNHEALTHY; beyond that, " +
      "further agents are told to come back later.",
  },
  "Health.HellosPerSecond": {
    schema: int({ min: 1, max: 100_000 }),
    default: 3_000,
    doc:
      "Agents that one replica admits in a second at most, after a burst of as many. Further ones, and those for " +
      "whom there is no place in the queue, are told when to come back, spread over the time that it takes to " +
      "welcome them: by this number, or by how fast the replica has taken in the last ones where that is slower. " +
      "No node is judged for having been sent away. " +
      "Agents that a replica sends away at its end come back within the time that follows from this number and " +
      "that of the replicas that are left.",
  },
  "Health.Workers": {
    schema: int({ min: 1, max: 64 }),
    default: 1,
    flag: "workers",
    doc:
      "Processes that share the ports of `serve health`, or of `up`, on this machine, each a health replica of " +
      "its own with its own lease. A worker that crashes is started again, and the others take over its nodes at " +
      "once. Each asks and answers the others at Listen.HealthInternalPort and the ports that follow it. Probes " +
      "and metrics are those of all together.",
  },
  "Health.MaxConnections": {
    schema: optional(int({ min: 16, max: 1_000_000 })),
    default: undefined,
    doc:
      "Most connections at a time on the agents' port of one process. At the limit, connections without a call " +
      "make room for new ones, those that have had none for the longest first; agents that were welcomed are " +
      "never cut for it. When not set: as many as the limit of open files (ulimit -n) leaves after all else, " +
      "65536 at most. When it is more than that leaves, the port takes fewer, and the log says so at the start.",
  },
  "Health.MaxStrangersPerAddress": {
    schema: int({ min: 16, max: 1_000_000 }),
    default: 2_048,
    doc:
      "Most connections of one address on the agents' port that have not finished a Hello. It must exceed the " +
      "number of agents behind one NAT or proxy that may come back at the same moment; those beyond it are cut, " +
      "and retry. Welcomed agents do not count.",
  },
  "Health.HelloQueue": {
    schema: int({ min: 1, max: 100_000 }),
    default: 2_000,
    doc: "Most agents that wait to be admitted. Further ones are told when to come back.",
  },
});

/** The values of health's keys. */
export type HealthConfig = ConfigValues<typeof HEALTH_KEYS>;

/** The policy of every node, as configured. */
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

/** The default time to UNKNOWN. Programs without that state may have timeouts longer than our default. */
function unknownAfterMs(unhealthyAfterMs: number): number {
  const { unknownAfterMs: usualMs } = DEFAULT_HEALTH_POLICY;
  return unhealthyAfterMs < usualMs ? usualMs : 2 * unhealthyAfterMs;
}

/** What is wrong between the values, for loadConfig. */
export function checkHealthConfig(
  config: HealthConfig,
): readonly { readonly path: keyof HealthConfig; readonly message: string }[] {
  const path = "Orchestrator.NodeManager.DisconnectTimeout";
  return checkPolicy(policyOf(config)).map((message) => ({ path, message }));
}

/** The address that agents are given for this replica. */
export function agentEndpointOf(options: {
  /** As configured. */
  readonly advertise: string | undefined;
  /** The port on which agents' streams are served. */
  readonly port: number;
  /** This machine's name; null where registry and health are one process, and the registry's host is meant. */
  readonly hostname: string | null;
}): string {
  const { advertise, port, hostname } = options;
  if (advertise === undefined) return `${hostname ?? ""}:${port}`;
  if (isIPv6(advertise)) return `[${advertise}]:${port}`;
  // Append the port to a bare host.
  return /:\d+$/.test(advertise) ? advertise : `${advertise}:${port}`;
}
