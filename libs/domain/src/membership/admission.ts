import type { MembershipState } from "../states.ts";
import {
  type AdmittingToken,
  type JoinTokenEnforcement,
  type JoinTokenRefusal,
  joinTokenRequired,
  type PresentedJoinToken,
  presentedRefusal,
} from "./join-token.ts";
import { type GivenAccount, provesNode, type ServiceAccount } from "./service-account.ts";

/** The join token that a machine presents, or its service account token. */
export type GivenJoinToken =
  | GivenAccount
  | Exclude<PresentedJoinToken, { kind: "own" }>
  | {
      readonly kind: "own";
      readonly id: string;
      /** Whether the machine presented the whole token rather than only its id. */
      readonly isGenuine: boolean;
    };

/** A join token, and its effect on the nodes that join with it. */
export interface JoiningToken extends AdmittingToken {
  /** Labels for each node that joins with the token. */
  readonly labels: Readonly<Record<string, string>>;
  readonly preauthorized: boolean;
  readonly ephemeral: boolean;
}

/** The facts that decide whether a token is required and whether it admits a machine. */
export interface AdmissionFacts {
  /** The existing tokens of the batch, keyed by id. Their rows are locked. */
  readonly tokens: ReadonlyMap<string, JoiningToken>;
  readonly enforcement: JoinTokenEnforcement;
  /** The short form of the cluster's id, which its tokens contain. */
  readonly cluster: string;
}

/** A machine that asks for admission. */
export interface Candidate {
  readonly nodeId: string;
  readonly given: GivenJoinToken | null;
  /** The node's membership; null if the node is new. */
  readonly membership: MembershipState | null;
}

/** The token or service account that admits a machine (both null if none is needed), or the refusal. */
export type Admission =
  | { readonly ok: true; readonly token: JoiningToken | null; readonly account: ServiceAccount | null }
  | { readonly ok: false; readonly refusal: JoinTokenRefusal };

const BY_NOTHING: Admission = { ok: true, token: null, account: null };

/**
 * Evaluates the tokens of a batch of registrations in order. Each registration is evaluated with the uses of tokens by
 * earlier registrations of the batch.
 */
export class Admissions {
  readonly #facts: AdmissionFacts;
  readonly #used = new Map<string, number>();

  constructor(facts: AdmissionFacts) {
    this.#facts = facts;
  }

  /** Evaluate a machine's token. A known node is never refused here; a token can only approve a pending node. */
  evaluate({ nodeId, given, membership }: Candidate): Admission {
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
    const { tokens, cluster } = this.#facts;
    switch (given.kind) {
      case "account":
        return { ok: true, token: null, account: given.account };
      case "refused-account":
        return { ok: false, refusal: given.refusal };
      case "malformed":
      case "foreign":
      case "own": {
        const found = given.kind === "own" && given.isGenuine ? tokens.get(given.id) : undefined;
        const row = found && { ...found, uses: found.uses + (this.#used.get(found.id) ?? 0) };
        const refusal = presentedRefusal({ token: given, row: row ?? null }, { nodeId, cluster });
        if (refusal !== null) return { ok: false, refusal };
        return { ok: true, token: found ?? null, account: null };
      }
    }
  }
}

function approves({ token, account }: Admission & { ok: true }, nodeId: string): boolean {
  return token === null ? account !== null && provesNode(account, nodeId) : token.preauthorized;
}
