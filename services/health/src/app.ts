import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { ReplicaAuthenticator } from "@rollcall/identity";
import type { Task } from "@rollcall/process";
import type { GrpcRoute, PolicyTable, ReadyReport } from "@rollcall/rpc";
import { type LeaseReport, withdraw } from "@rollcall/store";
import type { HealthDeps } from "./deps.ts";
import { replicasOnly } from "./internal/replica-only.ts";
import { createInternalRoutes, INTERNAL_POLICIES, INTERNAL_SERVICES } from "./internal/routes.ts";
import { createParts } from "./parts.ts";
import type { HeldNode } from "./replica/held-node.ts";
import type { Replica } from "./replica/replica.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";
import { createAgentRoutes } from "./stream/agent-routes.ts";
import type { Endpoints } from "./tasks/advertise.ts";

/** Health, ready to be put behind its two ports. */
export interface HealthApp {
  /** The readers' side. */
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  /** What other replicas ask, for a port of its own: see Endpoints.internalAddress. */
  readonly internal: Pick<HealthApp, "routes" | "services" | "policies"> & {
    readonly authenticateReplica: ReplicaAuthenticator;
  };
  /** The agents' side, for createGrpcServer(). */
  readonly agentRoutes: readonly GrpcRoute[];
  /** Background work, for a supervisor to run. */
  readonly tasks: readonly Task[];
  /** What the nodes' states depend on, for tests and for looking into a running process. */
  readonly replica: Replica;
  /** Look after a node now, as is done by itself every few seconds; for tests. */
  keepTruth(node: HeldNode): void;
  /** Whether agents can be taken in. */
  ready(): ReadyReport;
  /** What to tell with each renewal of the process's lease, see LeaseKeeperOptions. Each call counts anew. */
  leaseReport(): LeaseReport;
  /** To be called by the process's lease keeper, see LeaseKeeperOptions. */
  onLeaseHeld(): void;
  /** Likewise: nobody is judged until the lease is held again. */
  onLeaseDoubt(doubt: { readonly sinceMs: number }): void;
  /** Say where this replica can be reached, once that is known. */
  advertise(endpoints: Endpoints): void;
  /**
   * Take no more agents, and hand those that are here on to other replicas while they are still served here; up to ten
   * seconds. It resolves at once where there are none. The first step of an end in order.
   */
  drain(): Promise<void>;
  /**
   * End every stream, each with a time to come back, and write what is not written yet, within 5 s. Call it before the
   * agents' port is closed and before the lease is released.
   */
  close(): Promise<void>;
}

const CLOSE_WITHIN_MS = 5_000;

/** Create health: who is well. */
export function createApp(deps: HealthDeps): HealthApp {
  const { replica, desk, host, work, policies, brake, moves, methods } = createParts(deps);
  const { reserved } = deps.store;
  const stopFollowing = deps.feed.subscribe((events) => {
    policies.observe(events);
    desk.observe(events);
    replica.apply(events);
    methods.watches.observe(events);
  });
  return {
    routes: createRoutes(methods),
    services: SERVICES,
    policies: POLICIES,
    internal: {
      routes: createInternalRoutes(methods),
      services: INTERNAL_SERVICES,
      policies: INTERNAL_POLICIES,
      authenticateReplica: replicasOnly(methods),
    },
    agentRoutes: createAgentRoutes(host),
    tasks: [...work.tasks, ...moves.tasks],
    replica,
    keepTruth: (node) => work.keepTruth(node),
    ready: () => ({ agents: readiness(replica) }),
    leaseReport: () => ({ sessions: replica.nodes.sessions, brake: brake.count() }),
    onLeaseHeld: () => {
      replica.leaseHeld();
      work.adopt();
      work.advertiseAgain();
    },
    onLeaseDoubt: ({ sinceMs }) => {
      replica.leaseDoubted(sinceMs);
      moves.doubted();
    },
    advertise: (endpoints) => work.advertise(endpoints),
    drain: () => moves.drain(() => work.hideFromAgents()),
    close: async () => {
      replica.close(moves.reconnects.windowMs(replica.nodes.sessions));
      await within(deps, CLOSE_WITHIN_MS, async () => {
        await work.transitions.flush();
        await withdraw(reserved.db, deps.instance);
      });
      stopFollowing();
      methods.peers.close();
    },
  };
}

function readiness(replica: Replica): ReadyReport[string] {
  if (replica.mayOpen) return { ok: true, message: `${replica.nodes.sessions} agents connected` };
  if (replica.isClosing) return { ok: false, message: "the process is ending" };
  return { ok: false, message: "the lease is not held for certain" };
}

/**
 * Do the last work as far as the record allows: what is left undone is decided anew by whoever takes the nodes over.
 */
async function within({ clock, log }: HealthDeps, ms: number, work: () => Promise<void>): Promise<void> {
  const done = new AbortController();
  const late = clock.sleep(ms, done.signal).then(
    () => log.warn({ after_ms: ms }, "health closed before everything was written"),
    () => {},
  );
  const working = work().catch((err: unknown) => {
    log.warn({ err }, "health closed without writing everything");
  });
  await Promise.race([late, working]);
  done.abort();
}
