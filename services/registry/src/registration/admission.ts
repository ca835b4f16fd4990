import { timingSafeEqual } from "node:crypto";
import {
  type JoinTokenEnforcement,
  type JoinTokenRefusal,
  joinTokenInvalid,
  joinTokenOfOtherCluster,
  joinTokenRefusal,
  joinTokenRequired,
  type MembershipState,
  type PresentedJoinToken,
} from "@rollcall/domain";
import type { LockedJoinToken } from "@rollcall/store";

/** A join token as a machine gives it. Its text is kept no longer than it takes to hash it. */
export interface GivenToken {
  readonly token: PresentedJoinToken;
  /** SHA-256 of the whole text. */
  readonly hash: Uint8Array;
}

/** What decides whether a token admits, and whether one is needed. */
export interface AdmissionFacts {
  /** The tokens of the batch that there are, by id, their rows locked. */
  readonly tokens: ReadonlyMap<string, LockedJoinToken>;
  readonly enforcement: JoinTokenEnforcement;
  /** How this cluster is named in its tokens. */
  readonly cluster: string;
}

/** A machine before the door. */
export interface Applicant {
  readonly nodeId: string;
  readonly given: GivenToken | null;
  /** Null for one that is not known. */
  readonly membership: MembershipState | null;
}

/** By which token a machine is let in, if by any, or why not. */
export type Admission =
  | { readonly ok: true; readonly token: LockedJoinToken | null }
  | { readonly ok: false; readonly refusal: JoinTokenRefusal };

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
  judge(applicant: Applicant): Admission {
    const { nodeId, given, membership } = applicant;
    if (membership === null) {
      if (given !== null) return this.#check(nodeId, given);
      return this.#facts.enforcement === "strict"
        ? { ok: false, refusal: joinTokenRequired(nodeId) }
        : { ok: true, token: null };
    }
    if (membership !== "PENDING" || given === null) return { ok: true, token: null };
    const admission = this.#check(nodeId, given);
    return admission.ok && admission.token?.preauthorized ? admission : { ok: true, token: null };
  }

  /** Count a use. */
  use({ id }: LockedJoinToken): void {
    this.#used.set(id, (this.#used.get(id) ?? 0) + 1);
  }

  #check(nodeId: string, { token: given, hash }: GivenToken): Admission {
    const { tokens, cluster: own } = this.#facts;
    switch (given.kind) {
      case "malformed":
        return { ok: false, refusal: joinTokenInvalid(nodeId) };
      case "foreign": {
        const clusters = { token: given.cluster, own };
        return { ok: false, refusal: joinTokenOfOtherCluster(nodeId, clusters) };
      }
      case "own": {
        const token = tokens.get(given.id);
        // Before anything is said of the token: who has only its id is told nothing.
        if (token === undefined || !timingSafeEqual(token.hash, hash)) {
          return { ok: false, refusal: joinTokenInvalid(nodeId) };
        }
        const uses = token.uses + (this.#used.get(given.id) ?? 0);
        const refusal = joinTokenRefusal({ ...token, uses }, nodeId);
        return refusal === null ? { ok: true, token } : { ok: false, refusal };
      }
    }
  }
}
