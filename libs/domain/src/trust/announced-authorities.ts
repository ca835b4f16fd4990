/** One authority that the control plane has announced. Times are in milliseconds since 1970. */
export interface AnnouncedAuthority {
  readonly fingerprint: string;
  /** Whether it is self-signed. TLS trusts no other certificate as an authority. */
  readonly isRoot: boolean;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Whether it verifies the connection over which it was announced. */
  readonly isVerifying: boolean;
}

/** The decision of an agent about announced authorities. */
export type AuthorityDecision =
  /** Trust these from now on, and no others. */
  | { readonly kind: "replace"; readonly fingerprints: readonly string[] }
  /** They are what it trusts already. */
  | { readonly kind: "same" }
  /** Keep what it trusts. */
  | { readonly kind: "refuse"; readonly problem: string };

/** The limit of the message that announces them. */
const MOST_ANNOUNCED = 16;

/**
 * Decide what an agent trusts after an announcement. It never takes authorities that would lock it out of the server
 * that announces them: a control plane that changes its authority announces both until the change is over.
 */
export function decideAuthorities(
  announced: readonly AnnouncedAuthority[],
  kept: readonly string[],
  wallMs: number,
): AuthorityDecision {
  if (announced.length > MOST_ANNOUNCED) return { kind: "refuse", problem: `more than ${MOST_ANNOUNCED} authorities` };
  const usable = announced.filter(({ isRoot, notAfterMs }) => isRoot && notAfterMs > wallMs);
  if (usable.length === 0) return { kind: "refuse", problem: "no root authority that is valid today" };
  // One that is not valid yet is kept, for the day when it is, but verifies nothing before.
  if (!usable.some(({ isVerifying, notBeforeMs }) => isVerifying && notBeforeMs <= wallMs)) {
    return { kind: "refuse", problem: "no authority that verifies the server's own certificate" };
  }
  const fingerprints = [...new Set(usable.map(({ fingerprint }) => fingerprint))].toSorted();
  const before = [...new Set(kept)].toSorted();
  return fingerprints.join() === before.join() ? { kind: "same" } : { kind: "replace", fingerprints };
}
