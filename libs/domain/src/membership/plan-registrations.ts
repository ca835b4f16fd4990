import { hardwareIn } from "../conditions/hardware.ts";
import { labelsEvent } from "../conditions/info-events.ts";
import { holdsAfterReport } from "../conditions/node-conditions.ts";
import type { NewEvent } from "../events/events.ts";
import { keyRotatedEvent } from "../keys/key-events.ts";
import { acceptKey } from "../keys/key-rotation.ts";
import type { Label } from "../labels/labels.ts";
import type { InfoReport, JsonInfo, Node, NodeJoining } from "../nodes/node.ts";
import type { NodeEffect } from "../nodes/node-effects.ts";
import type { Refusal, RefusalReason } from "../refusal.ts";
import type { ConnectionState, Hold, Membership } from "../states.ts";
import { type AdmissionFacts, Admissions, type GivenJoinToken, type JoiningToken } from "./admission.ts";
import { type Ban, bannedRefusal } from "./ban.ts";
import type { JoinTokenRefusal } from "./join-token.ts";
import { decideMembership, membershipEffects } from "./membership.ts";
import { membershipEvent } from "./membership-events.ts";
import { caselessId, checkNewId, isIdBanned } from "./node-id.ts";
import type { ServiceAccount } from "./service-account.ts";

/** A node that asks to join. Its proof has been verified with the key that it presents. */
export interface Applicant {
  readonly nodeId: string;
  /** The fingerprint of the key that signed the proof. */
  readonly fingerprint: string;
  /** The nonce of the signed text. Each nonce can be used once. */
  readonly nonce: string;
  readonly report: InfoReport;
  /** The token that the node presents; null if there is none. */
  readonly joinToken: GivenJoinToken | null;
  /** The address that the request came from, without a port; null if unknown. */
  readonly from: string | null;
}

/** The fields of a known node that a registration needs. Node has these fields. */
export interface RegisteredNode
  extends Pick<Node, "id" | "type" | "membership" | "keyFingerprint" | "nextKeyFingerprint" | "infoDigest" | "labels"> {
  readonly connection: { readonly state: ConnectionState };
}

/** Why a registration is refused. */
export type RegistrationRefusal =
  | Refusal<RefusalReason | "CHALLENGE_INVALID" | "NODE_KEY_MISMATCH" | "NODE_KEY_IN_USE" | "NODE_ID_CONFUSABLE">
  | JoinTokenRefusal;

/** The outcome of one registration of a batch. */
export type RegistrationResult =
  | {
      readonly ok: true;
      readonly nodeId: string;
      /** Whether the node is new. */
      readonly created: boolean;
      /** The message for the node, for example "node registered" or "node reconnected". */
      readonly message: string;
    }
  | { readonly ok: false; readonly nodeId: string; readonly refusal: RegistrationRefusal };

/** The facts in the store about a batch of registrations, read under the locks of the transaction. */
export interface RegistrationFacts extends AdmissionFacts {
  /** The known nodes of the batch, and known nodes whose ids differ from an id in the batch only in case. */
  readonly nodes: readonly RegisteredNode[];
  /** The owners of the batch's keys, keyed by fingerprint. */
  readonly keyOwners: ReadonlyMap<string, string>;
  /** The nonces of the batch that are not used yet. */
  readonly freshNonces: ReadonlySet<string>;
  /** The bans on the batch's keys and on its ids, ignoring case. */
  readonly bans: readonly Ban[];
  /** Whether a new node waits for an operator's approval. */
  readonly manualApproval: boolean;
  /** Wall time in milliseconds since 1970. */
  readonly atMs: number;
}

/** A node to add to the store. */
export interface NodeCreation<A extends Applicant = Applicant> {
  readonly applicant: A;
  readonly membership: Membership;
  /** The token that admits the node; null for none. */
  readonly token: JoiningToken | null;
  /** The service account that admits the node; null for none. */
  readonly account: ServiceAccount | null;
  /** The approved hardware; null if the node is pending. */
  readonly approvedHardware: JsonInfo | null;
  /** The holds for conditions that the node reports. */
  readonly holds: readonly Hold[];
  readonly joining: NodeJoining;
  /** Labels from the join token. */
  readonly tokenLabels: Readonly<Record<string, string>>;
}

