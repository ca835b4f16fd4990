import type { ReportHeartbeatRequest } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { collectPolicies, type EventInterest, type HealthPolicies, replicaInterest } from "@rollcall/domain";
import {
  type Core,
  createCore,
  HEALTH_KEYS,
  type HealthConfig,
  type HealthMetrics,
  type HealthStore,
  type LocalSessions,
  type Peers,
  type SessionHost,
  STORE_RETRY,
  type UnaryAnswer,
  WorkDispatcher,
} from "@rollcall/health/parts";
import { type Clock, type Logger, silentLogger, superviseTasks } from "@rollcall/process";
import { createLeaseKeeperOf, type LabelsOfNode, type LeaseStore, type NodeKeys } from "@rollcall/store";
import { Observer } from "./invariants.ts";
import { ObservedFailureDetector } from "./observed-failure-detector.ts";
import { createVirtualClock } from "./schedule.ts";
import { ObservedLocalSessions, takeCall } from "./simulated-calls.ts";
import { createSimulatedPeers, type SimulatedClient } from "./simulated-peers.ts";
import {
  indexOf,
  LEASE_EXPIRY_MS,
  policyOf,
  RENEW_EVERY_MS,
  SIMULATED_POLICIES,
  STEP_MS,
} from "./simulation-options.ts";
import type { World } from "./world.ts";

const CLOSE_WITHIN_MS = 5_000;

/** One health process: the core and the lease keeper as they ship, on a virtual clock and a simulated store. */
export class SimulatedProcess {
  readonly instance: string;
  readonly slot: number;
  readonly core: Core;
  readonly host: SessionHost;
  readonly unary: LocalSessions;
  readonly peers: Peers<SimulatedClient>;
  readonly log: Logger;
  /** Records what really happens to the process. */
  readonly observer: Observer;
  /** Whether the process is alive. If not, nothing is delivered to it. */
  isAlive = true;
  /** Whether new agents are no longer directed to this process, because it is shutting down. */
  isHidden = false;
  readonly #world: World;
  readonly #clock: Clock;
  readonly #ending = new AbortController();
  readonly #done: Promise<void>;
  readonly #interest: EventInterest;
  readonly #queue: WorkDispatcher | null;
  #readRevision: number;

