/** A server whose authority an agent does not trust. */
export interface Distrust {
  /** Where the agent's trusted authorities come from. */
  readonly roots: "system" | "file" | "kept";
  /** The fingerprints that the agent trusts; empty where they are the system's. */
  readonly trusted: readonly string[];
  /** Fingerprints from the server, unverified; empty if it sent none. */
  readonly served: readonly string[];
}

/** Say what a person does about it, here or at the control plane. */
export function repairOfDistrust({ roots, trusted, served }: Distrust): string {
  const unknown = served.filter((it) => !trusted.includes(it));
  if (served.length > 0 && unknown.length === 0) {
    return (
      "the server hands out an authority that is trusted here, and its certificate is of another one: mend " +
      "TLS.CertFile and TLS.CAFile there"
    );
  }
  const [first = "sha256:..."] = unknown;
  const compare =
    unknown.length === 0
      ? "`rollcall token create` prints the authority's fingerprint at the control plane"
      : "find out at the control plane, with `rollcall token create`, whether " +
        `${unknown.join(" or ")} is its authority`;
  const then =
    roots === "file"
      ? "then add that authority's certificate to the file of --ca-file (Compute.TLS.CAFile)"
      : `then start the agent with --ca-fingerprint ${first} (Compute.TLS.CAFingerprint)`;
  return `${compare}; ${then}`;
}
