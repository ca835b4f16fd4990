import { fstatSync, fsyncSync, readlinkSync, writeSync } from "node:fs";
import { Failure, type Sink } from "@rollcall/cli";
import { errorCode, systemErrorWords } from "@rollcall/process";

/** An output stream that the process was started with. */
export interface ProcessOutput {
  readonly fd: number;
  /** The name in messages: "standard output". */
  readonly name: string;
  /** The stream of Node.js for this output. */
  readonly stream: Pick<NodeJS.WriteStream, "write" | "on" | "isTTY" | "columns" | "rows">;
  /** Called once, when a write fails. */
  onFailure(failure: Failure): void;
}

/** Error codes of outputs such as /dev/null, which cannot be synced and need not be. */
const UNSYNCED = new Set(["EINVAL", "ENOTSUP", "EROFS"]);

/**
 * Standard output or standard error of this process. This class writes to files itself, because Node.js ignores how
 * much the system has written: on a nearly full disk, output would be lost without an error. For pipes and terminals
 * it uses Node.js.
 */
export class ProcessSink implements Sink {
  readonly #output: ProcessOutput;
  readonly #isFile: boolean;
  #failure: Failure | null = null;
  #hasWritten = false;

  constructor(output: ProcessOutput) {
    this.#output = output;
    this.#isFile = isFile(output);
    // Handle errors of the stream, because Node.js also writes warnings to it, and a server must survive when no one
    // reads them.
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
    // Do not wait if the sink has failed, because finish() reports the failure.
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

  /** Wait until everything written before has succeeded or failed, by writing an empty chunk. */
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
    // The descriptor is closed, which Node.js reports with the first write.
    return false;
  }
}

function writeWhole(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.byteLength; ) at += writeSync(fd, bytes, at);
}

function failureWords(fd: number, name: string, error: unknown): string {
  // If standard output is closed, `bin/rollcall` replaces it with a descriptor that is not open for writing.
  if (errorCode(error) === "EBADF") return `${name}: it is closed; redirect it to /dev/null to discard the output`;
  const place = placeOf(fd);
  return `${place === null ? name : `${place} (${name})`}: ${systemErrorWords(error)}`;
}

/** The path of an open file or device; null if the system does not know it. */
function placeOf(fd: number): string | null {
  try {
    const place = readlinkSync(`/proc/self/fd/${fd}`);
    return place.startsWith("/") ? place : null;
  } catch {
    // Ignore the error, because only Linux has /proc.
    return null;
  }
}