  constructor(world: World, instance: string, slot: number) {
    this.#world = world;
    this.instance = instance;
    this.#interest = replicaInterest(instance);
    this.slot = slot;
    this.observer = new Observer(world.agents.length);
    this.#readRevision = world.record.revision;
    const clock = createVirtualClock(world.schedule, (run) => world.deliver(this, run));
    this.#clock = clock;
    const log = createLog(world, instance);
    this.log = log;
    this.peers = createSimulatedPeers(world, this, clock);
    const random = () => world.random();
    const core = createCore({
      ...{ instance, clock, log, random, config: CONFIG },
      record: this.#record(),
      peers: this.peers,
      metrics: this.#metrics(),
      gatherMs: 0,
      validator: { check: () => {} },
      policiesKnown: () => Promise.resolve(),
      groupOf: () => "",
      onLabelsChanged: () => {},
      onConditionsChanged: () => {},
      isSigned: () => true,
      nextLoopTick: () => new Promise((resolve) => world.schedule.afterSteps(0, () => world.deliver(this, resolve))),
      createFailureDetector: (options) => new ObservedFailureDetector(options, world, this.observer),
    });
    core.replica.policies.follow(POLICIES);
    this.core = core;
    const call = <T>(carryOut: () => T) => world.callRecord(this, carryOut);
    this.#queue =
      world.work === null
        ? null
        : new WorkDispatcher({
            ...{ record: world.work.recordOf(call), replica: core.replica, validator: { check: () => {} } },
            loops: { clock, retry: STORE_RETRY },
          });
    this.host = {
      ...{
        replica: core.replica,
        clock,
        log,
        onBeat: null,
        onNodeInfo: () => {},
        work: this.#queue,
        authorities: null,
      },
      onHello: core.queue.submit.bind(core.queue),
    };
    this.unary = new ObservedLocalSessions(this.host, world.schedule, this.observer);
    const keeper = createLeaseKeeperOf(() => this.#leases(), {
      ...{ clock, log, renewEveryMs: RENEW_EVERY_MS, expiryMs: LEASE_EXPIRY_MS },
      claim: { instance, service: "health", address: "" },
      report: () => ({ sessions: core.replica.nodes.sessions }),
      onHeld: () => core.leaseHeld(),
      onDoubt: ({ sinceMs }) => core.leaseDoubted(sinceMs),
    });
    const { signal } = this.#ending;
    this.#done = superviseTasks([...core.tasks, ...(this.#queue?.tasks ?? []), keeper], {
      log,
      clock,
      random,
      signal,
    }).done;
  }

  /** The revision of the last event that the process has read. */
  get readRevision(): number {
    return this.#readRevision;
  }

  /** Read new events if the log can be reached. Randomly reads later, so that processes are not in step. */
  follow(): void {
    const { record, network } = this.#world;
    if (record.revision === this.#readRevision || !network.reachesRecord(this.slot)) return;
    if (this.#world.random() < 0.5) return;
    this.#catchUp();
  }

  /** Called when the work that nodes should run may have changed. */
  notified(): void {
    this.#queue?.observe();
  }

  report(request: ReportHeartbeatRequest): Promise<UnaryAnswer> {
    return takeCall(this, request);
  }

  /**
   * Shut down gracefully, as after SIGTERM: move the agents, end the streams, write pending changes, release the
   * lease.
   */
  async close(): Promise<void> {
    const { core } = this;
    await core.drain(async () => {
      this.isHidden = true;
    });
    core.close();
    const { signal } = this.#ending;
    const late = this.#clock.sleep(CLOSE_WITHIN_MS, signal).catch(() => {});
    await Promise.race([core.transitions.flush().catch(() => {}), late]);
    this.#ending.abort();
    await this.#done;
  }

  #catchUp(): void {
    const { record } = this.#world;
    const events = record.eventsAfter(this.#readRevision, this.#interest);
    this.#readRevision = record.revision;
    this.core.observe(events);
  }

  #record(): HealthStore {
    const { record } = this.#world;
    const { instance } = this;
    const call = <T>(carryOut: () => T) => this.#world.callRecord(this, carryOut);
    return {
      clusterId: () => "simulated",
      currentRevision: () => call(() => BigInt(record.revision)),
      caughtUpTo: () => call(() => {}).then(() => this.#catchUp()),
      keysOf: (ids) => (ids.length === 0 ? NOTHING : call(() => new Map(ids.map((id) => [id, keysOf(id)])))),
      labelsOf: (ids) => (ids.length === 0 ? NOTHING : call(() => new Map(ids.map((id) => [id, labelsOf(id)])))),
      collectedAmong: () => Promise.resolve(new Set()),
      openSessions: (hellos) => {
        const { revision } = record;
        return call(() => hellos.map((hello) => record.open(hello, instance, revision)));
      },
      writeTransitions: (items) => call(() => record.write(instance, items)),
      adoptOrphans: (limit) => call(() => record.adopt(instance, limit)),
      held: (nodeIds) => call(() => record.heldBy(instance, nodeIds)),
    };
  }

  #leases(): LeaseStore {
    const { record, schedule } = this.#world;
    const { instance, observer } = this;
    const call = <T>(carryOut: () => T) => this.#world.callRecord(this, carryOut);
    let startMs = schedule.nowMs;
    return {
      renew: async (report) => {
        startMs = schedule.nowMs;
        const counter = await call(() => record.renew(instance, report?.sessions ?? 0));
        if (counter !== null) observer.renewed(startMs, schedule.nowMs, true);
        return counter;
      },
      take: async () => {
        const counter = await call(() => record.take(instance));
        observer.renewed(startMs, schedule.nowMs, false);
        return counter;
      },
      list: () => call(() => record.listLeases()),
      endLost: (lease) => call(() => record.expire(lease)),
      endOwn: () => call(() => void record.leases.delete(instance)),
      close: () => Promise.resolve(),
    };
  }

  #metrics(): HealthMetrics {
    const ignore = () => {};
    return {
      ...{ hello: ignore, movesAsked: ignore, transition: ignore, detectionDelay: ignore, loopLag: ignore },
      ...{ observationLost: ignore, returnedAtOnce: ignore },
      deadlineExtended: (cause, extendedMs) => {
        if (cause === "network") this.observer.stoodStill(this.#world.schedule.nowMs, extendedMs);
      },
    };
  }
}

const CONFIG = {
  ...(Object.fromEntries(Object.entries(HEALTH_KEYS).map(([path, key]) => [path, key.default])) as HealthConfig),
  "Orchestrator.NodeManager.DetectorTick": STEP_MS,
};

const NOTHING = Promise.resolve(new Map<string, never>());
const CLASS = "class";

/** The policy of each class of nodes. */
const POLICIES: HealthPolicies = collectPolicies(
  SIMULATED_POLICIES.map(({ unhealthyAfterMs, unknownAfterMs, heartbeatMs: heartbeatIntervalMs }, index) => {
    const selector = [{ operator: "=", key: CLASS, value: String(index) }] as const;
    const override = { unhealthyAfterMs, unknownAfterMs, heartbeatIntervalMs };
    return { kind: "group" as const, group: { name: String(index), priority: 0, selector, override } };
  }),
);

const LABELS: readonly LabelsOfNode[] = SIMULATED_POLICIES.map((_, index) => {
  return { effective: [], trusted: new Map([[CLASS, String(index)]]) };
});

function labelsOf(nodeId: string): LabelsOfNode {
  return LABELS[SIMULATED_POLICIES.indexOf(policyOf(indexOf(nodeId)))] as LabelsOfNode;
}

const PUBLIC_KEY = new Uint8Array(32).fill(9);

function keysOf(nodeId: string): NodeKeys {
  return { nodeId, publicKey: PUBLIC_KEY, fingerprint: "simulated", next: null, isRotationRequired: false };
}

/**
 * Report a logged error as a broken invariant: the shipped code must handle everything that happens in the simulation.
 */
function createLog({ invariants }: World, instance: string): Logger {
  const complain = (fields: { err?: unknown }, message: string) => {
    const { err } = fields;
    invariants.note(`${instance} logged "${message}": ${err instanceof Error ? err.stack : String(err)}`);
  };
  const log: Logger = {
    ...silentLogger,
    error: complain,
    warn: (fields, message) => {
      if (message === "task failed") complain(fields, message);
    },
    child: () => log,
  };
  return log;
}
