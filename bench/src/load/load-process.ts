import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Answer } from "./orders.ts";

/** A load generator in a separate process, so that neither the benchmark nor the server bears its cost. */
export class LoadProcess<Order extends object, Outcome> {
  readonly #child: ChildProcess;
  readonly #ended = new AbortController();

  /** Starts a program in this folder, given its name without the extension. */
  constructor(program: string) {
    // Use the extension of this file. In tests the program is a source, otherwise it is a built file.
    const name = `./${program}${extname(import.meta.url)}`;
    const path = fileURLToPath(new URL(name, import.meta.url));
    this.#child = fork(path, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.#child.once("exit", (code, signal) => {
      this.#ended.abort(new Error(`the load generator exited: ${signal ?? code}`));
    });
  }

  /** Sends an order and waits for its outcome. Only one order can be in progress at a time. */
  async order(order: Order): Promise<Outcome> {
    this.#child.send(order);
    const [answer] = (await once(this.#child, "message", { signal: this.#ended.signal })) as [Answer<Outcome>];
    if (!answer.ok) throw new Error(`the load generator failed: ${answer.message}`);
    return answer.outcome;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exit;
  }
}
