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
      "Where the agent registers: the registry's address, HOST:PORT or https://HOST:PORT. The registration returns " +
      "the addresses of the health replicas. The agent uses TLS for them if it does for the registry.",
  },
  "Compute.TLS.CAFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    flag: "ca-file",
    doc:
      "PEM file of the authorities whose servers the agent trusts, instead of those that the system trusts. If set, " +
      "the agent uses TLS unless Compute.Server says http://. Like the other files of Compute.TLS, it is read for " +
      "each connection: a replaced file needs no restart.",
  },
  "Compute.TLS.CAFingerprint": {
    schema: optional(text({ maxLength: 160 })),
    default: undefined,
    flag: "ca-fingerprint",
    aliases: ["Compute.CAFingerprint"],
    doc:
      "SHA-256 fingerprint of the certificate authority that the agent trusts, instead of the authority's file: " +
      "sha256:1f2e..., as `rollcall token create` prints it. The agent fetches the certificate from Compute.Server " +
      "without credentials, compares it, and keeps it in its state directory. It then trusts only this authority, " +
      "and identifies itself only to servers with a certificate that the authority has issued for their name.",
  },
  "Compute.TLS.CertFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    flag: "client-cert",
    doc:
      "PEM file of the agent's own certificate, for servers that require client certificates (TLS.ClientCAFile " +
      "there). Must be used together with Compute.TLS.KeyFile.",
  },
  "Compute.TLS.KeyFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    flag: "client-key",
    doc: "PEM file of the key for Compute.TLS.CertFile.",
  },
  "Compute.TLS.ServerName": {
    schema: optional(text({ maxLength: 253 })),
    default: undefined,
    flag: "tls-server-name",
    doc: "The name that the servers' certificates must be valid for, instead of the host in their address.",
  },
  "Compute.TLS.RequireTLS": {
    schema: bool(),
    default: false,
    doc:
      "Whether the agent refuses clear text: it then uses TLS if Compute.Server has no scheme, and does not start " +
      "if it has http://. For the agent of `up`, this depends only on whether `up` uses TLS.",
  },
  "Compute.Proxy": {
    schema: optional(text()),
    default: undefined,
    flag: "proxy",
    env: ["HTTPS_PROXY", "https_proxy"],
    secret: true,
    doc:
      "HTTP proxy through which the agent reaches the control plane, with TLS and without, using the method " +
      "CONNECT: http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT; https:// for a proxy that uses TLS itself, see " +
      "Compute.ProxyCAFile. It is used for registrations and for the stream, and it resolves host names. It is " +
      "never used to reach this machine itself. Any other kind of proxy in HTTPS_PROXY, such as SOCKS, is ignored " +
      "with a warning.",
  },
  "Compute.ProxyCAFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc:
      "PEM file of the authorities that verify the certificate of an https:// proxy, instead of those bundled with " +
      "Node.js. It does not affect the control plane, whose certificate is verified as without a proxy. Read once at " +
      "start.",
  },
  "Compute.NoProxy": {
    schema: list(text()),
    default: [] as readonly string[],
    flag: "no-proxy",
    env: ["NO_PROXY", "no_proxy"],
    doc:
      "Exceptions from Compute.Proxy: names (including all names below them), addresses and networks such " +
      "as 10.0.0.0/8, with or without a port; * for everything.",
  },
  "Compute.StateDir": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    flag: "state-dir",
    doc:
      "Directory for the agent's key and its saved registration. Each agent on a machine needs a separate one. " +
      "Default: " +
      "/var/lib/rollcall/agent for root, else .rollcall/agent in the user's home directory.",
  },
  "Compute.Name": {
    schema: optional(text({ pattern: NODE_ID_PATTERN, expects: `a node id: ${NODE_ID_RULE}` })),
    default: undefined,
    flag: "name",
    aliases: ["Node.Name"],
    doc:
      "The node's id, chosen at its first registration. Default: the id that it registered with before, else the " +
      "host name.",
  },
  "Compute.JoinToken": {
    schema: optional(text({ maxLength: 8_192 })),
    default: undefined,
    flag: "join-token",
    env: ["ROLLCALL_JOIN_TOKEN"],
    secret: true,
    doc:
      "The join token with which this machine registers, as `rollcall token create` prints it. It takes precedence " +
      "over Compute.JoinTokenFile, which is safer: other users of the machine can see a token in the list of " +
      "processes. A machine that has registered before needs no token.",
  },
  "Compute.JoinTokenFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    flag: "join-token-file",
    env: ["ROLLCALL_JOIN_TOKEN_FILE"],
    doc:
      "The file that contains the join token. It is read at each registration, so you can replace the token while " +
      "the agent runs. A machine that has registered before needs no token. In a pod it can be the projected token " +
      "of a service account, see Join.Kubernetes.Issuer.",
  },
  "Compute.KeyRotationInterval": {
    schema: duration(),
    default: 0,
    doc:
      "The age at which the agent replaces the node's key automatically; 0 for never. Independently of this, an " +
      "operator can request a new key at any time. The agent keeps the old key until the control plane has accepted " +
      "the new one, so rotation cannot lock it out.",
  },
  "Compute.AdvertiseURL": {
    schema: optional(text({ maxLength: 2_048 })),
    default: undefined,
    flag: "advertise-url",
    doc: "Where others can reach this node, shown with the node. Rollcall itself never connects to it.",
  },
  "Compute.Labels": {
    schema: stringMap(),
    default: {},
    flag: "label",
    aliases: ["Labels", "Node.Labels"],
    doc: "The node's own labels, at most 64, in Kubernetes' syntax; they cannot begin with rollcall.io/.",
  },
  "Compute.Kubernetes.Node": {
    schema: optional(text({ maxLength: 253 })),
    default: undefined,
    doc: "Name of the Kubernetes node on which the agent's pod runs; required for Compute.Kubernetes.Labels.",
  },
  "Compute.Kubernetes.Labels": {
    schema: list(text({ maxLength: 320 })),
    default: [] as readonly string[],
    doc:
      "Which labels of Compute.Kubernetes.Node to copy to the node, by key; * and ? match any characters. They are " +
      "read once, from the API server in the pod's environment, with the token and the authority in " +
      "/var/run/secrets/kubernetes.io/serviceaccount; the account needs permission to get nodes. If reading fails, " +
      "the agent starts without them and retries, eventually once a minute. Compute.Labels takes precedence.",
  },
  "Compute.Heartbeat.Interval": {
    schema: optional(duration({ minMs: 100 })),
    default: undefined,
    aliases: HEARTBEAT_INTERVAL_NAMES,
    env: ["HEARTBEAT_INTERVAL", "HEARTBEAT_INTERVAL_SECONDS"],
    doc:
      "The requested time between heartbeats of this node. The health policy decides: it grants a shorter interval " +
      "if it has agent-may-shorten, down to 1 second. If it does not grant the interval, the agent's log and " +
      "`rollcall node status` say so.",
  },
  "Compute.Heartbeat.InfoUpdateInterval": {
    schema: optional(duration({ minMs: 1_000 })),
    default: undefined,
    aliases: INFO_INTERVAL_NAMES,
    doc:
      "The longest time between two checks of whether the machine has changed. A change is reported immediately. " +
      "The interval of regular reports is set by the health policy; if it has agent-may-shorten, this interval is " +
      "used, down to 10 seconds. Default: 1 minute.",
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
      "The minimum time between two measurements of resource usage, for machines where measuring is expensive. Each " +
      "heartbeat contains the usage; a heartbeat that is sent sooner repeats the last measurement.",
  },
  ...workKeys,
});

