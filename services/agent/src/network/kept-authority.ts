import { readFileSync } from "node:fs";
import { AuthorityError, type AuthorityServer, certificateOf, fetchAuthority } from "@rollcall/identity";
import { errorCode, type Logger } from "@rollcall/process";
import { replaceFile } from "../state/write-atomically.ts";

/** What an agent knows of an authority that it has no file of. */
export interface KeptAuthorityOptions {
  /** As parseFingerprint() reads it. */
  readonly fingerprint: string;
  /** Where the authority is kept once it was fetched. */
  readonly file: string;
  readonly server: (signal: AbortSignal) => AuthorityServer;
  readonly log: Logger;
}

/**
 * An authority that is known by its fingerprint: fetched without credentials where it is not kept yet, and compared
 * each time that it is read. Whatever else is in the file counts for nothing.
 */
export class KeptAuthority {
  readonly #options: KeptAuthorityOptions;

  constructor(options: KeptAuthorityOptions) {
    this.#options = options;
  }

  /** The authority, as PEM. Throws AuthorityError as long as it was not fetched. */
  read(): Buffer {
    const kept = this.#find();
    if (kept !== null) return Buffer.from(kept);
    throw new AuthorityError("the authority of the servers was not fetched yet, the registration does that");
  }

  /** Fetch the authority unless it is kept. Rejects as fetchAuthority(). */
  async prepare(signal: AbortSignal): Promise<void> {
    if (this.#find() !== null) return;
    const { fingerprint, file, server, log } = this.#options;
    const pem = await fetchAuthority(server(signal), fingerprint, signal);
    await replaceFile(file, pem);
    log.info({ ca_fingerprint: fingerprint, ca_file: file }, "authority fetched, its fingerprint is right");
  }

  #find(): string | null {
    const { file, fingerprint } = this.#options;
    try {
      return certificateOf(readFileSync(file, "utf8"), fingerprint);
    } catch (error) {
      if (errorCode(error) === "ENOENT") return null;
      throw error;
    }
  }
}
