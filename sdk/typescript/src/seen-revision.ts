// The highest log revision that a client has seen. Does no I/O.
import { Reason } from "./reasons.ts";

/**
 * The request header with the revision. No service may respond from an earlier
 * state.
 */
export const MIN_REVISION_HEADER = "rollcall-min-revision";
/** The response header with the revision that includes the result of the call. */
export const REVISION_HEADER = "rollcall-revision";

const DECIMAL = /^\d{1,19}$/;
const LARGEST = 2n ** 63n - 1n;

/** The highest revision received from the services of one control plane. */
export class SeenRevision {
  #revision = 0n;

  /** The value of the request header; null if no revision was seen yet. */
  get header(): string | null {
    return this.#revision === 0n ? null : String(this.#revision);
  }

  /** Record the revision in a response's header, which can be null. */
  answered(header: string | null): void {
    if (header !== null && DECIMAL.test(header)) this.heard(BigInt(header));
  }

  /** Record the revision of a stream's message; 0 means none. */
  heard(revision: bigint): void {
    if (revision > this.#revision && revision <= LARGEST) this.#revision = revision;
  }

  /**
   * Handle a failed call. Forget the revision if it is ahead of the log, for
   * example after a restore.
   */
  failed(reason: string): void {
    if (reason === Reason.MIN_REVISION_AHEAD) this.#revision = 0n;
  }
}
