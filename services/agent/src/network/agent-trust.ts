import { createHash, X509Certificate } from "node:crypto";
import { getCACertificates } from "node:tls";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type NodeTrustSchema, TrustSource } from "@rollcall/api/rollcall/node/v1/node_pb";
import { decideAuthorities } from "@rollcall/domain";
import { authoritiesOf, certificatesIn, fingerprintOf, isRoot } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import type { AuthorityStore } from "./authority-store.ts";

/** Where an agent's trusted authorities come from. */
export type TrustRoots =
  | { readonly kind: "none" }
  | { readonly kind: "system" }
  /** Reads the file's content. Throws when it cannot be read. */
  | { readonly kind: "file"; readonly read: () => Buffer }
  | { readonly kind: "kept"; readonly kept: AuthorityStore };

export interface AgentTrustOptions {
  readonly roots: TrustRoots;
  /** The name or address that the registry's certificate must be valid for. */
  readonly serverName: string;
  readonly clock: Pick<Clock, "wallMs">;
  readonly log: Logger;
}

/** Maximum number of fingerprints in one report. */
const MOST_REPORTED = 16;
/** Maximum length of a name in a report; no DNS name is longer. */
const MOST_NAME = 253;

/**
 * Reports how an agent recognizes the servers of its control plane, and applies the authorities that the control plane
 * announces. Only an agent that is configured with a fingerprint changes the authorities it trusts: the operator
 * manages files and the system's authorities.
 */
export class AgentTrust {
  readonly #options: AgentTrustOptions;
  readonly #listeners = new Set<() => void>();
  /** Fingerprints of the control plane's last announcement, in its order. */
  #announced: readonly string[] = [];
  #saidProblem = "";
  /** Resolves when the last announcement has been applied. */
  #taken: Promise<void> = Promise.resolve();

  constructor(options: AgentTrustOptions) {
    this.#options = options;
  }

  /** The authorities_digest of a Hello. */
  get digest(): Uint8Array {
    return this.#options.roots.kind === "none" ? new Uint8Array() : authoritiesDigest(this.#announced);
  }

  /**
   * Whether the agent can recognize servers. An agent with a fingerprint cannot until it has fetched the authority.
   */
  get isReady(): boolean {
    const { roots } = this.#options;
    return roots.kind !== "kept" || roots.kept.certificates().length > 0;
  }

  /** Subscribe to changes to the result of describe(). */
  subscribe(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** The trust section of a report. */
  describe(): MessageInitShape<typeof NodeTrustSchema> {
    const { roots, serverName } = this.#options;
    if (roots.kind === "none") return { source: TrustSource.NONE };
    const trusted = this.#trusted();
    const announcedFirst = [...this.#announced.filter((it) => trusted.has(it)), ...trusted];
    const reported = roots.kind === "system" ? this.#announced.filter((it) => trusted.has(it)) : announcedFirst;
    const authorities = [...new Set(reported)].slice(0, MOST_REPORTED).toSorted();
    return { source: SOURCES[roots.kind], authorities, serverName: serverName.slice(0, MOST_NAME) };
  }

  /** The trusted fingerprints. Empty if the agent trusts the system's authorities, which are many. */
  fingerprints(): readonly string[] {
    return this.#options.roots.kind === "system" ? [] : [...this.#trusted()];
  }

  /**
   * Apply announced authorities, each in DER. Never rejects: if the authorities cannot be used or stored, logs the
   * problem and keeps the trusted ones.
   * @param chain the certificates that the server presented in the handshake, each in DER, the server's own first.
   */
  hear(announced: readonly Uint8Array[], chain: readonly Uint8Array[]): Promise<void> {
    const taken = this.#taken
      .then(() => this.#hear(announced, chain))
      .catch((err: unknown) => this.#refuse(String(err)));
    this.#taken = taken;
    return taken;
  }

  async #hear(announced: readonly Uint8Array[], chain: readonly Uint8Array[]): Promise<void> {
    const { roots, clock, log } = this.#options;
    const certificates = announced.map((der) => new X509Certificate(der));
    const verifying = authoritiesOf(validChain(chain, clock.wallMs()), certificates);
    if (roots.kind === "kept") {
      const kept = roots.kept.fingerprints();
      const facts = certificates.map((it) => ({
        fingerprint: fingerprintOf(it),
        isRoot: isRoot(it),
        notBeforeMs: Date.parse(it.validFrom),
        notAfterMs: Date.parse(it.validTo),
        isVerifying: verifying.includes(it),
      }));
      const decision = decideAuthorities(facts, kept, clock.wallMs());
      if (decision.kind === "refuse") {
        this.#refuse(decision.problem);
        return;
      }
      if (decision.kind === "replace") {
        const { fingerprints } = decision;
        await roots.kept.replace(
          fingerprints.flatMap((wanted) => certificates.find((it) => fingerprintOf(it) === wanted) ?? []),
        );
        log.info(
          { trusted: fingerprints, before: kept },
          "trusted authorities replaced by those that the control plane announced",
        );
      }
    }
    this.#saidProblem = "";
    this.#announced = certificates.map(fingerprintOf);
    for (const listener of this.#listeners) listener();
  }

  #refuse(problem: string): void {
    if (problem === this.#saidProblem) return;
    this.#saidProblem = problem;
    this.#options.log.warn({ problem }, "announced authorities rejected, trusted authorities unchanged");
  }

  #trusted(): ReadonlySet<string> {
    const { roots, clock } = this.#options;
    try {
      switch (roots.kind) {
        case "none":
          return new Set();
        case "kept":
          return new Set(roots.kept.fingerprints());
        case "system":
          return systemAuthorities();
        case "file":
          return fingerprintsIn(roots.read(), clock.wallMs());
      }
    } catch {
      // Trust nothing, because the file cannot be read. The next connection fails with the reason.
      return new Set();
    }
  }
}

const SOURCES = {
  system: TrustSource.SYSTEM,
  file: TrustSource.FILE,
  kept: TrustSource.ANNOUNCED,
} as const;

/** See Hello.authorities_digest. */
export function authoritiesDigest(fingerprints: readonly string[]): Uint8Array {
  const digest = createHash("sha256");
  for (const fingerprint of fingerprints.toSorted())
    digest.update(Buffer.from(fingerprint.slice("sha256:".length), "hex"));
  return digest.digest();
}

/** The certificates that the server presented, without intermediate ones that are expired or not yet valid. */
function validChain(chain: readonly Uint8Array[], wallMs: number): readonly X509Certificate[] {
  const isValid = (it: X509Certificate) => Date.parse(it.validFrom) <= wallMs && Date.parse(it.validTo) > wallMs;
  return chain.map((der) => new X509Certificate(der)).filter((it, at) => at === 0 || isValid(it));
}

function fingerprintsIn(pem: Buffer, wallMs: number): ReadonlySet<string> {
  const valid = certificatesIn(pem, "").filter(({ validTo }) => Date.parse(validTo) > wallMs);
  return new Set(valid.map(fingerprintOf));
}

let ofSystem: ReadonlySet<string> | null = null;

/**
 * The system's authorities. They are read once, because Node.js itself only trusts those that the system had when
 * Node.js started.
 */
function systemAuthorities(): ReadonlySet<string> {
  ofSystem ??= new Set(getCACertificates("default").map((pem) => fingerprintOf(new X509Certificate(pem))));
  return ofSystem;
}
