import type { Task } from "@rollcall/process";
import type { RequestValidator } from "@rollcall/rpc";
import { currentRevision } from "@rollcall/store";
import type { BrakeCounter } from "./brake/brake-counter.ts";
import { BrakeDecider } from "./brake/brake-decider.ts";
import type { HealthDeps } from "./deps.ts";
import type { Peers } from "./internal/peers.ts";
import type { HealthMetrics } from "./metrics.ts";
import type { PolicyFollower } from "./policy/policy-follower.ts";
import { InfoWriter } from "./record/info-writer.ts";
import { TransitionWriter } from "./record/transition-writer.ts";
import type { HeldNode } from "./replica/held-node.ts";
import type { Replica } from "./replica/replica.ts";
import { adoptOrphansTask, OrphanAdopter } from "./tasks/adopt-orphans.ts";
import { Advertiser, advertiseTask, type Endpoints } from "./tasks/advertise.ts";
import { clearDuplicatesTask } from "./tasks/clear-duplicates.ts";
import { decideBrakeTask } from "./tasks/decide-brake.ts";
import { followPoliciesTask } from "./tasks/follow-policies.ts";
import { judgeSilenceTask } from "./tasks/judge-silence.ts";
import { keepTruthTask } from "./tasks/keep-truth.ts";
import { AdoptedProber, probeAdoptedTask } from "./tasks/probe-adopted.ts";
import { pushSettingsTask, SettingsPusher } from "./tasks/push-settings.ts";
import { writeNodeInfoTask } from "./tasks/write-node-info.ts";
import { writeTransitionsTask } from "./tasks/write-transitions.ts";
import { TruthKeeper } from "./truth/truth-keeper.ts";

export interface RecordWorkOptions {
  readonly deps: HealthDeps;
  readonly replica: Replica;
  readonly validator: RequestValidator;
  readonly metrics: HealthMetrics;
  readonly random: () => number;
  /** Whether a session of this node may be being opened just now. */
  readonly isOpening: (nodeId: string) => boolean;
  readonly peers: Peers;
  readonly policies: PolicyFollower;
  readonly brake: BrakeCounter;
}

/** What goes on in the background, and how it learns that there is something to do. */
export interface RecordWork {
  readonly tasks: readonly Task[];
  readonly transitions: TransitionWriter;
  readonly infos: InfoWriter;
  /** A node may differ from the record. */
  write(node: HeldNode): void;
  /** A node's labels have changed in the record, or something else that its agent is told. */
  pushSettings(node: HeldNode): void;
  /** Other policies hold for a node, or for any of them when it is null. */
  settle(nodeId: string | null): void;
  /** A node flaps, or something is wrong with its hardware, or not any more. */
  keepTruth(node: HeldNode): void;
  /** Look for orphans now. */
  adopt(): void;
  /** The record may say that this replica holds nodes of which it knows nothing. */
  doubt(): void;
  /** Say where this replica can be reached. */
  advertise(endpoints: Endpoints): void;
  /** Send no more agents here. */
  hideFromAgents(): Promise<void>;
  /** Say it again, if it was said. */
  advertiseAgain(): void;
}

const CATCH_UP_WITHIN_MS = 5_000;

/** Create the background work of a replica. */
export function createRecordWork(options: RecordWorkOptions): RecordWork {
  const { deps, replica, validator, metrics, random, isOpening } = options;
  const { clock, log, config } = deps;
  const store = deps.store.reserved;
  const loops = { clock, log, random };
  const tickMs = config["Orchestrator.NodeManager.DetectorTick"];
  const catchUp = async () => {
    const revision = await currentRevision(store.db);
    await deps.feed.caughtUpTo(revision, AbortSignal.timeout(CATCH_UP_WITHIN_MS));
  };
  const groupOf = options.brake.groupOf.bind(options.brake);
  const transitions = new TransitionWriter({
    store,
    replica,
    metrics,
    isOpening,
    groupOf,
    catchUp,
  });
  const infos = new InfoWriter({
    // What a node says of itself may wait behind callers.
    store: deps.store,
    replica,
    validator,
    onQueued: () => informing.call(),
  });
  const settings = new SettingsPusher({ store, replica, clock });
  const policiesKnown = () => options.policies.ready();
  const { peers } = options;
  const prober = new AdoptedProber({ log, replica, peers });
  const probing = probeAdoptedTask(prober, loops);
  const adopter = new OrphanAdopter({
    store,
    replica,
    isOpening,
    log,
    policiesKnown,
    knowPeers: () => peers.refresh(0),
    onAdopted: (nodes) => {
      prober.add(nodes);
      probing.call();
    },
  });
  const keeper = new TruthKeeper({ store, replica, log });
  const keeping = keepTruthTask(keeper, loops);
  const advertiser = new Advertiser({ store, instance: deps.instance, log });
  const writing = writeTransitionsTask(transitions, { ...loops, gatherMs: deps.gatherMs });
  const informing = writeNodeInfoTask(infos, loops);
  const pushing = pushSettingsTask(settings, loops);
  const following = followPoliciesTask(options.policies, loops);
  const adoption = adoptOrphansTask(adopter, loops);
  const advertisement = advertiseTask(advertiser, loops);
  const clearing = clearDuplicatesTask({ store, instance: deps.instance, clock, log });
  const decider = new BrakeDecider({ ...deps, store, ...deps.brakeTimes });
  const deciding = decideBrakeTask(decider, {
    store,
    clock: deps.brakeTimes?.clock ?? clock,
    log,
    instance: deps.instance,
    ...renewalTimes(deps),
  });
  const judging = judgeSilenceTask({ replica, clock, tickMs });
  return {
    tasks: [
      clearing,
      judging,
      writing,
      informing,
      following,
      pushing,
      adoption,
      probing,
      advertisement,
      deciding,
      keeping,
    ],
    transitions,
    infos,
    write: (node) => {
      transitions.add(node);
      writing.call();
    },
    pushSettings: (node) => {
      settings.add(node);
      pushing.call();
    },
    keepTruth: (node) => {
      keeper.add(node);
      keeping.call();
    },
    settle: (nodeId) => {
      settings.addUnsettled(nodeId);
      pushing.call();
    },
    adopt: () => adoption.call(),
    doubt: () => adopter.doubt(),
    advertise: (endpoints) => {
      advertiser.set(endpoints);
      advertisement.call();
    },
    hideFromAgents: () => advertiser.hideFromAgents(),
    advertiseAgain: () => {
      advertiser.repeat();
      advertisement.call();
    },
  };
}

function renewalTimes({ brakeTimes }: HealthDeps) {
  const { renewEveryMs = null, expiryMs = null } = brakeTimes ?? {};
  return {
    ...(renewEveryMs === null ? {} : { renewEveryMs }),
    ...(expiryMs === null ? {} : { expiryMs }),
  };
}
