import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import type { Clock } from "@rollcall/process";
import { Alarm } from "../alarm.ts";
import { type NodeInfoKeeper, sameDigest } from "../info/node-info-keeper.ts";

/** What the reports of a session are made with. */
export interface InfoReportDeps {
  readonly clock: Clock;
  readonly info: NodeInfoKeeper;
  /** The longest time between two looks at whether the machine has changed. */
  readonly infoCheckMs: number;
}

/** Sends what the node says about itself on one stream: when the server asks, when it changes, and at an interval. */
export class InfoReports {
  readonly #deps: InfoReportDeps;
  readonly #send: (info: NodeInfo) => void;
  readonly #alarm: Alarm;
  #intervalMs = 0;
  #sentAtMs = 0;
  /** What the server is known to have, or has been told that it could ask for. */
  #known: Uint8Array = new Uint8Array();
  #running = false;

  constructor(deps: InfoReportDeps, send: (info: NodeInfo) => void) {
    this.#deps = deps;
    this.#send = send;
    this.#alarm = new Alarm(deps.clock, () => void this.#look());
  }

  /** Note the digest that the Hello carried. */
  seen(digest: Uint8Array): void {
    this.#known = digest;
  }

  /** Begin to report; at once when the server wants it. */
  begin(intervalMs: number, wanted: boolean): void {
    this.#running = true;
    this.#intervalMs = intervalMs;
    this.#sentAtMs = this.#deps.clock.nowMs();
    if (wanted) void this.#sendCurrent();
    this.#schedule();
  }

  setInterval(intervalMs: number): void {
    this.#intervalMs = intervalMs;
    if (this.#running) this.#schedule();
  }

  end(): void {
    this.#running = false;
    this.#alarm.clear();
  }

  #schedule(): void {
    const sinceMs = this.#deps.clock.nowMs() - this.#sentAtMs;
    this.#alarm.set(Math.min(this.#deps.infoCheckMs, Math.max(0, this.#intervalMs - sinceMs)));
  }

  async #look(): Promise<void> {
    const { digest } = await this.#deps.info.refresh();
    const dueMs = this.#sentAtMs + this.#intervalMs;
    if (!sameDigest(digest, this.#known) || this.#deps.clock.nowMs() >= dueMs) {
      await this.#sendCurrent();
    }
    if (this.#running) this.#schedule();
  }

  async #sendCurrent(): Promise<void> {
    const { info, digest } = await this.#deps.info.current();
    // The session may have ended while the machine was read.
    if (!this.#running) return;
    this.#known = digest;
    this.#sentAtMs = this.#deps.clock.nowMs();
    this.#send(info);
  }
}
