import { type EventInterest, replicaInterest } from "@rollcall/domain";
import { StoreUnavailableError } from "@rollcall/errors";
import { type Clock, type Logger, silentLogger } from "@rollcall/process";
import { HEALTH_KEYS, type HealthConfig } from "../config.ts";
import { type Core, createCore } from "../core.ts";
import type { HealthMetrics } from "../metrics.ts";
import type { HealthRecord } from "../record/health-record.ts";
import type { SessionHost } from "../session/session-host.ts";
import type { SimulatedRecord } from "../simulation/simulated-record.ts";

/** A call to the record, on its way there or back. */
export interface RecordCall {
  /** The instance of the replica that calls. */
  readonly caller: string;
  readonly name: string;
  /** Whether it takes an epoch. */
  readonly isGiving: boolean;
  /** Whether the record has carried it out. */
  readonly isDone: boolean;
  carryOut(): void;
  answer(): void;
  lose(): void;
}

/** How a replica calls the world around it. */
export interface ReplicaHooks {
  call(call: RecordCall): void;
  /** The shipped code has logged an error, which is a bug. */
  log(message: string): void;
  onBeat(sequence: number): void;
}

/** A node falls silent in one tick. */
const TICK_MS = 60_000;
const CONNECTION_BROKEN = new StoreUnavailableError("Connection terminated unexpectedly");

/** One replica: the core as it ships, whose loops the explorer turns. */
export class ExploredReplica {
  readonly instance: string;
  readonly core: Core;
  readonly host: SessionHost;
  nowMs = 0;
  readonly #record: SimulatedRecord;
  readonly #hooks: ReplicaHooks;
  readonly #interest: EventInterest;
  #read = 0;
  #isWriting = false;
  #isAdopting = false;

  constructor(instance: string, record: SimulatedRecord, hooks: ReplicaHooks) {
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
      nextTurn: () => Promise.resolve(),
    });
    const { replica, desk } = this.core;
    this.host = {
      ...{ replica, clock, log, onNodeInfo: () => {}, work: null, authorities: null },
      onHello: desk.submit.bind(desk),
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

  /** Write what differs, unless it does so already. */
  write(): void {
    if (this.#isWriting) return;
    this.#isWriting = true;
    const done = () => {
      this.#isWriting = false;
    };
    this.core.transitions.flush().then(done, done);
  }

  /** Look for orphans, unless it does so already. */
  adopt(): void {
    if (this.#isAdopting) return;
    this.#isAdopting = true;
    const done = () => {
      this.#isAdopting = false;
    };
    this.core.adopter.turn().then(done, done);
  }

  /** Read all that is new in the log. */
  follow(): void {
    const events = this.#record.eventsAfter(this.#read, this.#interest);
    this.#read = this.#record.revision;
    this.core.observe(events);
  }

  /** Let enough time pass to make a silent node UNHEALTHY. */
  judge(): void {
    this.nowMs += TICK_MS;
    this.core.replica.judge();
  }

  /** Everything that distinguishes its states. */
  fingerprint(nodeId: string, streams: readonly { readonly session: unknown }[]): unknown {
    const { replica, transitions, adopter, desk } = this.core;
    const node = replica.nodes.find(nodeId);
    const held = node && [
      [node.epoch, streams.findIndex(({ session }) => session === node.stream), String(node.asOfRevision)],
      [node.health.state, node.connection.state, node.writtenHealth.state, node.writtenConnection.state],
      [node.isRecordUncertain, node.publicKey !== null],
    ];
    return [
      held,
      [this.#read, replica.mayOpen, transitions.queued, adopter.isUncertain],
      [this.#isWriting, this.#isAdopting, desk.queued, desk.isOpening(nodeId)],
    ];
  }

  #port(): HealthRecord {
    const record = this.#record;
    const { instance } = this;
    return {
      clusterId: () => "explored",
      // Reads are answered at once: the moment of what is written is what counts.
      currentRevision: async () => BigInt(record.revision),
      caughtUpTo: async () => this.follow(),
      keysOf: async (ids) => new Map(ids.map((id) => [id, { ...KEYS, nodeId: id }])),
      // This read follows an opening or an adoption, and can fail after it.
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
