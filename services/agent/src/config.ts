import { checkAgentLabels, isNodeId, NODE_ID_PATTERN } from "@rollcall/domain";
import {
  address,
  type ConfigValues,
  defineKeys,
  duration,
  optional,
  stringMap,
  text,
} from "@rollcall/runtime/config";

const NODE_ID_RULE =
  "a node id: 1-63 characters of [A-Za-z0-9._-], starting with a letter or digit";

/** The configuration of an agent. */
export const agentKeys = defineKeys({
  "Compute.Server": {
    schema: address(),
    default: { host: "127.0.0.1", port: 7700 },
    flag: "server",
    doc: "Where the agent registers: the registry's address. Registration tells it where the health replicas are.",
  },
  "Compute.StateDir": {
    schema: optional(text()),
    default: undefined,
    flag: "state-dir",
    doc: "Directory of the agent's key and of its sentinel. Each agent on a machine needs its own. When not set: /var/lib/rollcall/agent for root, else .rollcall/agent in the user's home.",
  },
  "Compute.Name": {
    schema: optional(text({ pattern: NODE_ID_PATTERN, expects: NODE_ID_RULE })),
    default: undefined,
    flag: "name",
    doc: "The node's id, chosen at its first registration. When not set: the id it registered with before, else the host name.",
  },
  "Compute.AdvertiseURL": {
    schema: optional(text({ maxLength: 2_048 })),
    default: undefined,
    flag: "advertise-url",
    doc: "Where others can reach this node, shown with it. Rollcall itself never connects to it.",
  },
  "Compute.Labels": {
    schema: stringMap(),
    default: {},
    flag: "label",
    aliases: ["Labels", "Node.Labels"],
    doc: "The node's own labels, at most 64, in Kubernetes' syntax; none may begin with rollcall.io/.",
  },
  "Compute.Heartbeat.Interval": {
    schema: optional(duration({ minMs: 100 })),
    default: undefined,
    aliases: [
      "Node.Compute.ControlPlaneSettings.HeartbeatFrequency",
      "Compute.ControlPlaneSettings.HeartbeatFrequency",
      "Compute.HeartbeatFrequency",
      "HEARTBEAT_INTERVAL",
    ],
    doc: "The time between heartbeats that this node wishes for. The health policy wins.",
  },
  "Compute.Heartbeat.InfoUpdateInterval": {
    schema: optional(duration({ minMs: 1_000 })),
    default: undefined,
    aliases: [
      "Node.Compute.ControlPlaneSettings.InfoUpdateFrequency",
      "Compute.ControlPlaneSettings.InfoUpdateFrequency",
      "Compute.InfoUpdateFrequency",
    ],
    doc: "The longest time between two looks at whether the machine has changed. A change is reported at once; the report's own interval is the health policy's. When not set: 1 minute.",
  },
  "Compute.Heartbeat.ResourceUpdateInterval": {
    schema: duration(),
    default: 0,
    aliases: [
      "Node.Compute.ControlPlaneSettings.ResourceUpdateFrequency",
      "Compute.ControlPlaneSettings.ResourceUpdateFrequency",
      "Compute.ResourceUpdateFrequency",
    ],
    doc: "The least time between two measurements of resource usage, for machines where measuring is costly. Usage travels in each heartbeat; a heartbeat that comes sooner repeats the last one.",
  },
});

/** The values of an agent's configuration. */
export type AgentConfig = ConfigValues<typeof agentKeys>;

/** What is wrong with values that are each right; handed to loadConfig as its `check`. */
export function checkAgentConfig(
  values: AgentConfig,
): readonly { readonly path: keyof AgentConfig & string; readonly message: string }[] {
  return checkAgentLabels(values["Compute.Labels"]).map(({ field, description }) => ({
    path: "Compute.Labels",
    message: `${field}: ${description}`,
  }));
}

/** Decide the node's id: as configured, else as registered before, else the host name. */
export function chooseNodeId(
  configured: string | undefined,
  registered: string | undefined,
  hostname: string,
): string {
  const chosen = configured ?? registered ?? hostname;
  if (isNodeId(chosen)) return chosen;
  throw new Error(
    `the host name ${JSON.stringify(hostname)} is not ${NODE_ID_RULE}; set Compute.Name or pass --name`,
  );
}
