import type { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  AuthorityError,
  type AuthorityServer,
  certificatesIn,
  fetchAuthority,
  fingerprintOf,
} from "@rollcall/identity";
import { errorCode, type Logger } from "@rollcall/process";
import { replaceFile } from "../state/write-atomically.ts";

/** What an agent knows of an authority that it has no file of. */
export interface KeptAuthoritiesOptions {
  /** As parseFingerprint() reads it. */
  readonly fingerprint: string;
  /** Where the authorities are kept. */
  readonly file: string;
  readonly server: (signal: AbortSignal) => AuthorityServer;
  readonly log: Logger;
}

/**
 * The authorities of an agent that was given a fingerprint: first the one of that fingerprint, fetched without
 * credentials; then those that the control plane announces. An agent that is given another fingerprint begins again
 * with that one: what was announced before counts for nothing.
 */
export class KeptAuthorities {
  readonly #options: KeptAuthoritiesOptions;

  constructor(options: KeptAuthoritiesOptions) {
    this.#options = options;
  }

  /** What to trust, as PEM. Throws AuthorityError as long as nothing was fetched. */
  read(): Buffer {
    const kept = this.#find();
    if (kept !== null) return Buffer.from(kept.map(String).join(""));
    throw new AuthorityError("the authority of the servers was not fetched yet, the registration does that");
  }

  /** The certificates that are trusted; none as long as nothing was fetched. */
  certificates(): readonly X509Certificate[] {
    return this.#find() ?? [];
  }

  /** The fingerprints of what is trusted: that of the configuration as long as nothing was fetched. */
  fingerprints(): readonly string[] {
    return this.#find()?.map(fingerprintOf) ?? [this.#options.fingerprint];
  }

  /** Fetch the authority unless one is kept. Rejects as fetchAuthority(). */
  async prepare(signal: AbortSignal): Promise<void> {
    if (this.#find() !== null) return;
    const { fingerprint, file, server, log } = this.#options;
    const pem = await fetchAuthority(server(signal), fingerprint, signal);
    await this.#write([pem]);
    log.info({ ca_fingerprint: fingerprint, ca_file: file }, "authority fetched, its fingerprint is right");
  }

  /** Trust these, and nothing else, from the next connection on. */
  async replace(certificates: readonly X509Certificate[]): Promise<void> {
    await this.#write(certificates.map(String));
  }

  async #write(pems: readonly string[]): Promise<void> {
    const { file, fingerprint } = this.#options;
    await replaceFile(file, `${MARK}${fingerprint}\n${pems.join("")}`);
  }

  #find(): readonly X509Certificate[] | null {
    const { fingerprint } = this.#options;
    const text = this.#text();
    const certificates = text === null ? null : certificatesOrNull(text);
    if (text === null || certificates === null) return null;
    if (text.startsWith(`${MARK}${fingerprint}\n`)) return certificates;
    const own = certificates.filter((it) => fingerprintOf(it) === fingerprint);
    return own.length === 0 ? null : own;
  }

  #text(): string | null {
    try {
      return readFileSync(this.#options.file, "utf8");
    } catch (error) {
      if (errorCode(error) === "ENOENT") return null;
      throw error;
    }
  }
}

/** The first line of the file: the fingerprint in the configuration from which its authorities follow. */
const MARK = "# authorities that follow from ";

function certificatesOrNull(pem: string): readonly X509Certificate[] | null {
  try {
    return certificatesIn(Buffer.from(pem), "");
  } catch {
    // Damaged: it is fetched again.
    return null;
  }
}
