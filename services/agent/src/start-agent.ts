import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type AuthorityServer, parseFingerprint, TlsFileError } from "@rollcall/identity";
import {
  type Clock,
  FaultWatch,
  type Logger,
  type Running,
  StartError,
  superviseTasks,
  systemClock,
} from "@rollcall/process";
import { homeDirectory } from "@rollcall/process/own-directories";
import { type AgentOptions, createAgent } from "./agent.ts";
import type { AgentStatus } from "./agent-status.ts";
import { type AgentTls, type AgentTlsConfig, agentTls } from "./agent-tls.ts";
import { type AgentConfig, chooseNodeId } from "./config.ts";
import { createFactsReader } from "./facts/facts-reader.ts";
import { KubernetesLabels, kubernetesAccess } from "./info/kubernetes-labels.ts";
import { createMachine, type Machine } from "./machine/machine.ts";
import { readBootId, readMachineFingerprint } from "./machine/machine-identity.ts";
import { AgentTrust, type TrustRoots } from "./network/agent-trust.ts";
import { AuthorityStore } from "./network/authority-store.ts";
import { DistrustLog } from "./network/distrust.ts";
import { type HttpProxy, parseProxy, proxyRule } from "./network/proxy.ts";
import type { Reach } from "./network/reach.ts";
import { connectByProxy } from "./network/tunnel.ts";
import { joinTokenSource } from "./registration/join-token.ts";
import { createRegistrar } from "./registration/registrar.ts";
import { NodeKeys } from "./state/node-keys.ts";
import { openStateDirectory } from "./state/state-directory.ts";
import { createGrpcHeartbeatTransport } from "./stream/grpc-heartbeat-transport.ts";
import { createUsageSampler } from "./usage/usage-sampler.ts";
import { AgentWork, type AgentWorkOptions } from "./work/agent-work.ts";
import type { KeeperAccess } from "./work/keeper-link.ts";
import { parseAllocated } from "./work/work-capacity.ts";
import { parsePorts } from "./work/work-keys.ts";

export interface StartAgentOptions {
  readonly config: AgentConfig;
  /** Version of this program, reported with the node. */
  readonly version: string;
  readonly log: Logger;
  /** The machine to describe. Default: this machine. */
  readonly machine?: Machine;
  readonly clock?: Clock;
  readonly random?: () => number;
  /** Called for each session that a server has welcomed. */
  readonly onConnected?: () => void;
  /** How a pod reaches its API server; null outside Kubernetes. Default: read from this process's environment. */
  readonly kubernetes?: ReturnType<typeof kubernetesAccess>;
  /**
   * How to reach the keeper of this machine. Default: there is no keeper, and the node runs nothing, whatever its
   * configuration says.
   */
  readonly keeper?: KeeperAccess;
}

/** A running agent. `close` sends a goodbye first. */
export interface RunningAgent extends Running {
  status(): AgentStatus;
}

/** Read the TLS files once, to report errors in them. Throws StartError. */
function checkTlsFiles(config: AgentTlsConfig): void {
  try {
    agentTls(config)?.();
  } catch (cause) {
    if (!(cause instanceof TlsFileError)) throw cause;
    throw new StartError(`cannot use the TLS files: ${cause.message}`, { cause });
  }
}

/**
 * Start an agent on this machine. Rejects only if a person must fix something on the machine: an unusable state
 * directory, a broken key, an unreadable TLS file, a host name that is not a node id. If the control plane cannot be
 * reached, the agent keeps trying.
 */