/** The approval of a known, pending node by the join token or service account token that it presents now. */
export interface NodeApproval<A extends Applicant = Applicant> {
  readonly applicant: A;
  readonly token: JoiningToken | null;
  readonly account: ServiceAccount | null;
  readonly effects: readonly NodeEffect[];
}

/** A known node that has used the next key that it offered. This key becomes the node's key. */
export interface KeyPromotion {
  readonly nodeId: string;
  readonly fingerprint: string;
}

/** The use of a token by one machine. */
export interface TokenUse {
  readonly tokenId: string;
  readonly nodeId: string;
  readonly fingerprint: string;
}

/** The effects of a batch of registrations on the store, and the result of each. */
export interface RegistrationPlan<A extends Applicant = Applicant> {
  readonly creations: readonly NodeCreation<A>[];
  /** Approvals of nodes that existed before this batch. */
  readonly approvals: readonly NodeApproval<A>[];
  readonly promotions: readonly KeyPromotion[];
  readonly uses: readonly TokenUse[];
  /** Reports of known nodes that differ from their previous reports, keyed by node id. */
  readonly reports: ReadonlyMap<string, InfoReport>;
  /** All events in the order of the batch, except the events of reports, which depend on how the reports are saved. */
  readonly events: readonly NewEvent[];
  /** The result of each registration, in the order of the batch. */
  readonly results: readonly RegistrationResult[];
}

/**
 * Decide a batch of registrations in order. Each registration sees the effects of earlier registrations. If two
 * registrations have the same new id, the first creates the node and the second finds it.
 */
export function planRegistrations<A extends Applicant>(
  batch: readonly A[],
  facts: RegistrationFacts,
): RegistrationPlan<A> {
  const planner = new Planner<A>(facts);
  const results = batch.map((applicant) => planner.decide(applicant));
  return { ...planner.outcome(), results };
}

class Planner<A extends Applicant> {
  readonly #facts: RegistrationFacts;
  readonly #nodes = new Map<string, RegisteredNode>();
  /** The ids of known nodes, keyed by their caseless form. */
  readonly #idsAlike = new Map<string, readonly string[]>();
  readonly #keyOwners: Map<string, string>;
  readonly #freshNonces: Set<string>;
  readonly #admissions: Admissions;
  readonly #creations = new Map<string, NodeCreation<A>>();
  readonly #approvals = new Map<string, NodeApproval<A>>();
  readonly #promotions: KeyPromotion[] = [];
  readonly #uses: TokenUse[] = [];
  readonly #reports = new Map<string, InfoReport>();
  readonly #events: NewEvent[] = [];

  constructor(facts: RegistrationFacts) {
    this.#facts = facts;
    for (const node of facts.nodes) this.#learn(node);
    this.#keyOwners = new Map(facts.keyOwners);
    this.#freshNonces = new Set(facts.freshNonces);
    this.#admissions = new Admissions(facts);
  }

