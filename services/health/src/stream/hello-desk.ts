import { setImmediate as nextTurnOfNode } from "node:timers/promises";
import { type Hello, HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { checkNodeId, type HelloAdmission } from "@rollcall/domain";
import { isStoreUnavailable, refuse } from "@rollcall/errors";
import { Batcher, type Clock, type Logger } from "@rollcall/process";
import type { FailedAttempts, RequestValidator } from "@rollcall/rpc";
import { NO_LABELS, type NodeKeys, type StoredEvent } from "@rollcall/store";
import type { HealthMetrics, HelloOutcome } from "../metrics.ts";
import type { Reconnects } from "../moves/reconnects.ts";
import { rotationSpreadMs } from "../policy/node-policies.ts";
import type { HealthRecord, RecordedOpening, SuccessfulOpening } from "../record/health-record.ts";
import {
  deleted,
  type Farewell,
  notRegistered,
  overloaded,
  proofInvalid,
  type Random,
  shuttingDown,
  storeAway,
  superseded,
} from "../replica/farewell.ts";
import type { Replica } from "../replica/replica.ts";
import { errorOf, farewellFrom } from "../session/farewell-error.ts";
import type { GreetedStream } from "../session/session-host.ts";
import {
  type Arrival,
  type Candidate,
  greetingOf,
  idsOf,
  isInForce,
  isSignedBy,
  type Known,
  type ProofCheck,
  signerOf,
  toSessionHello,
  unknownIn,
} from "./hello-arrival.ts";
import { clockSkewMs, wishesIn } from "./hello-fields.ts";
import { HelloGate } from "./hello-gate.ts";
import { RejectedNodes } from "./rejected-nodes.ts";

/** What a HelloDesk works with. */
export interface HelloDeskOptions {
  readonly record: HealthRecord;
  readonly replica: Replica;
  readonly validator: Pick<RequestValidator, "check">;
  readonly metrics: HealthMetrics;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** Most hellos that wait; more are told to come back. Default 2,000. */
  readonly maxQueued?: number;
  /**
   * The shortest time between small batches, longer the more the last one had. The first hello after a pause does not
   * wait, and one that comes after a batch of one waits for no longer than this.
   */
  readonly gatherMs: number;
  /** Limits failed proofs of identity; no limit when absent. */
  readonly failures?: FailedAttempts | undefined;
  /** Limits how many hellos are admitted in a second. */
  readonly admission: HelloAdmission;
  /** Where agents go when they are sent away. */
  readonly reconnects: Pick<Reconnects, "others" | "all" | "windowMs">;
  /** Called when the record may have opened sessions of these nodes that this process does not know. */
  readonly onUncertain: (nodeIds: readonly string[]) => void;
  /** Resolves once the policy of each node is known. */
  readonly policiesKnown: () => Promise<void>;
  /** Verifies the proof of a Hello at once; by its signature when absent, those of a batch beside the event loop. */
  readonly isSigned?: ProofCheck;
  /** Resolves after all other work had a turn; by Node's event loop when absent. */
  readonly nextTurn?: () => Promise<void>;
}

/** Of two hellos that came together, one was never welcomed: its return would prove nothing. */
const UNPROVEN = { instanceId: "", isDuplicated: false } as const;
const MOST_HELLOS_A_BATCH = 200;
/** A hello of so many costs a tenth of one alone: they need not wait for more, see docs/performance.md. */
const ENOUGH_HELLOS = 50;
/** Where several come at a time, they are gathered for so many times as long. */
const MOST_GATHERS = 5;
const DEFAULT_MAX_QUEUED = 2_000;
/** To send an agent away takes several tenths of a millisecond: heartbeats must not wait for two hundred of them. */
const SENT_AWAY_A_TURN = 8;

/** Admits agents, many hellos in a batch, so that a storm costs few round trips. */
export class HelloDesk {
  readonly #options: HelloDeskOptions;
  readonly #batcher: Batcher<Arrival, null>;
  readonly #gate: HelloGate;
  readonly #rejected: RejectedNodes;
  /** The candidates of the batch in progress, by node id. */
  #candidates: ReadonlyMap<string, Candidate> = new Map();

  constructor(options: HelloDeskOptions) {
    this.#options = options;
    this.#gate = new HelloGate(options.failures ?? null);
    this.#rejected = new RejectedNodes(options);
    this.#batcher = new Batcher({
      run: (arrivals) => this.#takeIn(arrivals),
      maxItems: MOST_HELLOS_A_BATCH,
      // One batch at a time: two hellos of one node are opened in their order.
      maxRunning: 1,
      maxWaitMs: 0,
      spacingMs: options.gatherMs,
      longestSpacingMs: options.gatherMs * MOST_GATHERS,
      enoughItems: ENOUGH_HELLOS,
      maxQueued: options.maxQueued ?? DEFAULT_MAX_QUEUED,
      clock: options.clock,
    });
  }

  /** How many hellos wait. */
  get queued(): number {
    return this.#batcher.queued;
  }

  /** Whether a session of this node may be opening. */
  isOpening(nodeId: string): boolean {
    return this.#candidates.has(nodeId);
  }

  /**
   * Submit a Hello. Throws INVALID_REQUEST, INVALID_NODE_ID, TOO_MANY_FAILURES or TOO_MANY_STREAMS; the stream gets any
   * other outcome.
   */
  submit(stream: GreetedStream, hello: Hello, nonce: Uint8Array): void {
    const { validator, replica, random, clock, admission } = this.#options;
    validator.check(HelloSchema, hello);
    const invalid = checkNodeId(hello.nodeId, "hello.node_id");
    if (invalid !== null) throw refuse(invalid.reason, invalid.message, invalid);
    const arrival = { stream, hello, nonce, clockSkewMs: clockSkewMs(hello, clock.wallMs()) };
    if (!replica.mayOpen) {
      this.#turnAway(arrival, storeAway(random), "store_unavailable");
      return;
    }
    const refusal = this.#rejected.refusalOf(arrival, (it) => this.#gate.check(greetingOf(it)));
    if (refusal !== null) {
      this.#refuse(arrival, refusal);
      return;
    }
    if (!replica.policies.mayAdmit(replica.nodes.find(hello.nodeId))) {
      this.#turnAwayUnheard(arrival);
      return;
    }
    const verdict = admission.ask(clock.nowMs());
    if (!verdict.ok) {
      this.#turnAway(arrival, overloaded(verdict.retryAfterMs, random), "overloaded");
      return;
    }
    const greeting = greetingOf(arrival);
    this.#gate.enter(greeting);
    this.#batcher
      .submit(arrival)
      .catch(() => {
        // The queue is full, the only error that a batch leaves to its caller.
        this.#turnAwayUnheard(arrival);
      })
      .finally(() => this.#gate.leave(greeting));
  }

  /** Keep events of nodes that are being admitted; the record may have been read before them. */
  observe(events: readonly StoredEvent[]): void {
    for (const event of events) this.#candidates.get(event.subject)?.events.push(event);
    this.#rejected.observe(events);
  }

  async #takeIn(arrivals: readonly Arrival[]): Promise<readonly null[]> {
    const { metrics, log, random, clock, onUncertain, policiesKnown, admission } = this.#options;
    const waiting = arrivals.filter(({ stream }) => stream.isOpening);
    for (let gone = waiting.length; gone < arrivals.length; gone++) metrics.hello("abandoned");
    try {
      await policiesKnown();
      const startMs = clock.nowMs();
      const candidates = await this.#verify(waiting);
      this.#candidates = new Map(candidates.map((it) => [it.hello.nodeId, it]));
      await this.#open(candidates);
      // A small batch, or one of which most was refused or gone, does not tell how fast agents can be taken in.
      const isTelling = arrivals.length === MOST_HELLOS_A_BATCH && 2 * candidates.length > arrivals.length;
      if (isTelling) admission.tookIn(candidates.length, clock.nowMs() - startMs);
    } catch (error) {
      // The commit may have succeeded although its answer was lost.
      onUncertain([...this.#candidates.keys()]);
      if (!isStoreUnavailable(error)) log.error({ err: error }, "hellos failed");
      for (const arrival of waiting.filter(({ stream }) => stream.isOpening)) {
        const away = isStoreUnavailable(error) ? storeAway(random) : farewellFrom(error);
        this.#turnAway(arrival, away, "store_unavailable");
      }
    } finally {
      this.#candidates = new Map();
    }
    return arrivals.map(() => null);
  }

  /** Return the arrivals with a valid proof, one for each node; the others are refused. */
  async #verify(arrivals: readonly Arrival[]): Promise<readonly Candidate[]> {
    const { record, random, nextTurn = nextTurnOfNode, isSigned = null } = this.#options;
    const keys = await record.keysOf(idsOf(arrivals));
    const proofs = await Promise.all(
      arrivals.map(async (arrival) => {
        const known = keys.get(arrival.hello.nodeId);
        const key = known && (await signerOf(arrival, known, record.clusterId(), isSigned));
        return { arrival, key };
      }),
    );
    const candidates = new Map<string, Candidate>();
    let sentAway = 0;
    for (const { arrival, key } of proofs) {
      const { nodeId } = arrival.hello;
      const earlier = key === undefined ? undefined : candidates.get(nodeId);
      if (key === undefined) {
        const isKnown = keys.has(nodeId);
        this.#refuse(arrival, isKnown ? proofInvalid(nodeId, random) : notRegistered(nodeId, random));
      } else {
        if (earlier !== undefined) this.#refuse(earlier, superseded(nodeId, UNPROVEN, random), "superseded");
        this.#gate.proven(greetingOf(arrival));
        candidates.set(nodeId, { key, events: [], ...arrival });
      }
      if (key !== undefined && earlier === undefined) continue;
      sentAway += 1;
      if (sentAway % SENT_AWAY_A_TURN === 0) await nextTurn();
    }
    return [...candidates.values()];
  }

  async #open(candidates: readonly Candidate[]): Promise<void> {
    if (candidates.length === 0) return;
    const { record } = this.#options;
    const openings = await record.openSessions(candidates.map(toSessionHello));
    const ids = idsOf(candidates);
    const [keys, labels] = await Promise.all([record.keysOf(ids), record.labelsOf(ids)]);
    const collected = await record.collectedAmong(unknownIn(openings));
    const required = candidates.filter(({ hello }) => keys.get(hello.nodeId)?.isRotationRequired);
    const rotateWithinMs = rotationSpreadMs(required.length);
    // From here to the end nothing else runs: an event is either kept with the candidate or applied after its Welcome.
    for (const [index, candidate] of candidates.entries()) {
      const opening = openings[index];
      if (opening === undefined) throw new Error("a hello got no answer");
      const { nodeId } = opening;
      if (collected.has(nodeId)) {
        // It was collected after a long absence, and may register as a new node.
        this.#refuse(candidate, notRegistered(nodeId, this.#options.random));
        continue;
      }
      const known = { keys: keys.get(nodeId), labels: labels.get(nodeId) ?? NO_LABELS, rotateWithinMs };
      this.#settle(candidate, opening, known);
    }
  }

  #settle(
    candidate: Candidate,
    opening: RecordedOpening,
    known: Known & { readonly keys: NodeKeys | undefined },
  ): void {
    const { random } = this.#options;
    const { nodeId } = opening;
    switch (opening.outcome) {
      case "UNKNOWN_NODE":
        // It had a key a moment ago, so it was just deleted.
        this.#refuse(candidate, deleted(nodeId, "operator"));
        break;
      case "REJECTED":
        this.#refuse(candidate, this.#rejected.refuse(candidate, opening.membership));
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
          // Since the session was opened, the node was deleted and registered again, or its key replaced: this stream
          // belongs to the old one.
          this.#options.onUncertain([nodeId]);
          this.#refuse(candidate, proofInvalid(nodeId, random));
        }
        break;
    }
  }

  #welcome(
    candidate: Candidate,
    opening: SuccessfulOpening,
    { keys, labels, rotateWithinMs }: Known & { readonly keys: NodeKeys },
  ): void {
    const { replica, record, clock, metrics } = this.#options;
    const { stream, hello, key, events } = candidate;
    if (replica.isClosing) {
      // The record names this replica as owner; the next one adopts the node.
      this.#turnAway(candidate, storeAway(this.#options.random), "store_unavailable");
      return;
    }
    const node = replica.take(stream, opening, {
      wishes: wishesIn(hello),
      publicKey: key.publicKey,
      instanceId: hello.instanceId,
      clockSkewMs: candidate.clockSkewMs,
      labels: labels.trusted,
    });
    replica.apply(events);
    // Rejected, deleted or taken by another replica since the record was read: the stream has ended.
    const isTaken = node.stream === stream;
    metrics.hello(isTaken ? "welcomed" : "refused");
    if (!isTaken) return;
    stream.welcome(node, {
      wallMs: clock.wallMs(),
      membership: node.membership ?? opening.membership,
      settings: replica.policies.settings(node, labels.effective, keys.isRotationRequired ? rotateWithinMs : null),
      clusterId: record.clusterId(),
      nodeInfoWanted: Buffer.from(hello.nodeInfoDigest).toString("hex") !== opening.infoDigest,
      healthEndpoints: this.#options.reconnects.all,
      runsWork: hello.runsWork,
    });
  }

  #refuse(arrival: Arrival, farewell: Farewell, outcome: HelloOutcome = "refused"): void {
    this.#options.metrics.hello(outcome);
    this.#gate.refused(greetingOf(arrival), errorOf(farewell));
    arrival.stream.leave(farewell);
  }

  /** Turn a Hello away: the queue or the budget of heartbeats is full. */
  #turnAwayUnheard(arrival: Arrival): void {
    const { admission, clock, random } = this.#options;
    const retryAfterMs = admission.turnAway(clock.nowMs());
    this.#turnAway(arrival, overloaded(retryAfterMs, random), "overloaded");
  }

  /** Turn away an agent through no fault of its own. With a valid proof its node gets the time to return. */
  #turnAway(arrival: Arrival, because: Farewell, outcome: "overloaded" | "store_unavailable"): void {
    const { replica, metrics, random, record, reconnects, isSigned = isSignedBy } = this.#options;
    const farewell = replica.isClosing ? shuttingDown(reconnects.windowMs(this.queued), random) : because;
    metrics.hello(outcome);
    const node = replica.nodes.find(arrival.hello.nodeId);
    const isItself = node?.publicKey != null && isSigned(arrival, node.publicKey, record.clusterId());
    replica.silence.turnedAway(isItself ? node : undefined, farewell.retryAfterMs ?? 0);
    arrival.stream.leave(farewell);
  }
}