export async function startAgent(options: StartAgentOptions): Promise<RunningAgent> {
  const { config, log } = options;
  const machine = options.machine ?? createMachine();
  const clock = options.clock ?? systemClock;
  const random = options.random ?? Math.random;
  checkTlsFiles(config);
  const state = await openStateDirectory(config["Compute.StateDir"] ?? defaultStateDirectory());
  const keys = await NodeKeys.load(state, log);
  const sentinel = await state.readSentinel().catch((error: unknown) => {
    // Fail without a configured name, because without the sentinel, the machine would register under its host name,
    // which may belong to another node.
    if (config["Compute.Name"] === undefined) throw error;
    return undefined;
  });
  const hostname = machine.system.hostname();
  const nodeId = chooseNodeId(config["Compute.Name"], sentinel?.nodeId, hostname);
  const ending = new AbortController();
  const { reach, trust, onTrusted } = network(config, {
    stateDirectory: state.path,
    clock,
    log,
    signal: ending.signal,
  });
  log.info({ node_id: nodeId, state_dir: state.path, version: options.version }, "agent starting");
  const kubernetesLabels = kubernetesLabelsOf(options, clock);
  await kubernetesLabels?.begin();
  const agent = createAgent({
    identity: {
      nodeId,
      keys,
      agentVersion: options.version,
      instanceId: randomUUID(),
      bootId: await readBootId(machine),
      machineFingerprint: await readMachineFingerprint(machine),
      wishes: {
        heartbeatMs: config["Compute.Heartbeat.Interval"],
        infoMs: config["Compute.Heartbeat.InfoUpdateInterval"],
      },
    },
    description: {
      agentVersion: options.version,
      advertiseUrl: config["Compute.AdvertiseURL"] ?? "",
      // Use a getter, so that each description contains the labels that are known at that time.
      get labels() {
        return kubernetesLabels?.labels ?? config["Compute.Labels"];
      },
    },
    state,
    facts: createFactsReader(machine, state.path, { log, wallMs: () => clock.wallMs() }),
    faults: new FaultWatch({ directories: [state.path], clock, log }),
    usage: createUsageSampler({ machine, stateDirectory: state.path, nowMs: () => clock.nowMs() }),
    joinToken: joinTokenSource({
      value: config["Compute.JoinToken"],
      file: config["Compute.JoinTokenFile"],
    }),
    registrar: createRegistrar(config["Compute.Server"], reach),
    transport: createGrpcHeartbeatTransport(reach),
    trust,
    clock,
    log,
    random,
    usageGapMs: config["Compute.Heartbeat.ResourceUpdateInterval"],
    keyRotationIntervalMs: config["Compute.KeyRotationInterval"],
    keyMadeAtMs: await state.keyMadeAtMs(),
    ...infoCheck(config["Compute.Heartbeat.InfoUpdateInterval"]),
    onConnected: () => {
      onTrusted();
      options.onConnected?.();
    },
    ...workOptions(options, { nodeId, clock, random }),
  });
  const tasks = kubernetesLabels === null ? agent.tasks : [...agent.tasks, kubernetesLabels.task];
  const supervision = superviseTasks(tasks, { log, clock, signal: ending.signal, random });
  return {
    status: agent.status,
    close: async () => {
      await agent.close("the agent was stopped");
      ending.abort(new Error("agent closed"));
      await supervision.done;
    },
  };
}

/** Where an agent keeps its state by default: system-wide for root, else in the user's home directory. */
export function defaultStateDirectory(): string {
  return process.geteuid?.() === 0 ? "/var/lib/rollcall/agent" : join(homeDirectory(), ".rollcall", "agent");
}

/** The file in the state directory with the authorities derived from a fingerprint. */
const AUTHORITIES_FILE = "authorities.pem";

interface NetworkPlace {
  readonly stateDirectory: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborted when the agent stops. */
  readonly signal: AbortSignal;
}

/** How the agent reaches and recognizes servers. */
interface Network {
  readonly reach: Reach;
  readonly trust: AgentTrust;
  /** Called when the agent has reached a server and trusts it. */
  readonly onTrusted: () => void;
}

