import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { browserDoor } from "@rollcall/console";
import type { DescriptorPlan } from "@rollcall/domain";
import { followAuthorities } from "@rollcall/health";
import type { TlsSource } from "@rollcall/identity";
import {
  type Clock,
  type Logger,
  openFilesLimit,
  type Parts,
  type Running,
  type RunningTasks,
  startParts,
  startTasks,
  type Task,
  type Tracer,
  watchOpenFiles,
} from "@rollcall/process";
import { createGrpcServer, createRpcServer, type GrpcServer, type GuardedServer, ServingStatus } from "@rollcall/rpc";
import { createLeaseKeeper, exposePools, type Store } from "@rollcall/store";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { exposeBuild, exposeLease, openTracer } from "../observability/expose-process.ts";
import { reportProcess } from "../observability/report-process.ts";
import { readConsolePages } from "./console-parts.ts";
import { advertisedHost, agentEndpoint, createServices, type Services } from "./create-services.ts";
import { hostRule } from "./host-rule.ts";
import { boundGarbage, limitConnections } from "./limit-connections.ts";
import { type Authentication, openAuthentication } from "./open-authentication.ts";
import { type CallGuards, openGuards } from "./open-guards.ts";
import { openNats } from "./open-nats.ts";
import type { Probes } from "./open-probes.ts";
import { openAgentAuthorities, openPeerTls } from "./open-tls.ts";
import { OrchestratorNode, orchestratorId } from "./orchestrator-node.ts";
import { internalPort, type ProcessPlan, shownName } from "./process-plan.ts";
import { connectionsCheck, leaseCheck } from "./ready-checks.ts";

