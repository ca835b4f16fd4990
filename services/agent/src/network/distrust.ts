import { explainTlsError, repairOfDistrust } from "@rollcall/domain";
import { type AuthorityServer, fetchAuthorities, fingerprintOf } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import type { AgentTrust, TrustRoots } from "./agent-trust.ts";

export interface DistrustLogOptions {
  readonly roots: Exclude<TrustRoots["kind"], "none">;
  readonly trust: Pick<AgentTrust, "fingerprints">;
  readonly server: (signal: AbortSignal) => AuthorityServer;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Logger;
  /** Aborted when the agent stops. */
  readonly signal: AbortSignal;
}

/** The minimum time between two requests for the authority of an untrusted server. */
const ASK_EVERY_MS = 60_000;

/**
 * Logs which authority the agent expects and which one the registry serves, if the agent does not
 * trust a server.
 */
export class DistrustLog {
  readonly #options: DistrustLogOptions;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #said = "";

  constructor(options: DistrustLogOptions) {
    this.#options = options;
  }

  /** Handle a failed connection. Only errors about an untrusted authority are reported. */
  failed(error: unknown): void {
    const { clock, signal } = this.#options;
    if (signal.aborted || explainTlsError(textOf(error))?.option !== "authority") return;
    if (clock.nowMs() - this.#askedAtMs < ASK_EVERY_MS) return;
    this.#askedAtMs = clock.nowMs();
    void this.#report();
  }

  /** Called when the agent has trusted a server: log the next failure again. */
  succeeded(): void {
    this.#askedAtMs = Number.NEGATIVE_INFINITY;
    this.#said = "";
  }

  async #report(): Promise<void> {
    const { roots, trust, server, log, signal } = this.#options;
    const { host, port } = server(signal);
    // Fetch the authority only to log it, so that a person can compare it. The agent does not
    // trust it.
    const served = await fetchAuthorities(server(signal), signal).then(
      (certificates) => certificates.map(fingerprintOf),
      () => [],
    );
    const trusted = roots === "system" ? [] : trust.fingerprints();
    const fields = {
      server: `${host}:${port}`,
      trusted: roots === "system" ? "the authorities of this machine" : trusted,
      served,
      repair: repairOfDistrust({ roots, trusted, served }),
    };
    const said = JSON.stringify(fields);
    if (signal.aborted || said === this.#said) return;
    this.#said = said;
    log.error(fields, "servers have an authority that this agent does not trust");
  }
}

/**
 * All codes and messages of an error. Libraries wrap the errors of Node.js and OpenSSL, so follow
 * the causes.
 */
function textOf(error: unknown): string {
  const parts: string[] = [];
  let next: unknown = error;
  while (next !== undefined && next !== null && parts.length < MOST_CAUSES) {
    const { code, message, details, cause } = Object(next);
    parts.push(String(code ?? ""), String(details ?? ""), String(message ?? next));
    next = cause;
  }
  return parts.join(" ");
}

const MOST_CAUSES = 5;
