import {
  bacalhauNames,
  bool,
  type ConfigValues,
  defineKeys,
  duration,
  HEARTBEAT_INTERVAL_NAMES,
  INFO_INTERVAL_NAMES,
  list,
  optional,
  type RelationProblem,
  serverAddress,
  stringMap,
  text,
} from "@rollcall/config";
import { checkAgentLabels, isNodeId, NODE_ID_PATTERN, NODE_ID_RULE } from "@rollcall/domain";
import { checkAgentTls } from "./agent-tls.ts";
import { PROXY_RULE, parseProxy } from "./network/proxy.ts";
import { checkWorkConfig, workKeys } from "./work/work-keys.ts";

/** The configuration of an agent. */
export const agentKeys = defineKeys({
  "Compute.Server": {
    schema: serverAddress(),
    default: { host: "127.0.0.1", port: 7700, scheme: undefined },
    flag: "server",
    doc:
      "Where the agent registers: the registry's address, HOST:PORT or https://HOST:PORT. Registration tells it " +
      "where the health replicas are, and it speaks TLS to them if it does to the registry.",
  },
  "Compute.TLS.CAFile": {
    schema: optional(text()),
    default: undefined,
    flag: "ca-file",
    doc:
      "PEM file of the authorities whose servers the agent trusts, instead of those that the system trusts. When " +
      "set, the agent speaks TLS unless Compute.Server says http://. Like the other files of Compute.TLS it is " +
      "read for each connection: a file that is replaced needs no restart.",
  },
  "Compute.TLS.CAFingerprint": {
    schema: optional(text({ maxLength: 160 })),
    default: undefined,
    flag: "ca-fingerprint",
    aliases: ["Compute.CAFingerprint"],
    doc:
      "The SHA-256 of the certificate of the authority whose servers the agent trusts, in place of its file: " +
      "sha256:1f2e..., as `rollcall token create` prints it. The agent fetches the certificate from Compute.Server " +
      "without credentials, compares it, keeps it in its state directory, and trusts it alone: it says who it is " +
      "only to servers that have a certificate of this authority, for their name.",
  },
  "Compute.TLS.CertFile": {
    schema: optional(text()),
    default: undefined,
    flag: "client-cert",
    doc:
      "PEM file of the agent's own certificate, for servers that take only clients with one (TLS.ClientCAFile " +
      "there). Goes together with Compute.TLS.KeyFile.",
  },
  "Compute.TLS.KeyFile": {
    schema: optional(text()),
    default: undefined,
    flag: "client-key",
    doc: "PEM file of the key of Compute.TLS.CertFile.",
  },
  "Compute.TLS.ServerName": {
    schema: optional(text({ maxLength: 253 })),
    default: undefined,
    flag: "tls-server-name",
    doc: "The name that the servers' certificates must be for, instead of the host by which they are reached.",
  },
  "Compute.TLS.RequireTLS": {
    schema: bool(),
    default: false,
    doc:
      "Whether the agent refuses to speak clear text: it then speaks TLS to a Compute.Server without a scheme, and " +
      "does not start with one of http://. The agent of `up` connects as its `up` listens, on the same machine.",
  },
  "Compute.Proxy": {
    schema: optional(text()),
    default: undefined,
    flag: "proxy",
    env: ["HTTPS_PROXY", "https_proxy"],
    secret: true,
    doc:
      "HTTP proxy by which the agent reaches the control plane, with TLS and without, by the method CONNECT: " +
      "http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT; https:// for a proxy that speaks TLS itself, see " +
      "Compute.ProxyCAFile. Registrations and the stream both go that way, and the proxy finds out what addresses " +
      "belong to the names. This machine itself is never reached by it. Another kind of proxy in HTTPS_PROXY, such " +
      "as SOCKS, is warned of and not used.",
  },
  "Compute.ProxyCAFile": {
    schema: optional(text()),
    default: undefined,
    doc:
      "PEM file of the authorities by which a proxy of https:// is verified, instead of those that Node.js brings " +
      "along. It says nothing of the control plane, whose certificate is verified as without a proxy. Read at the " +
      "start.",
  },
  "Compute.NoProxy": {
    schema: list(text()),
    default: [] as readonly string[],
    flag: "no-proxy",
    env: ["NO_PROXY", "no_proxy"],
    doc:
      "What is reached without Compute.Proxy: names, which stand for all names below them too, addresses and " +
      "networks such as 10.0.0.0/8, with or without a port; * for everything.",
  },
  "Compute.StateDir": {
    schema: optional(text()),
    default: undefined,
    flag: "state-dir",
    doc:
      "Directory of the agent's key and of its sentinel. Each agent on a machine needs its own. When not set: " +
      "/var/lib/rollcall/agent for root, else .rollcall/agent in the user's home.",
  },
  "Compute.Name": {
    schema: optional(text({ pattern: NODE_ID_PATTERN, expects: `a node id: ${NODE_ID_RULE}` })),
    default: undefined,
    flag: "name",
    aliases: ["Node.Name"],
    doc:
      "The node's id, chosen at its first registration. When not set: the id it registered with before, else the " +
      "host name.",
  },
  "Compute.JoinToken": {
    schema: optional(text({ maxLength: 8_192 })),
    default: undefined,
    flag: "join-token",
    env: ["ROLLCALL_JOIN_TOKEN"],
    secret: true,
    doc:
      "The join token with which this machine registers, as `rollcall token create` shows it. It wins over " +
      "Compute.JoinTokenFile, which other users of the machine cannot read in the list of processes. A machine " +
      "that is known needs none.",
  },
  "Compute.JoinTokenFile": {
    schema: optional(text()),
    default: undefined,
    flag: "join-token-file",
    env: ["ROLLCALL_JOIN_TOKEN_FILE"],
    doc:
      "The file that holds the join token. It is read at each registration, so that the token may be replaced " +
      "while the agent runs; a machine that registered before does without it. In a pod it may be the projected " +
      "token of a service account, see Join.Kubernetes.Issuer.",
  },
  "Compute.KeyRotationInterval": {
    schema: duration(),
    default: 0,
    doc:
      "The age at which the agent replaces the node's key by itself; 0 for never. An operator can ask for " +
      "another key at any time, whatever this says. The agent keeps the old key until the control plane has " +
      "taken the new one, so nothing can lock it out.",
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
  "Compute.Kubernetes.Node": {
    schema: optional(text({ maxLength: 253 })),
    default: undefined,
    doc: "The Kubernetes node that this machine is, for an agent in a pod that takes its labels.",
  },
  "Compute.Kubernetes.Labels": {
    schema: list(text({ maxLength: 320 })),
    default: [] as readonly string[],
    doc:
      "Which labels of Compute.Kubernetes.Node the node takes as its own, by key; * and ? stand for any characters. " +
      "They are read once, from the API server of the pod's environment, with the token and the authority in " +
      "/var/run/secrets/kubernetes.io/serviceaccount; the account must be able to get nodes. While that fails, the " +
      "agent works without them and tries again, every minute in the end. " +
      "Compute.Labels wins.",
  },
  "Compute.Heartbeat.Interval": {
    schema: optional(duration({ minMs: 100 })),
    default: undefined,
    aliases: HEARTBEAT_INTERVAL_NAMES,
    env: ["HEARTBEAT_INTERVAL", "HEARTBEAT_INTERVAL_SECONDS"],
    doc:
      "The time between heartbeats that this node wishes for. The health policy wins: a shorter one is granted " +
      "where it says agent-may-shorten, down to 1 second. The agent's log and `rollcall node status` say so when " +
      "it is not.",
  },
  "Compute.Heartbeat.InfoUpdateInterval": {
    schema: optional(duration({ minMs: 1_000 })),
    default: undefined,
    aliases: INFO_INTERVAL_NAMES,
    doc:
      "The longest time between two looks at whether the machine has changed. A change is reported at once; the " +
      "report's own interval is the health policy's, unless that says agent-may-shorten: then this one, down to " +
      "10 seconds. When not set: 1 minute.",
  },
  "Compute.Heartbeat.ResourceUpdateInterval": {
    schema: duration(),
    default: 0,
    aliases: [
      ...bacalhauNames("Compute", "ResourceUpdateFrequency"),
      ...bacalhauNames("Requester", "ResourceUpdateFrequency"),
      "ResourceUpdateFrequency",
    ],
    doc:
      "The least time between two measurements of resource usage, for machines where measuring is costly. Usage " +
      "travels in each heartbeat; a heartbeat that comes sooner repeats the last one.",
  },
  ...workKeys,
});

/** The values of an agent's configuration. */
export type AgentConfig = ConfigValues<typeof agentKeys>;

/** What is wrong with values that are each right; handed to loadConfig as its `check`. */
export function checkAgentConfig(values: AgentConfig): readonly RelationProblem<AgentConfig>[] {
  const labels = checkAgentLabels(values["Compute.Labels"]).map(({ field, description }) => ({
    path: "Compute.Labels" as const,
    message: `${field}: ${description}`,
  }));
  const path = "Compute.Kubernetes.Node";
  const isNodeMissing = values["Compute.Kubernetes.Labels"].length > 0 && values[path] === undefined;
  const node = isNodeMissing ? [{ path, message: "must be set when Compute.Kubernetes.Labels is" } as const] : [];
  return [...labels, ...node, ...checkAgentTls(values), ...checkProxy(values), ...checkWorkConfig(values)];
}

function checkProxy({ "Compute.Proxy": proxy }: AgentConfig) {
  const isWrong = proxy !== undefined && parseProxy(proxy) === null;
  // HTTPS_PROXY is there for all programs of the machine, of which some know further kinds.
  const ofOthers = `${PROXY_RULE}; the agent goes without one, name another in Compute.Proxy if it needs one`;
  return isWrong ? [{ path: "Compute.Proxy" as const, message: PROXY_RULE, ofOthers }] : [];
}

/** Decide the node's id: as configured, else as registered before, else the host name. */
export function chooseNodeId(configured: string | undefined, registered: string | undefined, hostname: string): string {
  const chosen = configured ?? registered ?? hostname;
  if (isNodeId(chosen)) return chosen;
  throw new Error(
    `the host name ${JSON.stringify(hostname)} is not a node id: ${NODE_ID_RULE}; set Compute.Name or pass --name`,
  );
}
