import { constants, openSync } from "node:fs";
import { Socket } from "node:net";
import type { Logger } from "@rollcall/process";
import type { OutputReader } from "./execution-output.ts";
import type { OutputStore } from "./output-store.ts";

/** What a pump works with. */
export interface PumpServices {
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly log: Logger;
}

/**
 * Moves what an execution writes from its pipe to its files, no faster than the disk takes it. The shim holds the pipe
 * open, so that nothing is lost while no pump reads: the writers wait.
 */
export class OutputPump implements OutputReader {
  readonly #done: Promise<void>;
  readonly #socket: Socket;
  #isDone = false;

  /** @param pipe path of a pipe that has a writer, or had one. */
  constructor(pipe: string, store: Pick<OutputStore, "append">, { wallMs, log }: PumpServices) {
    // Without O_NONBLOCK this waits for a writer, and a thread of the pool would for each read.
    const fd = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.#done = this.#run(store, { wallMs, log });
  }

  /** Whether all writers are gone and all is written. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Stop reading. What is in the pipe stays there. */
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
          // A full disk costs output; an execution that waits for its pipe for ever would cost the execution.
          if (!hasFailed) log.error({ err: error }, "output cannot be written, it is lost");
          hasFailed = true;
        }
      }
    } catch {
      // Closed while it read.
    }
    this.#isDone = true;
  }
}