/** The values of an agent's configuration. */
export type AgentConfig = ConfigValues<typeof agentKeys>;

/** Check that values that are valid individually also fit together. Passed to loadConfig as its `check`. */
export function checkAgentConfig(values: AgentConfig): readonly RelationProblem<AgentConfig>[] {
  const labels = checkAgentLabels(values["Compute.Labels"]).map(({ field, description }) => ({
    path: "Compute.Labels" as const,
    message: `${field}: ${description}`,
  }));
  const path = "Compute.Kubernetes.Node";
  const isNodeMissing = values["Compute.Kubernetes.Labels"].length > 0 && values[path] === undefined;
  const node = isNodeMissing ? [{ path, message: "must be set if Compute.Kubernetes.Labels is set" } as const] : [];
  return [...labels, ...node, ...checkAgentTls(values), ...checkProxy(values), ...checkWorkConfig(values)];
}

function checkProxy({ "Compute.Proxy": proxy }: AgentConfig) {
  const isWrong = proxy !== undefined && parseProxy(proxy) === null;
  // Only warn, because all programs of the machine share HTTPS_PROXY, and some support kinds of proxies that the agent
  // does not support.
  const ofOthers = `${PROXY_RULE}; the agent ignores it, set Compute.Proxy if the agent needs a proxy`;
  return isWrong ? [{ path: "Compute.Proxy" as const, message: PROXY_RULE, ofOthers }] : [];
}

/**
 * Choose the node's id: the configured one, otherwise the one that it registered with before, otherwise the host name.
 */
export function chooseNodeId(configured: string | undefined, registered: string | undefined, hostname: string): string {
  const chosen = configured ?? registered ?? hostname;
  if (isNodeId(chosen)) return chosen;
  throw new Error(
    `the host name ${JSON.stringify(hostname)} is not a node id: ${NODE_ID_RULE}; set Compute.Name or pass --name`,
  );
}
