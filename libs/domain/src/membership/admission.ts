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

/** A join token as a machine gives it. */
export type GivenJoinToken =
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

/** By which token a machine is admitted, if by any, or why not. */
export type Admission =
  | { readonly ok: true; readonly token: JoiningToken | null }
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
  judge({ nodeId, given, membership }: Candidate): Admission {
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
  use({ id }: JoiningToken): void {
    this.#used.set(id, (this.#used.get(id) ?? 0) + 1);
  }

  #check(nodeId: string, given: GivenJoinToken): Admission {
    const { tokens, cluster: own } = this.#facts;
    switch (given.kind) {
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
        return refusal === null ? { ok: true, token } : { ok: false, refusal };
      }
    }
  }
}
