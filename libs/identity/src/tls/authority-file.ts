import type { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type Clock, type Logger, Loop, type Task } from "@rollcall/process";
import { MOST_AUTHORITIES, rootsIn, TlsFileError, unreadable } from "./tls-files.ts";

export interface AuthorityFileOptions {
  readonly file: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** The time between two reads of the file. Default 2 s. */
  readonly pollMs?: number;
}

const POLL_MS = 2_000;

/** The roots that a file holds at the moment. A file that cannot be used changes nothing. */
export class AuthorityFile {
  readonly #options: AuthorityFileOptions;
  #pem: string;
  #authorities: readonly X509Certificate[];
  #saidProblem = "";

  private constructor(options: AuthorityFileOptions, pem: string) {
    this.#options = options;
    this.#pem = pem;
    this.#authorities = authoritiesIn(pem, options.file);
  }

  /** Read the file. Throws TlsFileError when it cannot be used. */
  static async open(options: AuthorityFileOptions): Promise<AuthorityFile> {
    return new AuthorityFile(options, await readPem(options.file));
  }

  /** The certificates: another array when they change. */
  get authorities(): readonly X509Certificate[] {
    return this.#authorities;
  }

  /** The task that reads the file again and again. */
  get task(): Task {
    const { clock, pollMs = POLL_MS } = this.#options;
    return new Loop({ name: "authority-reload", everyMs: pollMs, clock, turn: () => this.reload() });
  }

  /** Read the file now. What cannot be used is logged; the certificates stay. Never rejects. */
  async reload(): Promise<void> {
    const { file, log } = this.#options;
    try {
      const pem = await readPem(file);
      if (pem !== this.#pem) {
        this.#authorities = authoritiesIn(pem, file);
        this.#pem = pem;
        log.info({ file, authorities: this.#authorities.length }, "announced authorities replaced");
      }
      this.#saidProblem = "";
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (problem === this.#saidProblem) return;
      this.#saidProblem = problem;
      log.error({ problem }, "announced authorities cannot be replaced, those in use stay");
    }
  }
}

function authoritiesIn(pem: string, file: string): readonly X509Certificate[] {
  const found = rootsIn(Buffer.from(pem), file);
  if (found.length <= MOST_AUTHORITIES) return found;
  throw new TlsFileError(file, `holds ${found.length} certificates, and agents keep at most ${MOST_AUTHORITIES}`);
}

async function readPem(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw unreadable(file, cause);
  }
}
