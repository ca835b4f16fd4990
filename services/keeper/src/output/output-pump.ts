import { constants, openSync } from "node:fs";
import { Socket } from "node:net";
import type { Logger } from "@rollcall/process";
import type { OutputReader } from "./execution-output.ts";
import type { OutputStore } from "./output-store.ts";

/** Dependencies of a pump. */
export interface PumpServices {
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly log: Logger;
}

/**
 * Copies an execution's output from its pipe to its files, no faster than the disk accepts it. The shim holds the pipe
 * open, so that nothing is lost while no pump reads. Programs that write then wait.
 */
export class OutputPump implements OutputReader {
  readonly #done: Promise<void>;
  readonly #socket: Socket;
  #isDone = false;

  /** @param pipe path of a pipe that has or had a writer. */
  constructor(pipe: string, store: Pick<OutputStore, "append">, { wallMs, log }: PumpServices) {
    // Use O_NONBLOCK. Otherwise, this call would wait for a writer, and each read would block a thread of the pool.
    const fd = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.#done = this.#run(store, { wallMs, log });
  }

  /** Whether all writers are gone and everything is stored. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Stop reading. Unread output stays in the pipe. */
  async close(): Promise<void> {
    this.#socket.destroy();
    await this.#done;
  }

  async #run(store: Pick<OutputStore, "append">, { wallMs, log }: PumpServices): Promise<void> {
    let hasFailed = false;
    try {
      for await (const chunk of this.#socket) {
        try {
          await store.append(chunk, wallMs());
        } catch (error) {
          // On a full disk, drop output. Otherwise, the execution would wait for its pipe forever.
          if (!hasFailed) log.error({ err: error }, "cannot write output; it is lost");
          hasFailed = true;
        }
      }
    } catch {
      // Ignore the error, because the pipe was closed during the read.
    }
    this.#isDone = true;
  }
}
