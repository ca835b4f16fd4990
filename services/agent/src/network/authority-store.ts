import type { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  AuthorityError,
  type AuthorityServer,
  certificatesIn,
  fetchAuthority,
  fingerprintOf,
} from "@rollcall/identity";
import { errorCode, type Logger, replaceFile } from "@rollcall/process";

/** The options of an agent that knows its authority only by the fingerprint. */
export interface AuthorityStoreOptions {
  /** In the form that parseFingerprint() returns. */
  readonly fingerprint: string;
  /** The file that stores the authorities. */
  readonly file: string;
  readonly server: (signal: AbortSignal) => AuthorityServer;
  readonly log: Logger;
}

/**
 * The authorities of an agent that is configured with a fingerprint. The first authority is the one with that
 * fingerprint, and is fetched without credentials. Later, authorities that the control plane announces replace it.
 * If the configured fingerprint changes, earlier announcements are discarded, and the agent starts again with the
 * new fingerprint.
 */
export class AuthorityStore {
  readonly #options: AuthorityStoreOptions;

  constructor(options: AuthorityStoreOptions) {
    this.#options = options;
  }

  /** The trusted authorities as PEM. Throws AuthorityError until they have been fetched. */
  read(): Buffer {
    const kept = this.#find();
    if (kept !== null) return Buffer.from(kept.map(String).join(""));
    throw new AuthorityError("the servers' authority has not been fetched yet; registration fetches it");
  }

  /** The trusted certificates; none until they have been fetched. */
  certificates(): readonly X509Certificate[] {
    return this.#find() ?? [];
  }

  /** The trusted fingerprints: the configured one until the authority has been fetched. */
  fingerprints(): readonly string[] {
    return this.#find()?.map(fingerprintOf) ?? [this.#options.fingerprint];
  }

  /** Fetch the authority unless one is stored. Rejects like fetchAuthority(). */
  async prepare(signal: AbortSignal): Promise<void> {
    if (this.#find() !== null) return;
    const { fingerprint, file, server, log } = this.#options;
    const pem = await fetchAuthority(server(signal), fingerprint, signal);
    await this.#write([pem]);
    log.info({ ca_fingerprint: fingerprint, ca_file: file }, "authority fetched, its fingerprint matches");
  }

  /** Trust only these authorities from the next connection on. */
  async replace(certificates: readonly X509Certificate[]): Promise<void> {
    await this.#write(certificates.map(String));
  }

  async #write(pems: readonly string[]): Promise<void> {
    const { file, fingerprint } = this.#options;
    await replaceFile(file, `${MARK}${fingerprint}\n${pems.join("")}`, 0o600);
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

/**
 * The beginning of the file's first line, before the fingerprint that was configured when the authorities were
 * stored.
 */
const MARK = "# authorities that follow from ";

function certificatesOrNull(pem: string): readonly X509Certificate[] | null {
  try {
    return certificatesIn(Buffer.from(pem), "");
  } catch {
    // Return null, because the file is damaged, so the authority is fetched again.
    return null;
  }
}
