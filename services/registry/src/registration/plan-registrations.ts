import {
  decideMembership,
  type Membership,
  membershipEvent,
  type NewEvent,
} from "@rollcall/domain";
import type { InfoReport } from "@rollcall/store";
import {
  type KnownNode,
  nonceName,
  type Registration,
  type RegistrationRefusal,
  type RegistrationResult,
} from "./registration.ts";

/** What the record says about a batch of registrations, read under the locks of its transaction. */
export interface RegistrationFacts {
  /** The nodes of the batch that are known. */
  readonly nodes: readonly KnownNode[];
  /** The owners of the batch's keys, by fingerprint. */
  readonly keyOwners: ReadonlyMap<string, string>;
  /** The nonces of the batch that this transaction is the first to use, by name. */
  readonly freshNonces: ReadonlySet<string>;
  /** Whether a new node waits for an operator. */
  readonly manualApproval: boolean;
  /** Wall time in milliseconds since 1970. */
  readonly atMs: number;
}

/** A node to add to the record. */
export interface NodeCreation {
  readonly registration: Registration;
  readonly membership: Membership;
}

/** What a batch of registrations does to the record, and what each of them is told. */
export interface RegistrationPlan {
  readonly creations: readonly NodeCreation[];
  /** News of known nodes, by id. */
  readonly reports: ReadonlyMap<string, InfoReport>;
  /** The memberships' events, in the order of the batch. */
  readonly events: readonly NewEvent[];
  /** One for each registration, in the order of the batch. */
  readonly results: readonly RegistrationResult[];
}

/**
 * Decide a batch of registrations, one after the other: each sees what those before it will have done. So of two that
 * want the same new id one creates it, and the other finds it there.
 */
export function planRegistrations(
  batch: readonly Registration[],
  facts: RegistrationFacts,
): RegistrationPlan {
  const planner = new Planner(facts);
  const results = batch.map((registration) => planner.decide(registration));
  return { ...planner.outcome(), results };
}

class Planner {
  readonly #facts: RegistrationFacts;
  readonly #nodes: Map<string, KnownNode>;
  readonly #keyOwners: Map<string, string>;
  readonly #freshNonces: Set<string>;
  readonly #creations = new Map<string, NodeCreation>();
  readonly #reports = new Map<string, InfoReport>();
  readonly #events: NewEvent[] = [];

  constructor(facts: RegistrationFacts) {
    this.#facts = facts;
    this.#nodes = new Map(facts.nodes.map((node) => [node.id, node]));
    this.#keyOwners = new Map(facts.keyOwners);
    this.#freshNonces = new Set(facts.freshNonces);
  }

  outcome(): Omit<RegistrationPlan, "results"> {
    return {
      creations: [...this.#creations.values()],
      reports: this.#reports,
      events: this.#events,
    };
  }

  decide(registration: Registration): RegistrationResult {
    const { nodeId } = registration;
    const refusal = this.#checkProof(registration) ?? this.#checkKey(registration);
    if (refusal !== null) return { ok: false, nodeId, refusal };
    const decision = decideMembership(
      this.#nodes.get(nodeId) ?? null,
      nodeId,
      { kind: "register", manualApproval: this.#facts.manualApproval },
      { actor: "system", message: "", atMs: this.#facts.atMs },
    );
    if (!decision.ok) return { ok: false, nodeId, refusal: decision.refusal };
    const created = decision.outcome === "REGISTERED";
    if (created && decision.next !== null) this.#create(registration, decision.next);
    else this.#return(registration);
    return { ok: true, nodeId, created, message: decision.message };
  }

  #checkProof({ nonce }: Registration): RegistrationRefusal | null {
    // Two calls of one batch may carry the same nonce, too: the first takes it.
    return this.#freshNonces.delete(nonceName(nonce)) ? null : NONCE_USED;
  }

  #checkKey({ nodeId, fingerprint }: Registration): RegistrationRefusal | null {
    const known = this.#nodes.get(nodeId);
    // Whatever the key: that an orchestrator has the name is what its operator needs to hear.
    if (known?.type === "ORCHESTRATOR") return null;
    // Before the membership is looked at: why a node was rejected is told to that node alone.
    if (known !== undefined && known.fingerprint !== fingerprint) return keyMismatch(nodeId);
    const owner = this.#keyOwners.get(fingerprint);
    return owner === undefined || owner === nodeId ? null : keyInUse(nodeId, owner);
  }

  #create(registration: Registration, membership: Membership): void {
    const { nodeId: id, fingerprint, report } = registration;
    this.#creations.set(id, { registration, membership });
    this.#keyOwners.set(fingerprint, id);
    this.#nodes.set(id, {
      id,
      type: "COMPUTE",
      membership,
      alive: false,
      fingerprint,
      infoDigest: report.digest,
    });
    this.#events.push(
      membershipEvent({
        type: "node.registered",
        subject: id,
        before: null,
        after: membership,
        actor: `node:${id}`,
        message: "",
      }),
    );
  }

  #return(registration: Registration): void {
    const { nodeId, report } = registration;
    const creation = this.#creations.get(nodeId);
    // What was said last counts, also of a node that this very batch creates.
    if (creation !== undefined) this.#creations.set(nodeId, { ...creation, registration });
    else if (this.#nodes.get(nodeId)?.infoDigest === report.digest) this.#reports.delete(nodeId);
    else this.#reports.set(nodeId, report);
  }
}

const NONCE_USED: RegistrationRefusal = {
  reason: "CHALLENGE_INVALID",
  message: "the challenge was used before; ask for a new one",
  metadata: {},
};

function keyMismatch(node: string): RegistrationRefusal {
  const message = `node ${node} is registered with another key; if its key was lost, an operator must delete the node first, with \`rollcall node delete ${node}\``;
  return { reason: "NODE_KEY_MISMATCH", message, metadata: { node } };
}

function keyInUse(node: string, owner: string): RegistrationRefusal {
  const message = `the key of node ${node} is registered for node ${owner}; give each node a state directory of its own, or have an operator delete node ${owner} first`;
  return { reason: "NODE_KEY_IN_USE", message, metadata: { node, owner } };
}
