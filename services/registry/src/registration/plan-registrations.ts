import {
  acceptKey,
  bannedRefusal,
  caselessId,
  checkNewId,
  decideMembership,
  isIdBanned,
  keyRotatedEvent,
  type Membership,
  membershipEvent,
  type NewEvent,
} from "@rollcall/domain";
import type { Ban, InfoReport, JoinTokenUse, LockedJoinToken } from "@rollcall/store";
import { type AdmissionFacts, Admissions } from "./admission.ts";
import {
  type KnownNode,
  nonceName,
  type Registration,
  type RegistrationRefusal,
  type RegistrationResult,
} from "./registration.ts";

/** What the record says about a batch of registrations, read under the locks of its transaction. */
export interface RegistrationFacts extends AdmissionFacts {
  /** The nodes of the batch that are known, and those with an id that differs from one of the batch in case alone. */
  readonly nodes: readonly KnownNode[];
  /** The owners of the batch's keys, by fingerprint. */
  readonly keyOwners: ReadonlyMap<string, string>;
  /** The nonces of the batch that this transaction is the first to use, by name. */
  readonly freshNonces: ReadonlySet<string>;
  /** The bans on the batch's ids, in whatever case, and keys. */
  readonly bans: readonly Ban[];
  /** Whether a new node waits for an operator. */
  readonly manualApproval: boolean;
  /** Wall time in milliseconds since 1970. */
  readonly atMs: number;
}

/** A node to add to the record. */
export interface NodeCreation {
  readonly registration: Registration;
  readonly membership: Membership;
  /** By which it was let in; null without one. */
  readonly token: LockedJoinToken | null;
}

/** A known node that waited, and is approved by the token that it gives now. */
export interface NodeApproval {
  readonly registration: Registration;
  readonly membership: Membership;
  readonly token: LockedJoinToken;
}

/** A known node that uses the next key that it has offered: it is its key from now on. */
export interface KeyPromotion {
  readonly nodeId: string;
  readonly fingerprint: string;
}

/** What a batch of registrations does to the record, and what each of them is told. */
export interface RegistrationPlan {
  readonly creations: readonly NodeCreation[];
  /** Of nodes that this batch does not create. */
  readonly approvals: readonly NodeApproval[];
  readonly promotions: readonly KeyPromotion[];
  /** Each machine that a token lets in. */
  readonly uses: readonly JoinTokenUse[];
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
export function planRegistrations(batch: readonly Registration[], facts: RegistrationFacts): RegistrationPlan {
  const planner = new Planner(facts);
  const results = batch.map((registration) => planner.decide(registration));
  return { ...planner.outcome(), results };
}

class Planner {
  readonly #facts: RegistrationFacts;
  readonly #nodes = new Map<string, KnownNode>();
  /** The ids of the nodes, by what they have in common with ids that differ in case alone. */
  readonly #idsAlike = new Map<string, readonly string[]>();
  readonly #keyOwners: Map<string, string>;
  readonly #freshNonces: Set<string>;
  readonly #admissions: Admissions;
  readonly #creations = new Map<string, NodeCreation>();
  readonly #approvals = new Map<string, NodeApproval>();
  readonly #promotions: KeyPromotion[] = [];
  readonly #uses: JoinTokenUse[] = [];
  readonly #reports = new Map<string, InfoReport>();
  readonly #events: NewEvent[] = [];

  constructor(facts: RegistrationFacts) {
    this.#facts = facts;
    for (const node of facts.nodes) this.#learn(node);
    this.#keyOwners = new Map(facts.keyOwners);
    this.#freshNonces = new Set(facts.freshNonces);
    this.#admissions = new Admissions(facts);
  }