  outcome(): Omit<RegistrationPlan<A>, "results"> {
    return {
      creations: [...this.#creations.values()],
      approvals: [...this.#approvals.values()],
      promotions: this.#promotions,
      uses: this.#uses,
      reports: this.#reports,
      events: this.#events,
    };
  }

  decide(applicant: A): RegistrationResult {
    const { nodeId, joinToken: given } = applicant;
    const refusal =
      this.#checkProof(applicant) ??
      this.#checkKey(applicant) ??
      this.#checkBans(applicant) ??
      this.#checkId(applicant);
    if (refusal !== null) return { ok: false, nodeId, refusal };
    const known = this.#nodes.get(nodeId) ?? null;
    const admission = this.#admissions.evaluate({ nodeId, given, membership: known?.membership.state ?? null });
    if (!admission.ok) return { ok: false, nodeId, refusal: admission.refusal };
    const { token, account } = admission;
    const { manualApproval, atMs } = this.#facts;
    const preauthorizedBy = token?.preauthorized ? token.id : null;
    const decision = decideMembership(
      known === null ? null : { ...known, alive: known.connection.state === "CONNECTED" },
      nodeId,
      { kind: "register", manualApproval, preauthorizedBy, account },
      { actor: "system", message: "", atMs },
    );
    if (!decision.ok) return { ok: false, nodeId, refusal: decision.refusal };
    this.#promote(applicant);
    const { next, outcome, message } = decision;
    const created = outcome === "REGISTERED";
    if (next !== null && created) this.#create(applicant, next, admission);
    else this.#return(applicant);
    const isApproved = outcome === "APPROVED" && next !== null && known !== null;
    if (isApproved) this.#approve(applicant, known, next, admission);
    if (token !== null) this.#use(applicant, token);
    return { ok: true, nodeId, created, message };
  }

  #checkProof({ nonce }: Applicant): RegistrationRefusal | null {
    // Accept only the first of two registrations of one batch that have the same nonce.
    return this.#freshNonces.delete(nonce) ? null : NONCE_USED;
  }

  #checkKey({ nodeId, fingerprint }: Applicant): RegistrationRefusal | null {
    const known = this.#nodes.get(nodeId);
    // The name of a control-plane process is refused in any case. Skip the check of the key, so that the refusal gives
    // this reason.
    if (known?.type === "ORCHESTRATOR") return null;
    // Check the key before the membership, because only the node itself may find out why the node was rejected.
    if (known !== undefined && !isKeyOf(known, fingerprint)) return keyMismatch(nodeId);
    const owner = this.#keyOwners.get(fingerprint);
    return owner === undefined || owner === nodeId ? null : keyInUse(nodeId, owner);
  }

  #checkBans({ nodeId, fingerprint }: Applicant): RegistrationRefusal | null {
    const ban = this.#facts.bans.find((it) => it.fingerprint === fingerprint || this.#isBannedId(nodeId, it));
    // Skip the ban on the name of a control-plane process, so that the refusal says whose name it is.
    if (ban === undefined || this.#nodes.get(nodeId)?.type === "ORCHESTRATOR") return null;
    return bannedRefusal(nodeId, ban.reason);
  }

  #isBannedId(nodeId: string, ban: Ban): boolean {
    return ban.nodeId !== null && isIdBanned(nodeId, ban.nodeId, this.#nodes.has(nodeId));
  }

  #checkId({ nodeId }: Applicant): RegistrationRefusal | null {
    return checkNewId(nodeId, this.#idsAlike.get(caselessId(nodeId)) ?? []);
  }

