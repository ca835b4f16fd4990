import { type EventInterest, replicaInterest } from "@rollcall/domain";
import { StoreUnavailableError } from "@rollcall/errors";
import {
  type Core,
  createCore,
  HEALTH_KEYS,
  type HealthConfig,
  type HealthMetrics,
  type HealthStore,
  type SessionHost,
} from "@rollcall/health/parts";
import { type Clock, type Logger, silentLogger } from "@rollcall/process";
import type { SimulatedStore } from "../health/simulated-store.ts";

/** A call to the store, or its response, in transit. */
export interface StoreCall {
  /** The instance of the calling replica. */
  readonly caller: string;
  readonly name: string;
  /** Whether the call can assign a new session epoch. The exploration bounds the number of epochs. */
  readonly isGiving: boolean;
  /** Whether the store has already executed the call. */
  readonly isDone: boolean;
  carryOut(): void;
  answer(): void;
  lose(): void;
}

/** Callbacks from a replica to the world around it. */
export interface ReplicaHooks {
  call(call: StoreCall): void;
  /** Called when the shipped code logs an error, which means a bug. */
  log(message: string): void;
  onBeat(sequence: number): void;
}

/** Length of a tick: long enough that a silent node becomes UNHEALTHY in one tick. */
const TICK_MS = 60_000;
const CONNECTION_BROKEN = new StoreUnavailableError("Connection terminated unexpectedly");

/** One replica: the core as it ships, with the explorer driving its loops. */
export class ExploredReplica {
  readonly instance: string;
  readonly core: Core;
  readonly host: SessionHost;
  nowMs = 0;
  readonly #record: SimulatedStore;
  readonly #hooks: ReplicaHooks;
  readonly #interest: EventInterest;
  #read = 0;
  #isWriting = false;
  #isAdopting = false;

  constructor(instance: string, record: SimulatedStore, hooks: ReplicaHooks) {
    this.instance = instance;
    this.#interest = replicaInterest(instance);
    this.#record = record;
    this.#hooks = hooks;
    const clock: Clock = { nowMs: () => this.nowMs, wallMs: () => this.nowMs, sleep: () => Promise.resolve() };
    const log = createLog(hooks);
    this.core = createCore({
      ...{ instance, clock, log, random: () => 0, config: CONFIG, metrics: NO_METRICS, gatherMs: 0 },
      record: this.#port(),
      peers: NO_PEERS,
      validator: { check: () => {} },
      policiesKnown: () => Promise.resolve(),
      groupOf: () => "",
      onLabelsChanged: () => {},
      onConditionsChanged: () => {},
      isSigned: () => true,
      nextLoopTick: () => Promise.resolve(),
    });
    const { replica, queue } = this.core;
    this.host = {
      ...{ replica, clock, log, onNodeInfo: () => {}, work: null, authorities: null },
      onHello: queue.submit.bind(queue),
      onBeat: (_nodeId, sequence) => hooks.onBeat(sequence),
    };
    record.take(instance);
    this.core.leaseHeld();
  }

  get mayWrite(): boolean {
    return !this.#isWriting && this.core.transitions.queued > 0;
  }

  get mayAdopt(): boolean {
    return !this.#isAdopting && this.core.replica.mayOpen;
  }

  get isBehindLog(): boolean {
    return this.#read < this.#record.revision;
  }

