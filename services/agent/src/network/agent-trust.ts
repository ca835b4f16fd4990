import { createHash, X509Certificate } from "node:crypto";
import { getCACertificates } from "node:tls";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type NodeTrustSchema, TrustSource } from "@rollcall/api/rollcall/node/v1/node_pb";
import { decideAuthorities } from "@rollcall/domain";
import { authoritiesOf, certificatesIn, fingerprintOf, isRoot } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import type { KeptAuthorities } from "./kept-authorities.ts";

/** Where an agent's trusted authorities come from. */
export type TrustRoots =
  | { readonly kind: "none" }
  | { readonly kind: "system" }
  /** Reads the file's content. Throws when it cannot be read. */
  | { readonly kind: "file"; readonly read: () => Buffer }
  | { readonly kind: "kept"; readonly kept: KeptAuthorities };

export interface AgentTrustOptions {
  readonly roots: TrustRoots;
  /** The name or address that the registry's certificate must be for. */
  readonly serverName: string;
  readonly clock: Pick<Clock, "wallMs">;
  readonly log: Logger;
}

/** Fingerprints in one report. */
const MOST_REPORTED = 16;
/** Characters of a name in a report; no DNS name is longer. */
const MOST_NAME = 253;

/**
 * How an agent recognizes the servers of its control plane: reports it, and takes in the authorities that the control
 * plane announces. Only an agent that was given a fingerprint changes what it trusts; files and the system's
 * authorities are the operator's.
 */
export class AgentTrust {
  readonly #options: AgentTrustOptions;
  readonly #listeners = new Set<() => void>();
  /** Fingerprints that the control plane announced last, as it named them. */
  #announced: readonly string[] = [];
  #saidProblem = "";
  /** Ends when the last announcement was taken in. */
  #taken: Promise<void> = Promise.resolve();

  constructor(options: AgentTrustOptions) {
    this.#options = options;
  }

  /** What a Hello carries as authorities_digest. */
  get digest(): Uint8Array {
    return this.#options.roots.kind === "none" ? new Uint8Array() : digestOf(this.#announced);
  }

  /** Subscribe to changes of describe(). */
  subscribe(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** What a report says. */
  describe(): MessageInitShape<typeof NodeTrustSchema> {
    const { roots, serverName } = this.#options;
    if (roots.kind === "none") return { source: TrustSource.NONE };
    const trusted = this.#trusted();
    const announcedFirst = [...this.#announced.filter((it) => trusted.has(it)), ...trusted];
    const reported = roots.kind === "system" ? this.#announced.filter((it) => trusted.has(it)) : announcedFirst;
    const authorities = [...new Set(reported)].slice(0, MOST_REPORTED).toSorted();
    return { source: SOURCES[roots.kind], authorities, serverName: serverName.slice(0, MOST_NAME) };
  }

  /** The fingerprints that are trusted; empty for those of the system, which are many. */
  fingerprints(): readonly string[] {
    return this.#options.roots.kind === "system" ? [] : [...this.#trusted()];
  }

  /**
   * Take in announced authorities, each in DER. Never rejects: what cannot be used or kept is logged, and what is
   * trusted stays.
   *
   * @param chain what the server showed in the handshake, each in DER, its own certificate first.
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
        log.info({ trusted: fingerprints, before: kept }, "authorities replaced, as the control plane announced them");
      }
    }
    this.#saidProblem = "";
    this.#announced = certificates.map(fingerprintOf);
    for (const listener of this.#listeners) listener();
  }

  #refuse(problem: string): void {
    if (problem === this.#saidProblem) return;
    this.#saidProblem = problem;
    this.#options.log.warn({ problem }, "announced authorities are not used, those that are trusted stay");
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
      // The file cannot be read: nothing is trusted, and the next connection fails with the reason.
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
function digestOf(fingerprints: readonly string[]): Uint8Array {
  const digest = createHash("sha256");
  for (const fingerprint of fingerprints.toSorted())
    digest.update(Buffer.from(fingerprint.slice("sha256:".length), "hex"));
  return digest.digest();
}

/** What the server showed, without intermediate certificates that verify no new connection: expired ones, say. */
function validChain(chain: readonly Uint8Array[], wallMs: number): readonly X509Certificate[] {
  const isValid = (it: X509Certificate) => Date.parse(it.validFrom) <= wallMs && Date.parse(it.validTo) > wallMs;
  return chain.map((der) => new X509Certificate(der)).filter((it, at) => at === 0 || isValid(it));
}

function fingerprintsIn(pem: Buffer, wallMs: number): ReadonlySet<string> {
  const valid = certificatesIn(pem, "").filter(({ validTo }) => Date.parse(validTo) > wallMs);
  return new Set(valid.map(fingerprintOf));
}

let ofSystem: ReadonlySet<string> | null = null;

/** Read once: Node.js trusts those that it had at its start. */
function systemAuthorities(): ReadonlySet<string> {
  ofSystem ??= new Set(getCACertificates("default").map((pem) => fingerprintOf(new X509Certificate(pem))));
  return ofSystem;
}