  #learn(node: RegisteredNode): void {
    const form = caselessId(node.id);
    if (!this.#nodes.has(node.id)) {
      this.#idsAlike.set(form, [...(this.#idsAlike.get(form) ?? []), node.id]);
    }
    this.#nodes.set(node.id, node);
  }

  #create(applicant: A, membership: Membership, by: AdmittedBy): void {
    const { nodeId: id, fingerprint, report } = applicant;
    this.#creations.set(id, this.#creation(applicant, membership, by));
    this.#keyOwners.set(fingerprint, id);
    this.#learn({
      id,
      type: "COMPUTE",
      membership,
      connection: { state: "DISCONNECTED" },
      keyFingerprint: fingerprint,
      nextKeyFingerprint: null,
      infoDigest: report.digest,
      labels: [],
    });
    this.#events.push(
      membershipEvent({
        type: "node.registered",
        subject: id,
        before: null,
        after: membership,
        actor: `node:${id}`,
        message: "",
        joinToken: by.token?.id ?? null,
        joinedFrom: applicant.from,
      }),
    );
  }

  #creation(applicant: A, membership: Membership, { token, account }: AdmittedBy): NodeCreation<A> {
    const { from } = applicant;
    const withoutToken = this.#facts.enforcement === "warn" && account === null;
    return {
      applicant,
      membership,
      token,
      account,
      approvedHardware: membership.state === "APPROVED" ? hardwareIn(applicant.report.info) : null,
      holds: holdsAfterReport([], applicant.report.info, {
        actor: `node:${applicant.nodeId}`,
        atMs: this.#facts.atMs,
      }),
      joining: token === null ? { tokenId: null, ephemeral: false, withoutToken, from } : joiningBy(token, from),
      tokenLabels: token?.labels ?? {},
    };
  }

  #approve(applicant: A, before: RegisteredNode, membership: Membership, by: AdmittedBy): void {
    const { nodeId: id } = applicant;
    const { actor, reason } = membership;
    // Read the node again: #promote() may just have changed its key.
    const known = this.#nodes.get(id) ?? before;
    this.#nodes.set(id, { ...known, membership });
    const event = membershipEvent({
      type: "node.approved",
      subject: id,
      before: known.membership,
      after: membership,
      actor,
      message: "",
      joinToken: by.token?.id ?? null,
      // An approval without a join token does not change how the node joined, neither here nor in the store.
      joinedFrom: by.token === null ? null : applicant.from,
    });
    this.#events.push(event);
    if (this.#creations.has(id)) {
      this.#creations.set(id, this.#creation(applicant, membership, by));
      return;
    }
    const { token } = by;
    if (token === null) {
      this.#approvals.set(id, { applicant, token, account: by.account, effects: membershipEffects(membership) });
      return;
    }
    const granted = Object.entries(token.labels).map(([key, value]): Label => ({ key, value, tier: "token" }));
    const after = [...known.labels.filter(({ tier }) => tier !== "token"), ...granted];
    const labels = labelsEvent({ subject: id, actor, reason, message: "", before: known.labels, after });
    if (labels !== null) this.#events.push(labels);
    this.#nodes.set(id, { ...known, membership, labels: after });
    const effects: readonly NodeEffect[] = [
      ...membershipEffects(membership),
      { kind: "joining", joining: joiningBy(token, applicant.from) },
      { kind: "labels", tier: "token", labels: granted },
    ];
    this.#approvals.set(id, { applicant, token, account: null, effects });
  }

  /** Make the next key the node's key if this is its first use. */
  #promote({ nodeId, fingerprint }: Applicant): void {
    const known = this.#nodes.get(nodeId);
    if (known === undefined || known.nextKeyFingerprint !== fingerprint) return;
    const before = known.keyFingerprint ?? "";
    this.#nodes.set(nodeId, { ...known, keyFingerprint: fingerprint, nextKeyFingerprint: null });
    this.#promotions.push({ nodeId, fingerprint });
    this.#events.push(keyRotatedEvent({ subject: nodeId, before, after: fingerprint }));
  }

  #use({ nodeId, fingerprint }: Applicant, token: JoiningToken): void {
    this.#admissions.use(token);
    this.#uses.push({ tokenId: token.id, nodeId, fingerprint });
  }

  #return(applicant: A): void {
    const { nodeId, report } = applicant;
    const creation = this.#creations.get(nodeId);
    // Use the latest report, even for a node that this batch creates.
    if (creation !== undefined) {
      this.#creations.set(nodeId, this.#creation(applicant, creation.membership, creation));
    } else if (this.#nodes.get(nodeId)?.infoDigest === report.digest) this.#reports.delete(nodeId);
    else this.#reports.set(nodeId, report);
  }
}

/** The token or service account that admits a node; null for none. */
interface AdmittedBy {
  readonly token: JoiningToken | null;
  readonly account: ServiceAccount | null;
}

function joiningBy({ id, ephemeral }: JoiningToken, from: string | null): NodeJoining {
  return { tokenId: id, ephemeral, withoutToken: false, from };
}

function isKeyOf({ keyFingerprint: current, nextKeyFingerprint: next }: RegisteredNode, used: string): boolean {
  return current !== null && acceptKey({ current, next }, used).accepted;
}

const NONCE_USED: RegistrationRefusal = {
  reason: "CHALLENGE_INVALID",
  message: "the challenge was already used; request a new one",
  metadata: {},
};

function keyMismatch(node: string): RegistrationRefusal {
  const lost = "if that key is lost, an operator must delete the node first";
  const message = `node ${node} is registered with another key; ${lost}`;
  return { reason: "NODE_KEY_MISMATCH", message, metadata: { node } };
}

function keyInUse(node: string, owner: string): RegistrationRefusal {
  const message =
    `the key of node ${node} is registered for node ${owner}; give each node its own state directory, or ` +
    `have an operator delete node ${owner} first`;
  return { reason: "NODE_KEY_IN_USE", message, metadata: { node, owner } };
}
