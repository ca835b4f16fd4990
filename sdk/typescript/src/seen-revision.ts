// The highest revision of the log that a client has seen. Pure.
import { Reason } from "./reasons.ts";

/** The header of a request: no service answers from an earlier state. */
export const MIN_REVISION_HEADER = "rollcall-min-revision";
/** The header of an answer, with the revision that includes it. */
export const REVISION_HEADER = "rollcall-revision";

const DECIMAL = /^\d{1,19}$/;
const LARGEST = 2n ** 63n - 1n;

/** What the services of one control plane have told a client. */
export class SeenRevision {
  #revision = 0n;

  /** The value to send; null before anything was seen. */
  get header(): string | null {
    return this.#revision === 0n ? null : String(this.#revision);
  }

  /** An answer came, with this header or none. */
  answered(header: string | null): void {
    if (header !== null && DECIMAL.test(header)) this.heard(BigInt(header));
  }

  /** The message of a stream came, with this revision; 0 for none. */
  heard(revision: bigint): void {
    if (revision > this.#revision && revision <= LARGEST) this.#revision = revision;
  }

  /** A call failed. After a restore the log may end before what was seen. */
  failed(reason: string): void {
    if (reason === Reason.MIN_REVISION_AHEAD) this.#revision = 0n;
  }
}
