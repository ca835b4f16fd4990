import { setImmediate as nextTickOfNode } from "node:timers/promises";
import { type Hello, HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { checkNodeId, type HelloAdmission } from "@rollcall/domain";
import { isStoreUnavailable, refuse } from "@rollcall/errors";
import { Batcher, type Clock, type Logger } from "@rollcall/process";
import type { FailedAttempts, RequestValidator } from "@rollcall/rpc";
import { type EventRow, NO_LABELS, type NodeKeys } from "@rollcall/store";
import type { HealthMetrics, HelloOutcome } from "../metrics.ts";
import type { Reconnects } from "../moves/reconnects.ts";
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
import type { HealthStore, StoredOpening, SuccessfulOpening } from "../replica/health-store.ts";
import type { LiveNode } from "../replica/live-node.ts";
import { rotationSpreadMs } from "../replica/node-policies.ts";
import type { Replica } from "../replica/replica.ts";
import { errorOf, farewellFrom } from "../session/farewell-error.ts";
import { clockSkewMs, wishesIn } from "../session/hello-fields.ts";
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
import { HelloGate } from "./hello-gate.ts";
import { RejectedNodes } from "./rejected-nodes.ts";

/** The dependencies of a HelloQueue. */
export interface HelloQueueOptions {
  readonly record: HealthStore;
  readonly replica: Replica;
  readonly validator: Pick<RequestValidator, "check">;
  readonly metrics: HealthMetrics;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** Maximum number of queued Hellos; more are turned away. Default 2,000. */
  readonly maxQueued?: number;
  /**
   * The shortest time between small batches; it grows with the size of the last batch. The first Hello after a pause
   * does not wait. A Hello after a batch of one waits at most this long.
   */
  readonly gatherMs: number;
  /** Limits failed proofs of identity; no limit when absent. */
  readonly failures?: FailedAttempts | undefined;
  /** Limits how many Hellos are admitted per second. */
  readonly admission: HelloAdmission;
  /** The replicas that turned-away agents are sent to. */
  readonly reconnects: Pick<Reconnects, "others" | "all" | "windowMs">;
  /** Called with nodes whose sessions may have been opened in the store although the call failed. */
  readonly onUncertain: (nodeIds: readonly string[]) => void;
  /** Resolves once the policy of each node is known. */
  readonly policiesKnown: () => Promise<void>;
  /**
   * Verifies the proof of a Hello synchronously. When absent, signatures are checked, and those of a batch off the
   * event loop.
   */
  readonly isSigned?: ProofCheck;
  /** Resolves after all other pending work has run. When absent, uses the event loop of Node.js. */
  readonly nextLoopTick?: () => Promise<void>;
}

/**
 * The takeover when two Hellos of a node arrive together. The older one is not welcomed, and its agent's return does
 * not prove a duplicated identity.
 */
const UNPROVEN = { instanceId: "", isDuplicated: false } as const;
const MOST_HELLOS_A_BATCH = 200;
/**
 * A batch with this many Hellos does not wait for more. In a batch of this size, each Hello costs a tenth of a Hello
 * that is handled separately. See docs/internals/performance.md.
 */
const ENOUGH_HELLOS = 50;
/** Largest multiple of `gatherMs` to which the spacing of batches grows when several Hellos arrive at a time. */
const MOST_GATHERS = 5;
const DEFAULT_MAX_QUEUED = 2_000;
/**
 * Number of agents to turn away per tick of the event loop. Each takes several tenths of a millisecond, so turning away
 * two hundred in one tick would delay heartbeats.
 */
const SENT_AWAY_PER_TICK = 8;

/** Admits agents. Handles many Hellos in one batch, so that a storm costs few round trips. */
export class HelloQueue {
  readonly #options: HelloQueueOptions;
  readonly #batcher: Batcher<Arrival, null>;
  readonly #gate: HelloGate;
  readonly #rejected: RejectedNodes;
  /** The candidates of the batch in progress, keyed by node id. */
  #candidates: ReadonlyMap<string, Candidate> = new Map();

  constructor(options: HelloQueueOptions) {
    this.#options = options;
    this.#gate = new HelloGate(options.failures ?? null);
    this.#rejected = new RejectedNodes(options);
    this.#batcher = new Batcher({
      run: (arrivals) => this.#takeIn(arrivals),
      maxItems: MOST_HELLOS_A_BATCH,
      // Run one batch at a time, so that two Hellos of one node are opened in order.
      maxRunning: 1,
      maxWaitMs: 0,
      spacingMs: options.gatherMs,
      longestSpacingMs: options.gatherMs * MOST_GATHERS,
      enoughItems: ENOUGH_HELLOS,
      maxQueued: options.maxQueued ?? DEFAULT_MAX_QUEUED,
      clock: options.clock,
    });
  }

  /** Number of queued Hellos. */
  get queued(): number {
    return this.#batcher.queued;
  }

  /** Whether a session of this node may currently be opening. */
  isOpening(nodeId: string): boolean {
    return this.#candidates.has(nodeId);
  }

  /**
   * Submit a Hello. Throws INVALID_REQUEST, INVALID_NODE_ID, TOO_MANY_FAILURES or TOO_MANY_STREAMS; the stream is
   * notified of any other outcome.
   */
  submit(stream: GreetedStream, hello: Hello, nonce: Uint8Array): void {
    const { validator, clock, log } = this.#options;
    validator.check(HelloSchema, hello);
    const invalid = checkNodeId(hello.nodeId, "hello.node_id");
    if (invalid !== null) throw refuse(invalid.reason, invalid.message, invalid);
    const arrival = { stream, hello, nonce, clockSkewMs: clockSkewMs(hello, clock.wallMs()) };
    const greeting = greetingOf(arrival);
    this.#gate.enter(greeting);
    this.#handle(arrival)
      .catch((error: unknown) => log.error({ err: error }, "hello failed"))
      .finally(() => this.#gate.leave(greeting));
  }

  async #handle(arrival: Arrival): Promise<void> {
    const { replica, random, clock, admission } = this.#options;
    if (!replica.mayOpen) return this.#turnAway(arrival, storeAway(random), "store_unavailable");
    const { nodeId } = arrival.hello;
    const rejected = this.#rejected.find(nodeId);
    const isRejected = rejected !== null && (await this.#isSigned(arrival, rejected.publicKey));
    // Look again, because the node may have been approved in the meantime.
    const farewell = isRejected ? this.#rejected.find(nodeId)?.farewell() : undefined;
    if (farewell !== undefined) return this.#refuse(arrival, farewell);
    if (!replica.policies.mayAdmit(replica.nodes.find(nodeId))) return this.#turnAwayUnheard(arrival);
    const decision = admission.ask(clock.nowMs());
    if (!decision.ok) return this.#turnAway(arrival, overloaded(decision.retryAfterMs, random), "overloaded");
    try {
      await this.#batcher.submit(arrival);
    } catch {
      // Turn the Hello away. Only a full queue rejects, because batches do not throw.
      await this.#turnAwayUnheard(arrival);
    }
  }

  /** Keep events of nodes that are being admitted: they may be newer than the data from the store. */
  observe(events: readonly EventRow[]): void {
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
      // Ignore small batches, and batches of mostly refused or disconnected agents, which do not show how fast agents
      // can be admitted.
      const isTelling = arrivals.length === MOST_HELLOS_A_BATCH && 2 * candidates.length > arrivals.length;
      if (isTelling) admission.tookIn(candidates.length, clock.nowMs() - startMs);
    } catch (error) {
      // Report the nodes as uncertain. The error does not show whether the commit failed: only its response may have
      // been lost.
      onUncertain([...this.#candidates.keys()]);
      if (!isStoreUnavailable(error)) log.error({ err: error }, "hellos failed");
      const away = isStoreUnavailable(error) ? storeAway(random) : farewellFrom(error);
      const open = waiting.filter(({ stream }) => stream.isOpening);
      await Promise.all(open.map((arrival) => this.#turnAway(arrival, away, "store_unavailable")));
    } finally {
      this.#candidates = new Map();
    }
    return arrivals.map(() => null);
  }

  /** Refuse arrivals without a valid proof, and return one of the others for each node. */
  async #verify(arrivals: readonly Arrival[]): Promise<readonly Candidate[]> {
    const { record, random, nextLoopTick = nextTickOfNode, isSigned = null } = this.#options;
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
      if (sentAway % SENT_AWAY_PER_TICK === 0) await nextLoopTick();
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
    // Do not await anything in the rest of this method, so that each event is either kept with its candidate or applied
    // after its Welcome.
    for (const [index, candidate] of candidates.entries()) {
      const opening = openings[index];
      if (opening === undefined) throw new Error("a Hello has no opening");
      const { nodeId } = opening;
      if (collected.has(nodeId)) {
        // Let the node register as a new node, because it was garbage-collected after a long absence.
        this.#refuse(candidate, notRegistered(nodeId, this.#options.random));
        continue;
      }
      const known = { keys: keys.get(nodeId), labels: labels.get(nodeId) ?? NO_LABELS, rotateWithinMs };
      this.#settle(candidate, opening, known);
    }
  }

  #settle(candidate: Candidate, opening: StoredOpening, known: Known & { readonly keys: NodeKeys | undefined }): void {
    const { random } = this.#options;
    const { nodeId } = opening;
    switch (opening.outcome) {
      case "UNKNOWN_NODE":
        // Refuse the Hello of a deleted node. The node had a key a moment ago, so it must have been deleted just now.
        this.#refuse(candidate, deleted(nodeId, "operator"));
        break;
      case "REJECTED":
        this.#refuse(candidate, this.#rejected.refuse(candidate, opening.membership));
        break;
      case "KEY_RETIRED":
        // Refuse the Hello, because the agent used its next key while this proof was checked.
        this.#refuse(candidate, proofInvalid(nodeId, random));
        break;
      case "OPENED":
        if (known.keys === undefined) {
          this.#refuse(candidate, deleted(nodeId, "operator"));
        } else if (isInForce(known.keys, candidate.key)) {
          this.#welcome(candidate, opening, { ...known, keys: known.keys });
        } else {
          // Since the session was opened, the node was deleted and registered again, or its key was replaced. This
          // stream belongs to the old node or key.
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
      // Turn the agent away. The store names this replica as the owner, but another replica will adopt the node.
      void this.#turnAway(candidate, storeAway(this.#options.random), "store_unavailable");
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
    // The stream has ended if the node was rejected, deleted or taken by another replica since the store was read.
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

  /** Turn a Hello away because the queue or the budget of heartbeats is full. */
  #turnAwayUnheard(arrival: Arrival): Promise<void> {
    const { admission, clock, random } = this.#options;
    const retryAfterMs = admission.turnAway(clock.nowMs());
    return this.#turnAway(arrival, overloaded(retryAfterMs, random), "overloaded");
  }

  /**
   * Turn an agent away that is not at fault. If its proof is valid, its node's deadline is extended by the wait. If the
   * proof is not valid, the failure is charged to its address.
   */
  async #turnAway(arrival: Arrival, because: Farewell, outcome: "overloaded" | "store_unavailable"): Promise<void> {
    const { replica, metrics, random, reconnects } = this.#options;
    const farewell = replica.isClosing ? shuttingDown(reconnects.windowMs(this.queued), random) : because;
    metrics.hello(outcome);
    const { nodeId } = arrival.hello;
    const node = replica.nodes.find(nodeId);
    const isProven = node === undefined ? null : await this.#proofOf(arrival, node);
    if (isProven === true) this.#gate.proven(greetingOf(arrival));
    if (isProven === false) this.#gate.refused(greetingOf(arrival), errorOf(proofInvalid(nodeId, random)));
    replica.detector.turnedAway(isProven === true ? node : undefined, farewell.retryAfterMs ?? 0);
    arrival.stream.leave(farewell);
  }

  /** Whether the proof of a Hello is valid; null if that is unknown without a read of the store. */
  async #proofOf(arrival: Arrival, { id, publicKey }: Pick<LiveNode, "id" | "publicKey">): Promise<boolean | null> {
    // The proof of a candidate was already checked with the key from the store. For an adopted node, there is no key in
    // memory to check it with.
    if (this.#candidates.get(id)?.stream === arrival.stream) return true;
    return publicKey === null ? null : this.#isSigned(arrival, publicKey);
  }

  #isSigned(arrival: Arrival, publicKey: Uint8Array): Promise<boolean> {
    const { record, isSigned = null } = this.#options;
    return isSignedBy(arrival, publicKey, record.clusterId(), isSigned);
  }
}
