import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { parseFingerprint } from "@rollcall/identity";
import { type Clock, FaultWatch, type Logger, type Running, superviseTasks, systemClock } from "@rollcall/process";
import { type AgentOptions, createAgent } from "./agent.ts";
import type { AgentStatus } from "./agent-status.ts";
import { agentTls } from "./agent-tls.ts";
import { type AgentConfig, chooseNodeId } from "./config.ts";
import { createFactsReader } from "./facts/facts-reader.ts";
import { KubernetesLabels, kubernetesAccess } from "./info/kubernetes-labels.ts";
import { createMachine, type Machine } from "./machine/machine.ts";
import { readBootId, readMachineFingerprint } from "./machine/machine-identity.ts";
import { KeptAuthority } from "./network/kept-authority.ts";
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

/** What an agent is started with. */
export interface StartAgentOptions {
  readonly config: AgentConfig;
  /** Version of this program, reported with the node. */
  readonly version: string;
  readonly log: Logger;
  /** Default: this machine. */
  readonly machine?: Machine;
  readonly clock?: Clock;
  readonly random?: () => number;
  /** Told of each session that a server has welcomed. */
  readonly onConnected?: () => void;
  /** How a pod reaches its API server; null elsewhere. Default: as this process's environment says. */
  readonly kubernetes?: ReturnType<typeof kubernetesAccess>;
  /** How the keeper of this machine is reached. Default: it has none and runs nothing, whatever is configured. */
  readonly keeper?: KeeperAccess;
}

/** An agent at work. `close` says goodbye first. */
export interface RunningAgent extends Running {
  status(): AgentStatus;
}

/**
 * Start an agent on this machine. Rejects only for what a person must put right here: a state directory that cannot be
 * used, a broken key, a file of TLS that cannot be read, a host name that is no node id. A control plane that is away
 * is waited for.
 */
export async function startAgent(options: StartAgentOptions): Promise<RunningAgent> {
  const { config, log } = options;
  const machine = options.machine ?? createMachine();
  const clock = options.clock ?? systemClock;
  const random = options.random ?? Math.random;
  // Once at the start, where an error in the files is seen.
  agentTls(config)?.();
  const state = await openStateDirectory(config["Compute.StateDir"] ?? defaultStateDirectory());
  const keys = await NodeKeys.load(state, log);
  const sentinel = await state.readSentinel().catch(() => undefined);
  const hostname = machine.system.hostname();
  const nodeId = chooseNodeId(config["Compute.Name"], sentinel?.nodeId, hostname);
  const reach = reachOf(config, state.path, log);
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
      // Each description has the labels that are known by then.
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
    clock,
    log,
    random,
    usageGapMs: config["Compute.Heartbeat.ResourceUpdateInterval"],
    keyRotationIntervalMs: config["Compute.KeyRotationInterval"],
    keyMadeAtMs: await state.keyMadeAtMs(),
    ...infoCheck(config["Compute.Heartbeat.InfoUpdateInterval"]),
    ...(options.onConnected && { onConnected: options.onConnected }),
    ...workOptions(options, { nodeId, clock, random }),
  });
  const ending = new AbortController();
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

/** Where an agent keeps its state when none is configured: system-wide for root, else in the user's home. */
export function defaultStateDirectory(): string {
  return userInfo().uid === 0 ? "/var/lib/rollcall/agent" : join(homedir(), ".rollcall", "agent");
}

/** Where the authority is kept that was fetched by its fingerprint, in the state directory. */
const AUTHORITY_FILE = "authority.pem";

function reachOf(config: AgentConfig, stateDirectory: string, log: Logger): Reach {
  const { "Compute.Server": server, "Compute.TLS.CAFingerprint": known = "" } = config;
  const proxyTo = proxyRule(proxyOf(config), config["Compute.NoProxy"]);
  // It was checked with the configuration.
  const fingerprint = parseFingerprint(known);
  if (fingerprint === null) return { tls: agentTls(config), proxyTo };
  const authority = new KeptAuthority({
    fingerprint,
    file: join(stateDirectory, AUTHORITY_FILE),
    server: (signal) => {
      const { host, port } = server;
      const proxy = proxyTo(server);
      const connect = proxy === null ? undefined : () => connectByProxy({ proxy, target: server }, signal);
      return { host, port, serverName: config["Compute.TLS.ServerName"], connect };
    },
    log,
  });
  return { tls: agentTls(config, authority), proxyTo, prepare: (signal) => authority.prepare(signal) };
}

/** The proxy that is configured. What the configuration was warned of is none. */
function proxyOf({ "Compute.Proxy": written = "", "Compute.ProxyCAFile": file }: AgentConfig): HttpProxy | null {
  const proxy = parseProxy(written);
  return proxy === null || file === undefined ? proxy : { ...proxy, authorities: readFileSync(file) };
}

const SAME_USER_WARNING =
  "EXECUTIONS MAY READ THIS NODE'S KEY: Work.SameUser runs them as the agent's own user, for development alone";

function workOptions(
  { keeper, config, log }: StartAgentOptions,
  others: Pick<AgentWorkOptions, "nodeId" | "clock" | "random">,
): Pick<AgentOptions, "work"> {
  const allocated = parseAllocated(config["Compute.AllocatedCapacity"]);
  const ports = parsePorts(config["Work.Ports"]);
  // Both were checked with the configuration.
  if (!allocated.ok || ports === null) return {};
  if (config["Work.SameUser"] && config["Work.Executors"].length > 0) log.warn({}, SAME_USER_WARNING);
  return {
    work: {
      // Also where nothing is run: what should stop on this node is confirmed, whatever it ran before.
      make: (onOffer) => new AgentWork({ ...others, keeper: keeper ?? null, log, onOffer }),
      allocated: allocated.allocated,
      ports,
    },
  };
}

/** Null for an agent that takes none. */
function kubernetesLabelsOf(
  { config, log, kubernetes = kubernetesAccess(process.env) }: StartAgentOptions,
  clock: Clock,
): KubernetesLabels | null {
  const { "Compute.Labels": own, "Compute.Kubernetes.Labels": keys, "Compute.Kubernetes.Node": node } = config;
  if (keys.length === 0 || node === undefined) return null;
  if (kubernetes === null) {
    log.warn({ kubernetes_node: node }, "not in a pod, the kubernetes node's labels are not read");
    return null;
  }
  return new KubernetesLabels({ ...kubernetes, node, keys, own, clock, log });
}

function infoCheck(ms: number | undefined): { readonly infoCheckMs?: number } {
  return ms === undefined ? {} : { infoCheckMs: ms };
}
