import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import {
  createRequestValidator,
  type GrpcRoute,
  type PolicyTable,
  type ReadyReport,
  type Task,
} from "@rollcall/runtime";
import { currentRevision, withdraw } from "@rollcall/store";
import { policyOf } from "./config.ts";
import type { HealthDeps } from "./deps.ts";
import { createHealthMetrics, type HealthMetrics } from "./metrics.ts";
import { InfoWriter } from "./record/info-writer.ts";
import { TransitionWriter } from "./record/transition-writer.ts";
import { Replica } from "./replica/replica.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";
import { createAgentRoutes } from "./stream/agent-routes.ts";
import { HelloDesk } from "./stream/hello-desk.ts";
import { DEFAULT_STREAM_LIMITS } from "./stream/stream-host.ts";
import { adoptOrphansTask, OrphanAdopter } from "./tasks/adopt-orphans.ts";
import { Advertiser, advertiseTask, type Endpoints } from "./tasks/advertise.ts";
import { judgeSilenceTask } from "./tasks/judge-silence.ts";
import { LabelPusher, pushLabelsTask } from "./tasks/push-labels.ts";
import { writeNodeInfoTask } from "./tasks/write-node-info.ts";
import { writeTransitionsTask } from "./tasks/write-transitions.ts";

/** Health, ready to be put behind its two ports. */
export interface HealthApp {
  /** The readers' side. */
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  /** The agents' side, for createGrpcServer(). */
  readonly agentRoutes: readonly GrpcRoute[];
  /** Background work, for a supervisor to run. */
  readonly tasks: readonly Task[];
  /** What the nodes' states depend on, for tests and for looking into a running process. */
  readonly replica: Replica;
  /** Whether agents can be taken in. */
  ready(): ReadyReport;
  /** To be called by the process's lease keeper, see LeaseKeeperOptions. */
  onLeaseHeld(): void;
  /** Likewise: nobody is judged until the lease is held again. */
  onLeaseDoubt(doubt: { readonly sinceMs: number }): void;
  /** Say where this replica can be reached, once that is known. */
  advertise(endpoints: Endpoints): void;
  /**
   * End every stream, each with a time to come back, and write what is not written yet, within 5 s. Call it before the
   * agents' port is closed and before the lease is released.
   */
  close(): Promise<void>;
}

const CLOSE_WITHIN_MS = 5_000;
const CATCH_UP_WITHIN_MS = 5_000;

/** Create health: who is well. */
export function createApp(deps: HealthDeps): HealthApp {
  const parts = createParts(deps);
  const { replica, desk, transitions, tasks, adoption, advertisement, advertiser } = parts;
  const { clock, log, store } = deps;
  const stopFollowing = deps.feed.subscribe((events) => {
    desk.observe(events);
    replica.apply(events);
  });
  return {
    routes: createRoutes({ store, replica, clock, log }),
    services: SERVICES,
    policies: POLICIES,
    agentRoutes: createAgentRoutes(parts.host),
    tasks,
    replica,
    ready: () => ({ agents: readiness(replica) }),
    onLeaseHeld: () => {
      replica.leaseHeld();
      adoption.call();
      advertiser.repeat();
      advertisement.call();
    },
    onLeaseDoubt: ({ sinceMs }) => replica.leaseDoubted(sinceMs),
    advertise: (endpoints) => {
      advertiser.set(endpoints);
      advertisement.call();
    },
    close: async () => {
      replica.close();
      await within(deps, CLOSE_WITHIN_MS, async () => {
        await transitions.flush();
        await withdraw(store.db, deps.instance);
      });
      stopFollowing();
    },
  };
}

function createParts(deps: HealthDeps) {
  const { store, clock, log, config } = deps;
  const random = deps.random ?? Math.random;
  const policy = policyOf(config);
  const tickMs = config["Orchestrator.NodeManager.DetectorTick"];
  const validator = createRequestValidator();
  const metrics: HealthMetrics = createHealthMetrics(deps.metrics, () => ({
    sessions: replica.sessions,
    nodes: replica.size,
    beats: replica.beats,
    hellosQueued: desk.queued,
    transitionsQueued: transitions.queued,
  }));
  const replica = new Replica({
    instance: deps.instance,
    clock,
    policy,
    tickMs,
    random,
    metrics,
    onChanged: (node) => {
      transitions.add(node);
      writing.call();
    },
    onLabelsChanged: (node) => {
      labels.add(node);
      pushing.call();
    },
  });
  const isOpening = (nodeId: string) => desk.isOpening(nodeId);
  const catchUp = async () => {
    const revision = await currentRevision(store.db);
    await deps.feed.caughtUpTo(revision, AbortSignal.timeout(CATCH_UP_WITHIN_MS));
  };
  const transitions = new TransitionWriter({ store, replica, metrics, isOpening, catchUp });
  const infos = new InfoWriter({ store, replica, validator, onQueued: () => informing.call() });
  const labels = new LabelPusher(store, policy);
  const adoptionOptions = { store, replica, isOpening, clock, log, random };
  const adopter = new OrphanAdopter(adoptionOptions);
  const advertiser = new Advertiser(store, deps.instance);
  const desk = new HelloDesk({
    store,
    replica,
    policy,
    validator,
    metrics,
    log,
    clock,
    random,
    maxQueued: config["Health.HelloQueue"],
    onUncertain: () => adopter.doubt(),
  });
  const loops = { clock, log, random };
  const writing = writeTransitionsTask(transitions, loops);
  const informing = writeNodeInfoTask(infos, loops);
  const pushing = pushLabelsTask(labels, loops);
  const adoption = adoptOrphansTask(adopter, adoptionOptions);
  const advertisement = advertiseTask(advertiser, loops);
  const judging = judgeSilenceTask({ replica, clock, tickMs });
  const host = {
    replica,
    clock,
    log,
    limits: { ...DEFAULT_STREAM_LIMITS, ...deps.limits },
    onBeat: deps.onBeat ?? null,
    clusterId: () => store.clusterId(),
    onHello: desk.submit.bind(desk),
    onNodeInfo: infos.submit.bind(infos),
  };
  const tasks = [judging, writing, informing, pushing, adoption, advertisement];
  return { replica, desk, transitions, host, tasks, adoption, advertisement, advertiser };
}

function readiness(replica: Replica): ReadyReport[string] {
  if (replica.mayOpen) return { ok: true, message: `${replica.sessions} agents connected` };
  if (replica.isClosing) return { ok: false, message: "the process is ending" };
  return { ok: false, message: "the lease is not held for certain" };
}

/** Do the last work as far as the record allows: what is left undone is decided anew by whoever takes the nodes over. */
async function within(
  { clock, log }: HealthDeps,
  ms: number,
  work: () => Promise<void>,
): Promise<void> {
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