function network(config: AgentConfig, { stateDirectory, clock, log, signal }: NetworkPlace): Network {
  const { "Compute.Server": server, "Compute.TLS.CAFingerprint": known = "" } = config;
  const { "Compute.TLS.ServerName": serverName } = config;
  const proxyTo = proxyRule(proxyOf(config), config["Compute.NoProxy"]);
  const authorityServer = (until: AbortSignal): AuthorityServer => {
    const proxy = proxyTo(server);
    const connect = proxy === null ? undefined : () => connectByProxy({ proxy, target: server }, until);
    return { host: server.host, port: server.port, serverName, connect };
  };
  // The fingerprint is valid, because loading the configuration has checked it.
  const fingerprint = parseFingerprint(known);
  const file = join(stateDirectory, AUTHORITIES_FILE);
  const kept = fingerprint === null ? null : new AuthorityStore({ fingerprint, file, server: authorityServer, log });
  const tls = agentTls(config, kept);
  const roots = rootsOf(config, tls, kept);
  const trust = new AgentTrust({ roots, serverName: serverName ?? server.host, clock, log });
  const plain: Reach = { tls, proxyTo, ...(kept && { prepare: (until: AbortSignal) => kept.prepare(until) }) };
  if (roots.kind === "none") return { reach: plain, trust, onTrusted: () => {} };
  const distrust = new DistrustLog({ roots: roots.kind, trust, server: authorityServer, clock, log, signal });
  return {
    reach: { ...plain, onFailure: (error) => distrust.failed(error) },
    trust,
    onTrusted: () => distrust.succeeded(),
  };
}

function rootsOf(config: AgentConfig, tls: AgentTls | null, kept: AuthorityStore | null): TrustRoots {
  const file = config["Compute.TLS.CAFile"];
  if (tls === null) return { kind: "none" };
  if (kept !== null) return { kind: "kept", kept };
  return file === undefined ? { kind: "system" } : { kind: "file", read: () => readFileSync(file) };
}

/** The configured proxy. An invalid value from HTTPS_PROXY only causes a warning, and is ignored. */
function proxyOf({ "Compute.Proxy": written = "", "Compute.ProxyCAFile": file }: AgentConfig): HttpProxy | null {
  const proxy = parseProxy(written);
  return proxy === null || file === undefined ? proxy : { ...proxy, authorities: readFileSync(file) };
}

const SAME_USER_WARNING =
  "EXECUTIONS CAN READ THIS NODE'S KEY: Work.SameUser runs them as the agent's own user, for development only";

function workOptions(
  { keeper, config, log }: StartAgentOptions,
  others: Pick<AgentWorkOptions, "nodeId" | "clock" | "random">,
): Pick<AgentOptions, "work"> {
  const allocated = parseAllocated(config["Compute.AllocatedCapacity"]);
  const ports = parsePorts(config["Work.Ports"]);
  // These values are valid, because loading the configuration has checked them.
  if (!allocated.ok || ports === null) return {};
  if (config["Work.SameUser"] && config["Work.Executors"].length > 0) log.warn({}, SAME_USER_WARNING);
  return {
    work: {
      // Create the AgentWork even if nothing runs on this machine, because the node must confirm that earlier
      // executions have stopped.
      make: (onOffer) => new AgentWork({ ...others, keeper: keeper ?? null, log, onOffer }),
      allocated: allocated.allocated,
      ports,
    },
  };
}

/** Create the source of Kubernetes labels; null if the agent uses none. */
function kubernetesLabelsOf(
  { config, log, kubernetes = kubernetesAccess(process.env) }: StartAgentOptions,
  clock: Clock,
): KubernetesLabels | null {
  const { "Compute.Labels": own, "Compute.Kubernetes.Labels": keys, "Compute.Kubernetes.Node": node } = config;
  if (keys.length === 0 || node === undefined) return null;
  if (kubernetes === null) {
    log.warn({ kubernetes_node: node }, "not running in a pod, ignoring the kubernetes node's labels");
    return null;
  }
  return new KubernetesLabels({ ...kubernetes, node, keys, own, clock, log });
}

function infoCheck(ms: number | undefined): { readonly infoCheckMs?: number } {
  return ms === undefined ? {} : { infoCheckMs: ms };
}