  /** Write changes, unless a write is in progress. */
  write(): void {
    if (this.#isWriting) return;
    this.#isWriting = true;
    const done = () => {
      this.#isWriting = false;
    };
    this.core.transitions.flush().then(done, done);
  }

  /** Adopt orphans, unless an adoption is in progress. */
  adopt(): void {
    if (this.#isAdopting) return;
    this.#isAdopting = true;
    const done = () => {
      this.#isAdopting = false;
    };
    this.core.adopter.turn().then(done, done);
  }

  /** Apply all new events in the log. */
  follow(): void {
    const events = this.#record.eventsAfter(this.#read, this.#interest);
    this.#read = this.#record.revision;
    this.core.observe(events);
  }

  /** Let enough time pass to make a silent node UNHEALTHY. */
  evaluate(): void {
    this.nowMs += TICK_MS;
    this.core.replica.evaluate();
  }

  /** The values that distinguish the states of this replica. */
  fingerprint(nodeId: string, streams: readonly { readonly session: unknown }[]): unknown {
    const { replica, transitions, adopter, queue } = this.core;
    const node = replica.nodes.find(nodeId);
    const held = node && [
      [node.epoch, streams.findIndex(({ session }) => session === node.stream), String(node.asOfRevision)],
      [node.health.state, node.connection.state, node.writtenHealth.state, node.writtenConnection.state],
      [node.isStoreUncertain, node.publicKey !== null],
    ];
    return [
      held,
      [this.#read, replica.mayOpen, transitions.queued, adopter.isUncertain],
      [this.#isWriting, this.#isAdopting, queue.queued, queue.isOpening(nodeId)],
    ];
  }

  #port(): HealthStore {
    const record = this.#record;
    const { instance } = this;
    return {
      clusterId: () => "explored",
      // Let reads return immediately, because only the order of writes matters.
      currentRevision: async () => BigInt(record.revision),
      caughtUpTo: async () => this.follow(),
      keysOf: async (ids) => new Map(ids.map((id) => [id, { ...KEYS, nodeId: id }])),
      // Deliver this read as a separate call. It follows an opening or an adoption, and can fail after the write
      // has succeeded.
      labelsOf: (ids) => (ids.length === 0 ? NO_LABELS : this.#call("labels", false, () => new Map())),
      collectedAmong: async () => new Set(),
      openSessions: (hellos) => {
        const { revision } = record;
        return this.#call("open", true, () => hellos.map((hello) => record.open(hello, instance, revision)));
      },
      writeTransitions: (items) => this.#call("write", false, () => record.write(instance, items)),
      adoptOrphans: (limit) => this.#call("adopt", true, () => record.adopt(instance, limit)),
      held: (nodeIds) => this.#call("held", false, () => record.heldBy(instance, nodeIds)),
    };
  }

  #call<T>(name: string, isGiving: boolean, carryOut: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      let result: { readonly value: T } | null = null;
      this.#hooks.call({
        caller: this.instance,
        name,
        isGiving,
        get isDone() {
          return result !== null;
        },
        carryOut: () => {
          result ??= { value: carryOut() };
        },
        answer: () => (result === null ? reject(CONNECTION_BROKEN) : resolve(result.value)),
        lose: () => reject(CONNECTION_BROKEN),
      });
    });
  }
}

const CONFIG = {
  ...(Object.fromEntries(Object.entries(HEALTH_KEYS).map(([path, key]) => [path, key.default])) as HealthConfig),
  "Orchestrator.NodeManager.DetectorTick": TICK_MS,
};
const KEYS = {
  publicKey: new Uint8Array(32).fill(9),
  fingerprint: "explored",
  next: null,
  isRotationRequired: false,
};
const NO_PEERS = {
  replicas: [],
  otherEndpoints: [],
  known: () => [],
  remembered: () => null,
  refresh: () => Promise.resolve(),
};
const NO_LABELS = Promise.resolve(new Map<string, never>());
const ignore = () => {};
const NO_METRICS: HealthMetrics = {
  ...{ hello: ignore, movesAsked: ignore, transition: ignore, detectionDelay: ignore, loopLag: ignore },
  ...{ observationLost: ignore, returnedAtOnce: ignore, deadlineExtended: ignore },
};

function createLog(hooks: ReplicaHooks): Logger {
  const log: Logger = {
    ...silentLogger,
    error: (fields: { err?: unknown }, message) => {
      const { err } = fields;
      hooks.log(`an error was logged: ${message}: ${err instanceof Error ? err.stack : String(err)}`);
    },
    child: () => log,
  };
  return log;
}
