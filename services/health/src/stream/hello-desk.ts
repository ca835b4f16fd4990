import { setImmediate as nextTurn } from "node:timers/promises";
import { type Hello, HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { isNodeId, proofText } from "@rollcall/domain";
import {
  Batcher,
  type Clock,
  describeError,
  type FailedAttempts,
  isStoreUnavailable,
  type Logger,
  mapError,
  type RequestValidator,
  refuse,
  verifyProof,
} from "@rollcall/runtime";
import {
  collectedAmong,
  keyOf,
  keysInForce,
  type LabelsOfNode,
  labelSetsOf,
  NO_LABELS,
  type NodeKeys,
  type PublicKey,
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
import { rotationSpreadMs, withRotation } from "./frames.ts";
import { type Greeting, HelloDoor } from "./hello-door.ts";
import { clockSkewMs, wishedHeartbeatMs } from "./hello-fields.ts";
import type { GreetedStream } from "./stream-host.ts";

export interface HelloDeskOptions {
  readonly store: Store;
  readonly replica: Replica;
  readonly validator: RequestValidator;
  readonly metrics: HealthMetrics;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** Most hellos that wait; more are told to come back. Default 2,000. */
  readonly maxQueued?: number;
  /** Who fails too often to prove who they are; not limited when absent. */
  readonly failures?: FailedAttempts | undefined;
  /** Called when sessions may have been opened in the record of which this process knows nothing. */
  readonly onUncertain: () => void;
  /** Resolves once it is known which policy each node has. */
  readonly policiesKnown: () => Promise<void>;
}

const MOST_HELLOS_A_BATCH = 200;
const DEFAULT_MAX_QUEUED = 2_000;
/** A signature takes a tenth of a millisecond, and heartbeats must not wait for two hundred of them. */
const PROOFS_A_TURN = 32;

/** A Hello on its way to the record. */
interface Arrival {
  readonly stream: GreetedStream;
  readonly hello: Hello;
  readonly nonce: Uint8Array;
  /** See HeldNode. */
  readonly clockSkewMs: number | null;
}

/** One whose proof holds. While the record is asked, what happens to its node meanwhile is kept. */
interface Candidate extends Arrival {
  /** The one that signed the Hello. */
  readonly key: PublicKey;
  readonly events: StoredEvent[];
}

/** What the record says of a node once its session is open. */
interface Known {
  readonly labels: LabelsOfNode;
  /** Within which time its key is to be rotated, if it is. */
  readonly rotateWithinMs: number;
}

/** Takes agents in: many hellos at a time, so that a storm costs few round trips. */
export class HelloDesk {
  readonly #options: HelloDeskOptions;
  readonly #batcher: Batcher<Arrival, null>;
  readonly #door: HelloDoor;
  /** By node id, those of the batch that is with the record. */
  #candidates: ReadonlyMap<string, Candidate> = new Map();

  constructor(options: HelloDeskOptions) {
    this.#options = options;
    this.#door = new HelloDoor(options.failures ?? null);
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

  /** Take a Hello. Throws INVALID_REQUEST, INVALID_NODE_ID, TOO_MANY_FAILURES or TOO_MANY_STREAMS; everything else is told to the stream. */
  submit(stream: GreetedStream, hello: Hello, nonce: Uint8Array): void {
    const { validator, replica, random, clock } = this.#options;
    validator.check(HelloSchema, hello);
    if (!isNodeId(hello.nodeId)) throw invalidNodeId(hello.nodeId);
    const arrival = { stream, hello, nonce, clockSkewMs: clockSkewMs(hello, clock.wallMs()) };
    if (!replica.mayOpen) {
      this.#turnAway(arrival, storeAway(random), "store_unavailable");
      return;
    }
    if (!replica.policies.mayAdmit(replica.nodes.find(hello.nodeId))) {
      this.#turnAway(arrival, overloaded(random), "overloaded");
      return;
    }
    const greeting = greetingOf(arrival);
    this.#door.enter(greeting);
    this.#batcher
      .submit(arrival)
      .catch(() => {
        // The queue is full, which is the only error that a batch leaves to its caller.
        this.#turnAway(arrival, overloaded(random), "overloaded");
      })
      .finally(() => this.#door.leave(greeting));
  }

  /** Keep what happens to nodes that are being taken in; the record may have been read before it. */
  observe(events: readonly StoredEvent[]): void {
    for (const event of events) this.#candidates.get(event.subject)?.events.push(event);
  }

  async #takeIn(arrivals: readonly Arrival[]): Promise<readonly null[]> {
    const { metrics, log, random, onUncertain, policiesKnown } = this.#options;
    const waiting = arrivals.filter(({ stream }) => stream.isOpening);
    for (let gone = waiting.length; gone < arrivals.length; gone++) metrics.hello("abandoned");
    try {
      await policiesKnown();
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
      const known = keys.get(nodeId);
      const key = known && this.#keyOf(arrival, known);
      if (known === undefined) {
        this.#refuse(arrival, notRegistered(nodeId, random));
      } else if (key === undefined) {
        this.#refuse(arrival, proofInvalid(nodeId, random));
      } else {
        const earlier = candidates.get(nodeId);
        if (earlier !== undefined) this.#refuse(earlier, superseded(nodeId, random), "superseded");
        this.#door.proven(greetingOf(arrival));
        candidates.set(nodeId, { ...arrival, key, events: [] });
      }
    }
    return [...candidates.values()];
  }

  /** Which of the keys that count signed a Hello. */
  #keyOf(arrival: Arrival, keys: NodeKeys): PublicKey | undefined {
    return keysInForce(keys).find(({ publicKey }) => this.#isProven(arrival, publicKey));
  }

  #isProven({ stream, hello, nonce }: Arrival, publicKey: Uint8Array): boolean {
    const clusterId = this.#options.store.clusterId();
    const { nodeId, signature } = hello;
    const text = proofText({ method: stream.proofMethod, clusterId, nodeId, nonce });
    return verifyProof(publicKey, text, signature);
  }

  async #open(candidates: readonly Candidate[]): Promise<void> {
    if (candidates.length === 0) return;
    const { store, replica } = this.#options;
    const openings = await openBatch(store, replica, candidates.map(toVerifiedHello));
    const ids = idsOf(candidates);
    const [keys, labels] = await Promise.all([keyOf(store.db, ids), labelSetsOf(store.db, ids)]);
    const collected = await collectedAmong(store.db, unknownIn(openings));
    const required = candidates.filter(({ hello }) => keys.get(hello.nodeId)?.isRotationRequired);
    const rotateWithinMs = rotationSpreadMs(required.length);
    // From here to the end nothing else runs: what the feed delivers is either kept with the candidate or comes after its Welcome.
    for (const [index, candidate] of candidates.entries()) {
      const opening = openings[index];
      if (opening === undefined) throw new Error("a hello got no answer");
      const { nodeId } = opening;
      if (collected.has(nodeId)) {
        // Nobody wanted it gone: it was away for too long, and is welcome as a new node.
        this.#refuse(candidate, notRegistered(nodeId, this.#options.random));
        continue;
      }
      const known = { keys: keys.get(nodeId), labels: labels.get(nodeId) ?? NO_LABELS };
      this.#settle(candidate, opening, { ...known, rotateWithinMs });
    }
  }

  #settle(
    candidate: Candidate,
    opening: SessionOpening,
    known: Known & { readonly keys: NodeKeys | undefined },
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
      case "KEY_RETIRED":
        // The next key was used while the proof was checked.
        this.#refuse(candidate, proofInvalid(nodeId, random));
        break;
      case "OPENED":
        if (known.keys === undefined) {
          this.#refuse(candidate, deleted(nodeId, "operator"));
        } else if (isInForce(known.keys, candidate.key)) {
          this.#welcome(candidate, opening, { ...known, keys: known.keys });
        } else {
          // Deleted and registered anew, or its key replaced, since the session was opened: it speaks for the node that was.
          this.#options.onUncertain();
          this.#refuse(candidate, proofInvalid(nodeId, random));
        }
        break;
    }
  }

  #welcome(
    candidate: Candidate,
    opening: OpenedSession,
    { keys, labels, rotateWithinMs }: Known & { readonly keys: NodeKeys },
  ): void {
    const { replica, store, clock, metrics } = this.#options;
    const { stream, hello, key, events } = candidate;
    if (replica.isClosing) {
      // Its session is this replica's in the record, from which the next one adopts it.
      this.#turnAway(candidate, storeAway(this.#options.random), "store_unavailable");
      return;
    }
    const node = replica.take(stream, opening, {
      wishedHeartbeatMs: wishedHeartbeatMs(hello),
      publicKey: key.publicKey,
      clockSkewMs: candidate.clockSkewMs,
      labels: labels.trusted,
    });
    replica.apply(events);
    // Rejected, deleted or taken by another replica since the record was read: the stream has been told.
    const isTaken = node.stream === stream;
    metrics.hello(isTaken ? "welcomed" : "refused");
    if (!isTaken) return;
    stream.welcome(node, {
      wallMs: clock.wallMs(),
      membership: node.membership ?? opening.membership,
      settings: withRotation(
        replica.policies.settings(node, labels.effective),
        keys.isRotationRequired ? rotateWithinMs : null,
      ),
      clusterId: store.clusterId(),
      nodeInfoWanted: Buffer.from(hello.nodeInfoDigest).toString("hex") !== opening.infoDigest,
      healthEndpoints: [],
    });
  }

  #refuse(
    arrival: Arrival,
    farewell: Farewell,
    outcome: "refused" | "superseded" = "refused",
  ): void {
    this.#options.metrics.hello(outcome);
    this.#door.refused(greetingOf(arrival), farewell.error);
    arrival.stream.leave(farewell);
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

function greetingOf({ hello, stream }: Arrival): Greeting {
  return { nodeId: hello.nodeId, peer: stream.peer };
}

function isInForce(keys: NodeKeys, key: PublicKey): boolean {
  return keysInForce(keys).some(({ fingerprint }) => fingerprint === key.fingerprint);
}

function unknownIn(openings: readonly SessionOpening[]): readonly string[] {
  return openings.filter(({ outcome }) => outcome === "UNKNOWN_NODE").map(({ nodeId }) => nodeId);
}

function toVerifiedHello({ hello, key, stream }: Candidate): VerifiedHello {
  return { hello, keyFingerprint: key.fingerprint, address: stream.peer };
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
