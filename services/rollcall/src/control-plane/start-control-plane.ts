import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { originCheck } from "@rollcall/console";
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
import { createGrpcServer, createRpcServer, type GuardedServer, ServingStatus } from "@rollcall/rpc";
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

/** The inputs for starting a control-plane process. */
export interface ControlPlaneOptions {
  readonly plan: ProcessPlan;
  readonly config: ControlPlaneConfig;
  /** The open store. The caller closes it after the process. */
  readonly store: Store;
  /** The open probes. The caller closes them after the process. */
  readonly probes: Probes;
  /** The certificate of the API and of the agents' port; clear text when absent or null. */
  readonly tls?: TlsSource | null;
  /** The authority of other processes' certificates; null or absent to trust the system's authorities. */
  readonly caFile?: string | null;
  /** Background tasks in addition to those of the services. */
  readonly tasks?: readonly Task[];
  /** Called with the instance id before the process takes its lease. */
  readonly onInstance?: (instance: string) => void;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A running control-plane process. */
export interface ControlPlane extends Running {
  /** The port of the API. */
  readonly port: number;
  /** The port of agents' streams; null without health. */
  readonly agentPort: number | null;
}

const LOOPBACK = "127.0.0.1";

/**
 * Start the services of a plan on their ports, and resolve when the process holds its lease. If a part fails to start,
 * stop the parts that have started and throw the error; the store stays open.
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
  // Register the end of the lease first, so that it happens last, because other processes take over when the lease
  // ends. The supervised tasks start later, because they need parts that are created below.
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
  const { failures, anonymousClients } = guards;
  const shared = { ...common, failures, anonymousClients };
  if (hasAgents) boundGarbage();
  const authentication = parts.add(await openAuthentication({ store, config, clock, log }));
  const { authenticate } = authentication;
  const browsers = { authenticate, pages: await readConsolePages(plan) };
  const services = createServices(plan, { ...shared, ...browsers }, nats);
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
  // On shutdown, first notify load balancers, then move agents to other replicas, then refuse new calls, and then
  // finish the calls in progress.
  parts.onClose(async () => {
    serving.drain();
    await services.health?.drain().catch((err: unknown) => {
      // Continue, because these agents are asked to reconnect instead.
      log.warn({ err }, "agents were not moved to other replicas");
    });
  });
  return { port: servers.api.port, agentPort: servers.agents?.port ?? null };
}

interface Servers {
  readonly agents: GuardedServer | null;
  /** Serves other health replicas. */
  readonly internal: GuardedServer | null;
  readonly api: GuardedServer;
}

/** The parts that the servers of a process need. The servers are added to `parts`. */
interface Listening {
  readonly services: Services;
  readonly authentication: Authentication;
  readonly guards: CallGuards;
  readonly serving: ServingStatus;
  readonly parts: Parts;
  /** How many connections each port can accept. */
  readonly shares: DescriptorPlan;
  readonly tracer: Tracer | null;
  /** Called after the API has closed and before the agents' port closes, to ask streams to reconnect. */
  closeServices(): Promise<void>;
}

async function listen(
  { plan, config, store, probes, tls, clock, log }: ControlPlaneOptions,
  { services, authentication, guards, serving, parts, shares, tracer, closeServices }: Listening,
): Promise<Servers> {
  const { calls, anonymousClients, clientAddress } = guards;
  const counted = { calls, anonymousClients, clientAddress };
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
          maxAnonymousOfAddress: config["Health.MaxAnonymousPerAddress"],
          routes: services.health.agentRoutes,
          // Do not log calls here, because the health service logs agents' calls, with the node and its epoch.
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
          // Do not share this port, although workers share the other ports.
          exclusive: true,
          ...secure,
          // Request no client certificates, because the callers of this port are replicas, which authenticate with the
          // cluster's secret.
          asksClients: false,
          ...services.health.internal,
          tracer,
          // Accept no access tokens on this port.
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
    door: originCheck({ clusterId: store.clusterId(), isNetworkTrusted: config["Listen.InsecurePlaintext"] }),
    passOn: services.console?.passOn ?? undefined,
    fallback: services.console?.serve,
    serving,
  });
  parts.add(api);
  return { agents, internal, api };
}

/** Whether the port between replicas listens only on loopback, as in a control plane with a single process. */
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
