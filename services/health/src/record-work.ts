import type { RequestValidator, Task } from "@rollcall/runtime";
import { currentRevision } from "@rollcall/store";
import { policyOf } from "./config.ts";
import type { HealthDeps } from "./deps.ts";
import type { HealthMetrics } from "./metrics.ts";
import { InfoWriter } from "./record/info-writer.ts";
import { TransitionWriter } from "./record/transition-writer.ts";
import type { HeldNode } from "./replica/held-node.ts";
import type { Replica } from "./replica/replica.ts";
import { adoptOrphansTask, OrphanAdopter } from "./tasks/adopt-orphans.ts";
import { Advertiser, advertiseTask, type Endpoints } from "./tasks/advertise.ts";
import { judgeSilenceTask } from "./tasks/judge-silence.ts";
import { LabelPusher, pushLabelsTask } from "./tasks/push-labels.ts";
import { writeNodeInfoTask } from "./tasks/write-node-info.ts";
import { writeTransitionsTask } from "./tasks/write-transitions.ts";

export interface RecordWorkOptions {
  readonly deps: HealthDeps;
  readonly replica: Replica;
  readonly validator: RequestValidator;
  readonly metrics: HealthMetrics;
  readonly random: () => number;
  /** Whether a session of this node may be being opened just now. */
  readonly isOpening: (nodeId: string) => boolean;
}

/** What goes on in the background, and how it learns that there is something to do. */
export interface RecordWork {
  readonly tasks: readonly Task[];
  readonly transitions: TransitionWriter;
  readonly infos: InfoWriter;
  /** A node may differ from the record. */
  write(node: HeldNode): void;
  /** A node's labels have changed in the record. */
  pushLabels(node: HeldNode): void;
  /** Look for orphans now. */
  adopt(): void;
  /** The record may say that this replica holds nodes of which it knows nothing. */
  doubt(): void;
  /** Say where this replica can be reached. */
  advertise(endpoints: Endpoints): void;
  /** Say it again, if it was said. */
  advertiseAgain(): void;
}

const CATCH_UP_WITHIN_MS = 5_000;

/** Create the background work of a replica. */
export function createRecordWork(options: RecordWorkOptions): RecordWork {
  const { deps, replica, validator, metrics, random, isOpening } = options;
  const { store, clock, log, config } = deps;
  const loops = { clock, log, random };
  const tickMs = config["Orchestrator.NodeManager.DetectorTick"];
  const catchUp = async () => {
    const revision = await currentRevision(store.db);
    await deps.feed.caughtUpTo(revision, AbortSignal.timeout(CATCH_UP_WITHIN_MS));
  };
  const transitions = new TransitionWriter({ store, replica, metrics, isOpening, catchUp });
  const infos = new InfoWriter({ store, replica, validator, onQueued: () => informing.call() });
  const labels = new LabelPusher(store, policyOf(config));
  const adopter = new OrphanAdopter({ store, replica, isOpening, log });
  const advertiser = new Advertiser(store, deps.instance);
  const writing = writeTransitionsTask(transitions, loops);
  const informing = writeNodeInfoTask(infos, loops);
  const pushing = pushLabelsTask(labels, loops);
  const adoption = adoptOrphansTask(adopter, loops);
  const advertisement = advertiseTask(advertiser, loops);
  const judging = judgeSilenceTask({ replica, clock, tickMs });
  return {
    tasks: [judging, writing, informing, pushing, adoption, advertisement],
    transitions,
    infos,
    write: (node) => {
      transitions.add(node);
      writing.call();
    },
    pushLabels: (node) => {
      labels.add(node);
      pushing.call();
    },
    adopt: () => adoption.call(),
    doubt: () => adopter.doubt(),
    advertise: (endpoints) => {
      advertiser.set(endpoints);
      advertisement.call();
    },
    advertiseAgain: () => {
      advertiser.repeat();
      advertisement.call();
    },
  };
}