/** What a process of the control plane is started with. */
export interface ControlPlaneOptions {
  readonly plan: ProcessPlan;
  readonly config: ControlPlaneConfig;
  /** The open record. Its opener closes it, after the process. */
  readonly store: Store;
  /** The open probes. Their opener closes them, after the process. */
  readonly probes: Probes;
  /** The certificate of the API and of the agents' port; clear text when absent or null. */
  readonly tls?: TlsSource | null;
  /** The authority that other processes' certificates are of; null or absent for those that the system trusts. */
  readonly caFile?: string | null;
  /** Background work besides that of the services. */
  readonly tasks?: readonly Task[];
  /** Told the instance of the process before it takes its lease. */
  readonly onInstance?: (instance: string) => void;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A process of the control plane that serves. */
export interface ControlPlane extends Running {
  /** The API's port. */
  readonly port: number;
  /** The port of agents' streams; null without health. */
  readonly agentPort: number | null;
}

const LOOPBACK = "127.0.0.1";

/**
 * Start the services of a plan behind their ports, and resolve when the process holds its lease. When something cannot
 * start, what was started before is ended and the error is thrown; the store stays open.
 */
export function startControlPlane(options: ControlPlaneOptions, signal: AbortSignal): Promise<ControlPlane> {
  return startParts((parts) => start(options, signal, parts));
}

async function start(options: ControlPlaneOptions, signal: AbortSignal, parts: Parts) {
  const { plan, config, store, probes, tls, version, clock, log } = options;
  const { metrics } = probes;
  tls?.measure(metrics);
  exposeBuild(metrics, plan);
  exposePools(metrics, store);
  const serving = new ServingStatus();
  const instance = `${orchestratorId(shownName(plan), hostname(), plan.port, 1)}.${randomBytes(4).toString("hex")}`;
  options.onInstance?.(instance);
  // The lease ends last, since others take over with its end. What it and the other tasks need is started later.
  const supervised = { log, clock, metrics };
  let keeping: RunningTasks | null = null;
  parts.onClose(() => keeping?.close());
  const peerTls = tls ? openPeerTls(tls, options.caFile ?? null) : null;
  const hasAgents = plan.services.includes("health");
  const announced = hasAgents ? await openAgentAuthorities(config, { clock, log }) : null;
  const announcing = hasAgents ? (announced ?? tls ?? null) : null;
  const authorities = announcing && followAuthorities(announcing);
  const common = { store, config, instance, clock, log, metrics, peerTls, authorities };
  const tracer = await openTracer(plan, { config, instance, version, clock, log });
  if (tracer !== null) parts.add(tracer);
  const nats = await openNats(plan, common);
  if (nats !== null) parts.add(nats);
  let work: RunningTasks | null = null;
  parts.onClose(() => work?.close());
  const guards = parts.add(openGuards({ store, config, clock, log, metrics }));
  const { failures, strangers } = guards;
  const shared = { ...common, failures, strangers };
  if (hasAgents) boundGarbage();
  let agents: GrpcServer | null = null;
  const authentication = await openAuthentication({ store, config, clock, log });
  const { authenticate } = authentication;
  const browsers = { authenticate, pages: await readConsolePages(plan) };
  const onWelcomed = (peer: string) => agents?.known(peer);
  const onOutput = (peer: string, bytes: number) => agents?.explain(peer, bytes);
  const services = createServices(plan, { ...shared, ...browsers, onWelcomed, onOutput }, nats);
  let isServing = true;
  const closeServices = async () => {
    if (!isServing) return;
    isServing = false;
    await services.close();
  };
  parts.onClose(closeServices);
  await services.start();

  const limit = openFilesLimit();
  const shares = limitConnections(plan, config, { limit, log });
  const servers = await listen(options, {
    services,
    authentication,
    guards,
    serving,
    parts,
    shares,
    tracer,
    closeServices,
  });
  agents = servers.agents;
  const address = `${advertisedHost(plan, config)}:${servers.api.port}`;
  const shown = { service: shownName(plan), instance, address, port: servers.api.port, version };
  const node = new OrchestratorNode(store.reserved, shown, log);
  const firstHeld = new AbortController();
  const keeper = createLeaseKeeper({
    store: store.reserved,
    clock,
    log,
    claim: { instance, service: plan.name, address },
    report: () => services.health?.leaseReport() ?? { sessions: null },
    onHeld: () => {
      firstHeld.abort();
      node.show();
      services.health?.onLeaseHeld();
    },
    onDoubt: (doubt) => services.health?.onLeaseDoubt(doubt),
  });
  exposeLease(metrics, keeper, clock);
  probes.answerWith(async () => ({
    ...(await services.ready()),
    lease: leaseCheck(keeper, clock.nowMs()),
    connections: connectionsCheck(store.use()),
  }));
  const guarded = [servers.agents, servers.api, servers.internal].filter((it) => it !== null);
  const openFiles = watchOpenFiles({ servers: guarded, limit, clock, log, metrics });
  const report = reportProcess({
    ...{ store: store.reserved, clock, instance, version, openFilesLimit: limit },
    service: plan.name === "up" ? plan.name : plan.services.join(","),
    ...{ tls: tls ?? null, announcing },
    natsConnected: nats === null ? null : () => nats.isConnected(),
    feedLagMs: () => services.feedLagMs(),
    lacksNotifications: () => services.lacksNotifications(),
    callsWaitingMs: () => store.use().find(({ lane }) => lane === "calls")?.waitingMs ?? 0,
  });
  const files = [tls, announced].flatMap((it) => it?.task ?? []);
  const own = [node, report, openFiles, authentication.uses, ...files, ...(options.tasks ?? [])];
  work = startTasks([...own, ...services.tasks], supervised);
  keeping = startTasks([keeper], supervised);
  if (servers.agents !== null && servers.internal !== null) {
    services.health?.advertise({
      agentEndpoint: agentEndpoint(plan, config, servers.agents.port),
      internalAddress: `${internalHost(options)}:${servers.internal.port}`,
      queryEndpoint: address,
    });
  }
  await aborted(AbortSignal.any([firstHeld.signal, signal]));
  signal.throwIfAborted();
  // Balancers are told first, then agents move elsewhere; then no new work, then what is under way.
  parts.onClose(async () => {
    serving.drain();
    await services.health?.drain().catch((err: unknown) => {
      // They are told to come back elsewhere instead.
      log.warn({ err }, "agents were not handed on");
    });
  });
  return { port: servers.api.port, agentPort: servers.agents?.port ?? null };
}

interface Servers {
  readonly agents: GrpcServer | null;
  /** What other replicas of health ask. */
  readonly internal: GuardedServer | null;
  readonly api: GuardedServer;
}

/** What the servers of a process serve, and where they are noted. */
interface Listening {
  readonly services: Services;
  readonly authentication: Authentication;
  readonly guards: CallGuards;
  readonly serving: ServingStatus;
  readonly parts: Parts;
  /** How many connections each port may take. */
  readonly shares: DescriptorPlan;
  readonly tracer: Tracer | null;
  /** Between the end of the API and that of the agents' port: streams are told to come back. */
  closeServices(): Promise<void>;
}

async function listen(
  { plan, config, store, probes, tls, clock, log }: ControlPlaneOptions,
  { services, authentication, guards, serving, parts, shares, tracer, closeServices }: Listening,
): Promise<Servers> {
  const { calls, strangers, clientAddress } = guards;
  const counted = { calls, strangers, clientAddress };
  const common = { host: plan.host, metrics: probes.metrics, log, clock, ...counted };
  const secure = tls ? { tls } : {};
  const agents =
    services.health === null
      ? null
      : await createGrpcServer({
          ...common,
          ...secure,
          port: config["Listen.AgentPort"],
          maxConnections: shares.agents,
          maxStrangersOfAddress: config["Health.MaxStrangersPerAddress"],
          routes: services.health.agentRoutes,
          // Health writes lines of its own, with the node and its epoch.
          logCalls: false,
          serving,
        });
  const internal =
    services.health === null
      ? null
      : await createRpcServer({
          ...common,
          host: hasInternalLoopback(plan) ? LOOPBACK : plan.host,
          port: internalPort(plan, config),
          name: "internal",
          maxConnections: shares.internal,
          // Workers share the other ports. This one leads to this process alone.
          exclusive: true,
          ...secure,
          // Its callers are replicas, which prove themselves by the cluster's secret.
          asksClients: false,
          ...services.health.internal,
          tracer,
          // No access token opens it.
          authenticate: async () => null,
          serving,
        });
  if (internal !== null) parts.add(internal);
  if (agents !== null) parts.add(agents);
  parts.onClose(closeServices);
  const api = await createRpcServer({
    ...common,
    ...secure,
    port: plan.port,
    maxConnections: shares.api,
    routes: services.routes,
    services: services.services,
    policies: services.policies,
    pages: services.pages,
    logReader: services.logReader,
    authenticate: authentication.authenticate,
    recordRefusal: guards.refusals.record,
    failures: guards.failures,
    tracer,
    hosts: hostRule(config, tls ?? null),
    door: browserDoor({ clusterId: store.clusterId(), isNetworkTrusted: config["Listen.InsecurePlaintext"] }),
    passOn: services.console?.passOn ?? undefined,
    fallback: services.console?.serve,
    serving,
  });
  parts.add(api);
  return { agents, internal, api };
}

/** Of a control plane that is one process no other machine needs the port between replicas. */
function hasInternalLoopback({ name }: ProcessPlan): boolean {
  return name === "up";
}

function internalHost({ plan, config }: ControlPlaneOptions): string {
  return hasInternalLoopback(plan) ? LOOPBACK : advertisedHost(plan, config);
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
