import { setImmediate as nextTurn } from "node:timers/promises";
import { type Hello, HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { type HealthPolicy, isNodeId, type Label, proofText } from "@rollcall/domain";
import {
  Batcher,
  type Clock,
  describeError,
  isStoreUnavailable,
  type Logger,
  mapError,
  type RequestValidator,
  refuse,
  verifyProof,
} from "@rollcall/runtime";
import {
  keyOf,
  labelsOf,
  type NodeKey,
  type SessionOpening,
  type Store,
  type StoredEvent,
} from "@rollcall/store";
import type { HealthMetrics } from "../metrics.ts";
import { openBatch, type VerifiedHello } from "../record/open-batch.ts";
import {
  deleted,
  type Farewell,
  notRegistered,
  overloaded,
  proofInvalid,
  type Random,
  reconnect,
  rejected,
  shuttingDown,
  storeAway,
  superseded,
} from "../replica/farewell.ts";
import type { OpenedSession, Replica } from "../replica/replica.ts";
import type { AgentStream } from "./agent-stream.ts";
import { toSettings } from "./frames.ts";
import { wishedHeartbeatMs } from "./hello-fields.ts";

export interface HelloDeskOptions {
  readonly store: Store;
  readonly replica: Replica;
  readonly policy: HealthPolicy;
  readonly validator: RequestValidator;
  readonly metrics: HealthMetrics;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** Most hellos that wait; more are told to come back. Default 2,000. */
  readonly maxQueued?: number;
  /** Called when sessions may have been opened in the record of which this process knows nothing. */
  readonly onUncertain: () => void;
}

/** The method that a Hello's proof names. */
const HEARTBEAT_METHOD = "/rollcall.health.v1.HealthService/Heartbeat";

const MOST_HELLOS_A_BATCH = 200;
const DEFAULT_MAX_QUEUED = 2_000;
/** A signature takes a tenth of a millisecond, and heartbeats must not wait for two hundred of them. */
const PROOFS_A_TURN = 32;

/** A Hello on its way to the record. */
interface Arrival {
  readonly stream: AgentStream;
  readonly hello: Hello;
  readonly nonce: Uint8Array;
}

/** One whose proof holds. While the record is asked, what happens to its node meanwhile is kept. */
interface Candidate extends Arrival {
  readonly key: NodeKey;
  readonly events: StoredEvent[];
}

/** Takes agents in: many hellos at a time, so that a storm costs few round trips. */
export class HelloDesk {
  readonly #options: HelloDeskOptions;
  readonly #batcher: Batcher<Arrival, null>;
  /** By node id, those of the batch that is with the record. */
  #candidates: ReadonlyMap<string, Candidate> = new Map();

  constructor(options: HelloDeskOptions) {
    this.#options = options;
    this.#batcher = new Batcher({
      run: (arrivals) => this.#takeIn(arrivals),
      maxItems: MOST_HELLOS_A_BATCH,
      // A batch at a time: two of one node are opened in the order in which they came.
      maxRunning: 1,
      maxWaitMs: 0,
      maxQueued: options.maxQueued ?? DEFAULT_MAX_QUEUED,
      clock: options.clock,
    });
  }

  /** How many hellos wait. */
  get queued(): number {
    return this.#batcher.queued;
  }

  /** Whether a session of this node may be being opened just now. */
  isOpening(nodeId: string): boolean {
    return this.#candidates.has(nodeId);
  }

  /** Take a Hello. Throws INVALID_REQUEST or INVALID_NODE_ID; everything else is told to the stream. */
  submit(stream: AgentStream, hello: Hello, nonce: Uint8Array): void {
    const { validator, replica, random } = this.#options;
    validator.check(HelloSchema, hello);
    if (!isNodeId(hello.nodeId)) throw invalidNodeId(hello.nodeId);
    const arrival = { stream, hello, nonce };
    if (!replica.mayOpen) {
      this.#turnAway(arrival, storeAway(random), "store_unavailable");
      return;
    }
    this.#batcher.submit(arrival).catch(() => {
      // The queue is full, which is the only error that a batch leaves to its caller.
      this.#turnAway(arrival, overloaded(random), "overloaded");
    });
  }

  /** Keep what happens to nodes that are being taken in; the record may have been read before it. */
  observe(events: readonly StoredEvent[]): void {
    for (const event of events) this.#candidates.get(event.subject)?.events.push(event);
  }

  async #takeIn(arrivals: readonly Arrival[]): Promise<readonly null[]> {
    const { metrics, log, random, onUncertain } = this.#options;
    const waiting = arrivals.filter(({ stream }) => stream.isOpening);
    for (let gone = waiting.length; gone < arrivals.length; gone++) metrics.hello("abandoned");
    try {
      const candidates = await this.#verify(waiting);
      this.#candidates = new Map(candidates.map((it) => [it.hello.nodeId, it]));
      await this.#open(candidates);
    } catch (error) {
      // A commit whose answer was lost may have opened them all the same.
      onUncertain();
      if (!isStoreUnavailable(error)) log.error({ err: error }, "hellos failed");
      for (const arrival of waiting.filter(({ stream }) => stream.isOpening)) {
        const away = isStoreUnavailable(error) ? storeAway(random) : reconnect(mapError(error));
        this.#turnAway(arrival, away, "store_unavailable");
      }
    } finally {
      this.#candidates = new Map();
    }
    return arrivals.map(() => null);
  }

  /** Find those whose proof holds, one for each node; the others are told. */
  async #verify(arrivals: readonly Arrival[]): Promise<readonly Candidate[]> {
    const { store, random } = this.#options;
    const keys = await keyOf(store.db, idsOf(arrivals));
    const candidates = new Map<string, Candidate>();
    for (const [index, arrival] of arrivals.entries()) {
      if (index % PROOFS_A_TURN === PROOFS_A_TURN - 1) await nextTurn();
      const { nodeId } = arrival.hello;
      const key = keys.get(nodeId);
      if (key === undefined) {
        this.#refuse(arrival, notRegistered(nodeId, random));
      } else if (!this.#isProven(arrival, key.publicKey)) {
        this.#refuse(arrival, proofInvalid(nodeId, random));
      } else {
        const earlier = candidates.get(nodeId);
        if (earlier !== undefined) this.#refuse(earlier, superseded(nodeId, random), "superseded");
        candidates.set(nodeId, { ...arrival, key, events: [] });
      }
    }
    return [...candidates.values()];
  }

  #isProven({ hello, nonce }: Arrival, publicKey: Uint8Array): boolean {
    const clusterId = this.#options.store.clusterId();
    const { nodeId, signature } = hello;
    const text = proofText({ method: HEARTBEAT_METHOD, clusterId, nodeId, nonce });
    return verifyProof(publicKey, text, signature);
  }

  async #open(candidates: readonly Candidate[]): Promise<void> {
    if (candidates.length === 0) return;
    const { store, replica } = this.#options;
    const openings = await openBatch(store, replica, candidates.map(toVerifiedHello));
    const ids = idsOf(candidates);
    const [keys, labels] = await Promise.all([keyOf(store.db, ids), labelsOf(store.db, ids)]);
    // From here to the end nothing else runs: what the feed delivers is either kept with the candidate or comes after its Welcome.
    for (const [index, candidate] of candidates.entries()) {
      const opening = openings[index];
      if (opening === undefined) throw new Error("a hello got no answer");
      const { nodeId } = opening;
      this.#settle(candidate, opening, keys.get(nodeId), labels.get(nodeId) ?? []);
    }
  }

  #settle(
    candidate: Candidate,
    opening: SessionOpening,
    key: NodeKey | undefined,
    labels: readonly Label[],
  ): void {
    const { random } = this.#options;
    const { nodeId } = opening;
    switch (opening.outcome) {
      case "UNKNOWN_NODE":
        // It had a key a moment ago: it is being deleted just now.
        this.#refuse(candidate, deleted(nodeId, "operator"));
        break;
      case "REJECTED":
        this.#refuse(candidate, rejected(nodeId, opening.membership, random));
        break;
      case "OPENED":
        if (key === undefined) {
          this.#refuse(candidate, deleted(nodeId, "operator"));
        } else if (key.fingerprint === candidate.key.fingerprint) {
          this.#welcome(candidate, opening, labels);
        } else {
          // Deleted and registered anew while its proof was checked: it speaks for the node that was.
          this.#options.onUncertain();
          this.#refuse(candidate, proofInvalid(nodeId, random));
        }
        break;
    }
  }

  #welcome(candidate: Candidate, opening: OpenedSession, labels: readonly Label[]): void {
    const { replica, store, clock, metrics, policy } = this.#options;
    const { stream, hello, key, events } = candidate;
    if (replica.isClosing) {
      // Its session is this replica's in the record, from which the next one adopts it.
      this.#turnAway(candidate, storeAway(this.#options.random), "store_unavailable");
      return;
    }
    const node = replica.take(stream, opening, {
      wishedHeartbeatMs: wishedHeartbeatMs(hello),
      publicKey: key.publicKey,
    });
    replica.apply(events);
    // Rejected, deleted or taken by another replica since the record was read: the stream has been told.
    const { intervals } = node;
    const isTaken = node.stream === stream && intervals !== null;
    metrics.hello(isTaken ? "welcomed" : "refused");
    if (!isTaken) return;
    stream.welcome(node, {
      wallMs: clock.wallMs(),
      membership: node.membership ?? opening.membership,
      settings: toSettings(policy, intervals, labels),
      clusterId: store.clusterId(),
      nodeInfoWanted: Buffer.from(hello.nodeInfoDigest).toString("hex") !== opening.infoDigest,
      healthEndpoints: [],
    });
  }

  #refuse(
    { stream }: Arrival,
    farewell: Farewell,
    outcome: "refused" | "superseded" = "refused",
  ): void {
    this.#options.metrics.hello(outcome);
    stream.leave(farewell);
  }

  /** Send away an agent that has done nothing wrong. If it is who it says it is, its node gets the time to come back. */
  #turnAway(
    arrival: Arrival,
    because: Farewell,
    outcome: "overloaded" | "store_unavailable",
  ): void {
    const { replica, metrics, random } = this.#options;
    const farewell = replica.isClosing ? shuttingDown(this.queued, random) : because;
    metrics.hello(outcome);
    const node = replica.nodes.find(arrival.hello.nodeId);
    const isItself = node?.publicKey != null && this.#isProven(arrival, node.publicKey);
    const { retryAfterMs = 0 } = describeError(farewell.error);
    replica.silence.turnedAway(isItself ? node : undefined, retryAfterMs);
    arrival.stream.leave(farewell);
  }
}

function toVerifiedHello({ hello, stream }: Candidate): VerifiedHello {
  return { hello, address: stream.peer };
}

function idsOf(arrivals: readonly Arrival[]): readonly string[] {
  return [...new Set(arrivals.map(({ hello }) => hello.nodeId))];
}

function invalidNodeId(nodeId: string) {
  const description =
    "a node id is 1-63 characters of [A-Za-z0-9._-] and starts with a letter or digit";
  return refuse("INVALID_NODE_ID", `${JSON.stringify(nodeId)} is no node id: ${description}`, {
    metadata: { node: nodeId },
    violations: [{ field: "hello.node_id", description }],
  });
}
