/** A certificate authority that the control plane announced. Times are in milliseconds since 1970. */
export interface AnnouncedAuthority {
  readonly fingerprint: string;
  /** Whether the certificate is self-signed. TLS accepts no other certificates as authorities. */
  readonly isRoot: boolean;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Whether the authority verifies the server's certificate on the connection that carries the announcement. */
  readonly isVerifying: boolean;
}

/** What an agent does with announced authorities. */
export type AuthorityDecision =
  /** Trust exactly these authorities from now on. */
  | { readonly kind: "replace"; readonly fingerprints: readonly string[] }
  /** The agent already trusts exactly these authorities. */
  | { readonly kind: "same" }
  /** Keep trusting the current authorities. */
  | { readonly kind: "refuse"; readonly problem: string };

/** The maximum number of authorities in one announcement. */
const MOST_ANNOUNCED = 16;

/**
 * Decide which authorities an agent trusts after an announcement. The agent never accepts a set that would lock it out
 * of the announcing server. A control plane that replaces its authority announces both authorities until the change is
 * complete.
 */
export function decideAuthorities(
  announced: readonly AnnouncedAuthority[],
  kept: readonly string[],
  wallMs: number,
): AuthorityDecision {
  if (announced.length > MOST_ANNOUNCED) return { kind: "refuse", problem: `more than ${MOST_ANNOUNCED} authorities` };
  const usable = announced.filter(({ isRoot, notAfterMs }) => isRoot && notAfterMs > wallMs);
  if (usable.length === 0) return { kind: "refuse", problem: "no root authority that is valid today" };
  // Keep authorities that are not valid yet, but require an authority that verifies the server now.
  if (!usable.some(({ isVerifying, notBeforeMs }) => isVerifying && notBeforeMs <= wallMs)) {
    return { kind: "refuse", problem: "no authority that verifies the server's own certificate" };
  }
  const fingerprints = [...new Set(usable.map(({ fingerprint }) => fingerprint))].toSorted();
  const before = [...new Set(kept)].toSorted();
  return fingerprints.join() === before.join() ? { kind: "same" } : { kind: "replace", fingerprints };
}
