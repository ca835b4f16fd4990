import type { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type Clock, type Logger, Loop, type Task } from "@rollcall/process";
import { MOST_AUTHORITIES, rootsIn, TlsFileError, unreadable } from "./tls-files.ts";

export interface AuthorityFileOptions {
  readonly file: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Interval between reads of the file. Default 2 s. */
  readonly pollMs?: number;
}

const POLL_MS = 2_000;

/** The current root certificates in a file. If a new version of the file is invalid, it is ignored. */
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

  /** Read the file. Throws TlsFileError when the file is invalid. */
  static async open(options: AuthorityFileOptions): Promise<AuthorityFile> {
    return new AuthorityFile(options, await readPem(options.file));
  }

  /** The current certificates, as a new array after each change. */
  get authorities(): readonly X509Certificate[] {
    return this.#authorities;
  }

  /** The task that polls the file. */
  get task(): Task {
    const { clock, pollMs = POLL_MS } = this.#options;
    return new Loop({ name: "authority-reload", everyMs: pollMs, clock, turn: () => this.reload() });
  }

  /** Read the file now. Problems are logged, and the certificates stay unchanged. Never rejects. */
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
      log.error({ problem }, "cannot replace the announced authorities, keeping the current ones");
    }
  }
}

function authoritiesIn(pem: string, file: string): readonly X509Certificate[] {
  const found = rootsIn(Buffer.from(pem), file);
  if (found.length <= MOST_AUTHORITIES) return found;
  throw new TlsFileError(file, `contains ${found.length} certificates, but agents keep at most ${MOST_AUTHORITIES}`);
}

async function readPem(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw unreadable(file, cause);
  }
}
