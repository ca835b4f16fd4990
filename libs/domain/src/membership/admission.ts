import type { MembershipState } from "../states.ts";
import {
  type AdmittingToken,
  type JoinTokenEnforcement,
  type JoinTokenRefusal,
  joinTokenInvalid,
  joinTokenOfOtherCluster,
  joinTokenRefusal,
  joinTokenRequired,
  type PresentedJoinToken,
} from "./join-token.ts";
import { type GivenAccount, provesNode, type ServiceAccount } from "./service-account.ts";

/** A join token as a machine gives it, or a service account's token in its place. */
export type GivenJoinToken =
  | GivenAccount
  | Exclude<PresentedJoinToken, { kind: "own" }>
  | {
      readonly kind: "own";
      readonly id: string;
      /** Whether the machine gave the whole text of the token of this id, and not its id alone. */
      readonly isGenuine: boolean;
    };

/** A token by which machines join, with what it grants. */
export interface JoiningToken extends AdmittingToken {
  /** Granted to each node that joins with it. */
  readonly labels: Readonly<Record<string, string>>;
  readonly preauthorized: boolean;
  readonly ephemeral: boolean;
}

/** What decides whether a token admits, and whether one is needed. */
export interface AdmissionFacts {
  /** The known tokens of the batch, by id, their rows locked. */
  readonly tokens: ReadonlyMap<string, JoiningToken>;
  readonly enforcement: JoinTokenEnforcement;
  /** How this cluster is named in its tokens. */
  readonly cluster: string;
}

/** A machine that asks to be admitted. */
export interface Candidate {
  readonly nodeId: string;
  readonly given: GivenJoinToken | null;
  /** Null for one that is not known. */
  readonly membership: MembershipState | null;
}

/** By which token or service account a machine is admitted, if by any, or why not. */
export type Admission =
  | { readonly ok: true; readonly token: JoiningToken | null; readonly account: ServiceAccount | null }
  | { readonly ok: false; readonly refusal: JoinTokenRefusal };

const BY_NOTHING: Admission = { ok: true, token: null, account: null };

/**
 * Judges tokens for a batch of registrations, one after the other: what an earlier one used, a later one finds used.
 */
export class Admissions {
  readonly #facts: AdmissionFacts;
  readonly #used = new Map<string, number>();

  constructor(facts: AdmissionFacts) {
    this.#facts = facts;
  }

  /** Judge. A known machine is never refused: a token can only approve it when it waits. */
  judge({ nodeId, given, membership }: Candidate): Admission {
    if (membership === null) {
      if (given !== null) return this.#check(nodeId, given);
      return this.#facts.enforcement === "strict" ? { ok: false, refusal: joinTokenRequired(nodeId) } : BY_NOTHING;
    }
    if (membership !== "PENDING" || given === null) return BY_NOTHING;
    const admission = this.#check(nodeId, given);
    return admission.ok && approves(admission, nodeId) ? admission : BY_NOTHING;
  }

  /** Count a use. */
  use({ id }: JoiningToken): void {
    this.#used.set(id, (this.#used.get(id) ?? 0) + 1);
  }

  #check(nodeId: string, given: GivenJoinToken): Admission {
    const { tokens, cluster: own } = this.#facts;
    switch (given.kind) {
      case "account":
        return { ok: true, token: null, account: given.account };
      case "refused-account":
        return { ok: false, refusal: given.refusal };
      case "malformed":
        return { ok: false, refusal: joinTokenInvalid(nodeId) };
      case "foreign":
        return { ok: false, refusal: joinTokenOfOtherCluster(nodeId, { token: given.cluster, own }) };
      case "own": {
        const token = tokens.get(given.id);
        // Before anything is said of the token: a machine that has only its id learns nothing.
        if (token === undefined || !given.isGenuine) return { ok: false, refusal: joinTokenInvalid(nodeId) };
        const uses = token.uses + (this.#used.get(given.id) ?? 0);
        const refusal = joinTokenRefusal({ ...token, uses }, nodeId);
        return refusal === null ? { ok: true, token, account: null } : { ok: false, refusal };
      }
    }
  }
}

function approves({ token, account }: Admission & { ok: true }, nodeId: string): boolean {
  return token === null ? account !== null && provesNode(account, nodeId) : token.preauthorized;
}
