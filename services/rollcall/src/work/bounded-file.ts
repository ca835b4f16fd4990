import { appendFileSync, renameSync, statSync } from "node:fs";

/** Of one file; there are two of them. */
const MOST_BYTES = 4_194_304;

/** A file of log lines that is put aside when it is large, in place of the one put aside before. */
export class BoundedFile {
  readonly #path: string;
  #bytes: number;

  constructor(path: string) {
    this.#path = path;
    this.#bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  }

  write(line: string): void {
    if (this.#bytes > MOST_BYTES) {
      renameSync(this.#path, `${this.#path}.1`);
      this.#bytes = 0;
    }
    this.#bytes += Buffer.byteLength(line);
    appendFileSync(this.#path, line, { mode: 0o600 });
  }
}
