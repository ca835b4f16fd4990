/** A connection that failed because an agent does not trust the server's authority. */
export interface Distrust {
  /** Where the agent's trusted authorities come from. */
  readonly roots: "system" | "file" | "kept";
  /** The fingerprints that the agent trusts; empty if it trusts the system's authorities. */
  readonly trusted: readonly string[];
  /** The fingerprints of the certificates that the server sent, unverified; empty if it sent none. */
  readonly served: readonly string[];
}

/** Explain how a person can repair the trust, on this machine or at the control plane. */
export function repairOfDistrust({ roots, trusted, served }: Distrust): string {
  const unknown = served.filter((it) => !trusted.includes(it));
  if (served.length > 0 && unknown.length === 0) {
    return (
      "the server announces an authority that is trusted here, but another one issued its certificate; fix " +
      "TLS.CertFile and TLS.CAFile on the server"
    );
  }
  const [first = "sha256:..."] = unknown;
  const compare =
    unknown.length === 0
      ? "`rollcall token create` prints the authority's fingerprint at the control plane"
      : "run `rollcall token create` at the control plane and check whether " +
        `${unknown.join(" or ")} is its authority`;
  const then =
    roots === "file"
      ? "then add that authority's certificate to the file that --ca-file names (Compute.TLS.CAFile)"
      : `then start the agent with --ca-fingerprint ${first} (Compute.TLS.CAFingerprint)`;
  return `${compare}; ${then}`;
}
