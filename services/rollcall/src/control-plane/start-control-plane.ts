import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import {
  type Clock,
  createGrpcServer,
  createRpcServer,
  type Logger,
  type Running,
  type RunningServer,
  ServingStatus,
  type SuperviseOptions,
  superviseTasks,
  type Task,
} from "@rollcall/runtime";
import { createAuthenticator, createLeaseKeeper, type Store } from "@rollcall/store";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { agentEndpoint, createServices, reachableHost, type Services } from "./create-services.ts";
import { openNats } from "./open-nats.ts";
import type { Probes } from "./open-probes.ts";
import { orchestratorId } from "./orchestrator-id.ts";
import { OrchestratorNode } from "./orchestrator-node.ts";
import type { ProcessPlan } from "./process-plan.ts";

/** What a process of the control plane is started with. */
export interface ControlPlaneOptions {
  readonly plan: ProcessPlan;
  readonly config: ControlPlaneConfig;
  /** The open record. Whoever opened it closes it, after the process. */
  readonly store: Store;
  /** The open probes. Whoever opened them closes them, after the process. */
  readonly probes: Probes;
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

/** Ends one thing that was started. */
type Close = () => Promise<unknown>;

/**
 * Start the services of a plan behind their ports, and resolve when the process holds its lease. When something cannot start, what was
 * started before is ended and the error is thrown; the store stays open.
 */
export async function startControlPlane(
  options: ControlPlaneOptions,
  signal: AbortSignal,
): Promise<ControlPlane> {
  const started: Close[] = [];
  try {
    return await start(options, signal, started);
  } catch (error) {
    for (const close of started.reverse()) await close();
    throw error;
  }
}

async function start(
  options: ControlPlaneOptions,
  signal: AbortSignal,
  started: Close[],
): Promise<ControlPlane> {
  const { plan, config, store, probes, version, clock, log } = options;
  const { metrics } = probes;
  const serving = new ServingStatus();
  const instance = `${orchestratorId(plan.name, hostname(), plan.port, 1)}.${randomBytes(4).toString("hex")}`;
  const shared = { store, config, instance, clock, log, metrics };
  const nats = await openNats(plan, shared);
  if (nats !== null) started.push(nats.close);
  const services = createServices(plan, shared, nats);
  started.push(services.close);
  await services.start();

  const servers = await listen(options, services, serving, started);
  const address = `${reachableHost(plan.host)}:${servers.api.port}`;
  const shown = { service: plan.name, instance, address, port: servers.api.port, version };
  const node = new OrchestratorNode(store, shown, log);
  const firstHeld = new AbortController();
  const keeper = createLeaseKeeper({
    store,
    clock,
    log,
    claim: { instance, service: plan.name, address },
    onHeld: () => {
      firstHeld.abort();
      node.show();
      services.health?.onLeaseHeld();
    },
    onDoubt: (doubt) => services.health?.onLeaseDoubt(doubt),
  });
  probes.answerWith(async () => ({
    ...(await services.ready()),
    lease: keeper.held
      ? { ok: true, message: "held" }
      : { ok: false, message: "not held for certain" },
  }));
  const work = supervise([node, ...services.tasks], { log, clock, metrics });
  const keeping = supervise([keeper], { log, clock, metrics });
  started.push(keeping.end, work.end);
  if (servers.agents !== null) {
    services.health?.advertise({
      agentEndpoint: agentEndpoint(plan, config, servers.agents.port),
      internalAddress: address,
      queryEndpoint: address,
    });
  }
  await aborted(AbortSignal.any([firstHeld.signal, signal]));
  signal.throwIfAborted();
  return {
    port: servers.api.port,
    agentPort: servers.agents?.port ?? null,
    close: async () => {
      // Balancers first; then no new work; then what is under way; the lease last, since with it others take over.
      serving.drain();
      await servers.api.close();
      await services.close();
      await servers.agents?.close();
      await work.end();
      await nats?.close();
      await keeping.end();
    },
  };
}

interface Servers {
  readonly agents: RunningServer | null;
  readonly api: RunningServer;
}

async function listen(
  { plan, config, store, probes, clock, log }: ControlPlaneOptions,
  services: Services,
  serving: ServingStatus,
  started: Close[],
): Promise<Servers> {
  const common = { host: plan.host, metrics: probes.metrics, log, clock };
  const agents =
    services.health === null
      ? null
      : await createGrpcServer({
          ...common,
          port: config["Listen.AgentPort"],
          routes: services.health.agentRoutes,
          // Health writes lines of its own, with the node and its epoch.
          logCalls: false,
          serving,
        });
  if (agents !== null) started.push(() => agents.close());
  const api = await createRpcServer({
    ...common,
    port: plan.port,
    routes: services.routes,
    services: services.services,
    policies: services.policies,
    authenticate: createAuthenticator({ store, clock }),
    serving,
  });
  started.push(() => api.close());
  return { agents, api };
}

function supervise(
  tasks: readonly Task[],
  options: Omit<SuperviseOptions, "signal">,
): { readonly end: () => Promise<void> } {
  const ending = new AbortController();
  const { done } = superviseTasks(tasks, { ...options, signal: ending.signal });
  return {
    end: async () => {
      ending.abort(new Error("the process is ending"));
      await done;
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
}
