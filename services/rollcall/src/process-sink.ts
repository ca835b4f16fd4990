import { fstatSync, fsyncSync, readlinkSync, writeSync } from "node:fs";
import { Failure, type Sink } from "@rollcall/cli";
import { errorCode, systemErrorWords } from "@rollcall/process";

/** An output that a process was started with. */
export interface ProcessOutput {
  readonly fd: number;
  /** "standard output", for messages. */
  readonly name: string;
  /** What Node.js has made of it. */
  readonly stream: Pick<NodeJS.WriteStream, "write" | "on" | "isTTY" | "columns" | "rows">;
  /** Called once, when something cannot be written. */
  onFailure(failure: Failure): void;
}

/** What cannot be synchronised, such as /dev/null, is as safe as it will be. */
const UNSYNCED = new Set(["EINVAL", "ENOTSUP", "EROFS"]);

/**
 * Standard output or standard error of this process. Files are written here: Node.js does not look how much of a piece
 * the system has taken, and what does not fit a disk that is nearly full would be lost without an error. Pipes and
 * terminals are written by Node.js.
 */
export class ProcessSink implements Sink {
  readonly #output: ProcessOutput;
  readonly #isFile: boolean;
  #failure: Failure | null = null;
  #hasWritten = false;

  constructor(output: ProcessOutput) {
    this.#output = output;
    this.#isFile = isFile(output);
    // Node.js writes warnings there without this sink, and a server survives it when nobody reads them.
    output.stream.on("error", (error: Error) => {
      if (this.#hasWritten) this.#fail(error);
    });
  }

  get isTerminal(): boolean {
    return this.#output.stream.isTTY ?? false;
  }

  columns(): number {
    return this.#output.stream.columns ?? 0;
  }

  rows(): number {
    return this.#output.stream.rows ?? 0;
  }

  write(data: string | Uint8Array): void {
    if (this.#failure !== null || data.length === 0) return;
    this.#hasWritten = true;
    if (!this.#isFile) {
      this.#output.stream.write(data);
      return;
    }
    try {
      writeWhole(this.#output.fd, typeof data === "string" ? Buffer.from(data) : data);
    } catch (error) {
      this.#fail(error);
    }
  }

  async taken(): Promise<void> {
    // A sink that failed reports it at the end.
    if (!this.#isFile && this.#failure === null) await this.#drained();
  }

  async finish(): Promise<void> {
    if (!this.#hasWritten) return;
    if (this.#failure === null) {
      if (this.#isFile) this.#synchronise();
      else await this.#drained();
    }
    if (this.#failure !== null) throw this.#failure;
  }

  #synchronise(): void {
    try {
      fsyncSync(this.#output.fd);
    } catch (error) {
      if (!UNSYNCED.has(errorCode(error) ?? "")) this.#fail(error);
    }
  }

  /** Whatever was written before is written, or has failed, when an empty piece is. */
  #drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#output.stream.write("", (error) => {
        if (error) this.#fail(error);
        resolve();
      });
    });
  }

  #fail(error: unknown): void {
    if (this.#failure !== null) return;
    const { fd, name, onFailure } = this.#output;
    this.#failure = new Failure(`cannot write ${failureWords(fd, name, error)}`, { cause: error });
    onFailure(this.#failure);
  }
}

function isFile({ fd, stream }: ProcessOutput): boolean {
  if (stream.isTTY) return false;
  try {
    const found = fstatSync(fd);
    return !found.isFIFO() && !found.isSocket();
  } catch {
    // It is closed: Node.js says so with the first piece.
    return false;
  }
}

function writeWhole(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.byteLength; ) at += writeSync(fd, bytes, at);
}

function failureWords(fd: number, name: string, error: unknown): string {
  // `bin/rollcall` replaces a closed standard output with one that is not open for writing.
  if (errorCode(error) === "EBADF") return `${name}: it is closed; redirect it to /dev/null to discard the output`;
  const place = placeOf(fd);
  return `${place === null ? name : `${place} (${name})`}: ${systemErrorWords(error)}`;
}

/** The path of a file or device, where the system has one for it. */
function placeOf(fd: number): string | null {
  try {
    const place = readlinkSync(`/proc/self/fd/${fd}`);
    return place.startsWith("/") ? place : null;
  } catch {
    // Only Linux has it.
    return null;
  }
}