  outcome(): Omit<RegistrationPlan, "results"> {
    return {
      creations: [...this.#creations.values()],
      approvals: [...this.#approvals.values()],
      promotions: this.#promotions,
      uses: this.#uses,
      reports: this.#reports,
      events: this.#events,
    };
  }

  decide(registration: Registration): RegistrationResult {
    const { nodeId } = registration;
    const refusal =
      this.#checkProof(registration) ??
      this.#checkKey(registration) ??
      this.#checkBans(registration) ??
      this.#checkId(registration);
    if (refusal !== null) return { ok: false, nodeId, refusal };
    const known = this.#nodes.get(nodeId) ?? null;
    const given = registration.joinToken;
    const admission = this.#admissions.judge({
      ...{ nodeId, given },
      membership: known?.membership.state ?? null,
    });
    if (!admission.ok) return { ok: false, nodeId, refusal: admission.refusal };
    const { token } = admission;
    const { manualApproval, atMs } = this.#facts;
    const preauthorizedBy = token?.preauthorized ? token.id : null;
    const decision = decideMembership(
      known,
      nodeId,
      { kind: "register", manualApproval, preauthorizedBy },
      { actor: "system", message: "", atMs },
    );
    if (!decision.ok) return { ok: false, nodeId, refusal: decision.refusal };
    this.#promote(registration);
    const { next, outcome, message } = decision;
    const created = outcome === "REGISTERED";
    if (next !== null && created) this.#create(registration, next, token);
    else this.#return(registration);
    if (next !== null && known !== null && outcome === "APPROVED" && token !== null) {
      this.#approve(registration, known, { membership: next, token });
    }
    if (token !== null) this.#use(registration, token);
    return { ok: true, nodeId, created, message };
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
    if (known !== undefined && !isKeyOf(known, fingerprint)) return keyMismatch(nodeId);
    const owner = this.#keyOwners.get(fingerprint);
    return owner === undefined || owner === nodeId ? null : keyInUse(nodeId, owner);
  }

  #checkBans({ nodeId, fingerprint }: Registration): RegistrationRefusal | null {
    const ban = this.#facts.bans.find((it) => it.fingerprint === fingerprint || this.#isBannedId(nodeId, it));
    // An orchestrator's name is refused for what it is.
    if (ban === undefined || this.#nodes.get(nodeId)?.type === "ORCHESTRATOR") return null;
    return bannedRefusal(nodeId, ban.reason);
  }

  #isBannedId(nodeId: string, ban: Ban): boolean {
    return ban.nodeId !== null && isIdBanned(nodeId, ban.nodeId, this.#nodes.has(nodeId));
  }

  #checkId({ nodeId }: Registration): RegistrationRefusal | null {
    return checkNewId(nodeId, this.#idsAlike.get(caselessId(nodeId)) ?? []);
  }

  #learn(node: KnownNode): void {
    const form = caselessId(node.id);
    if (!this.#nodes.has(node.id)) {
      this.#idsAlike.set(form, [...(this.#idsAlike.get(form) ?? []), node.id]);
    }
    this.#nodes.set(node.id, node);
  }

  #create(registration: Registration, membership: Membership, token: LockedJoinToken | null): void {
    const { nodeId: id, fingerprint, report } = registration;
    this.#creations.set(id, { registration, membership, token });
    this.#keyOwners.set(fingerprint, id);
    this.#learn({
      id,
      type: "COMPUTE",
      membership,
      alive: false,
      fingerprint,
      nextFingerprint: null,
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
        joinToken: token?.id ?? null,
      }),
    );
  }

  #approve(
    registration: Registration,
    known: KnownNode,
    { membership, token }: Pick<NodeApproval, "membership" | "token">,
  ): void {
    const { nodeId: id } = registration;
    this.#nodes.set(id, { ...known, membership });
    const creation = this.#creations.get(id);
    if (creation !== undefined) this.#creations.set(id, { ...creation, membership, token });
    else this.#approvals.set(id, { registration, membership, token });
    this.#events.push(
      membershipEvent({
        type: "node.approved",
        subject: id,
        before: known.membership,
        after: membership,
        actor: membership.actor,
        message: "",
        joinToken: token.id,
      }),
    );
  }

  /** The first use of a next key makes it the node's key. */
  #promote({ nodeId, fingerprint }: Registration): void {
    const known = this.#nodes.get(nodeId);
    if (known === undefined || known.nextFingerprint !== fingerprint) return;
    const before = known.fingerprint ?? "";
    this.#nodes.set(nodeId, { ...known, fingerprint, nextFingerprint: null });
    this.#promotions.push({ nodeId, fingerprint });
    this.#events.push(keyRotatedEvent({ subject: nodeId, before, after: fingerprint }));
  }

  #use({ nodeId, fingerprint }: Registration, token: LockedJoinToken): void {
    this.#admissions.use(token);
    this.#uses.push({ tokenId: token.id, nodeId, fingerprint });
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

function isKeyOf({ fingerprint: current, nextFingerprint: next }: KnownNode, used: string): boolean {
  return current !== null && acceptKey({ current, next }, used).accepted;
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
