import type { NodeReport } from "@rollcall/store";

/** What the watch has of the world. */
export interface WatchedWorld {
  /** The epoch of a node's session. */
  epochOf(nodeId: string): number;
  fail(message: string): void;
}

/** A save with so many executions may leave out what waits behind them. */
const FULL_SAVE = 2_000;

/**
 * Checks that a replica saves again what it could not save, as long as the session goes on. An agent that has no
 * acknowledgement reports whole after a while, and so covers up for a replica that forgets.
 */
export class ReportWatch {
  readonly #world: WatchedWorld;
  /** Nodes whose last report may not be in the record, with the epochs of their sessions. */
  readonly #unsaved = new Map<string, number>();

  constructor(world: WatchedWorld) {
    this.#world = world;
  }

  /** A replica begins to save; it saves one batch after the other. */
  begin(reports: readonly NodeReport[]): void {
    let executions = 0;
    for (const report of reports) {
      this.#unsaved.delete(report.nodeId);
      executions += report.executions.length;
    }
    if (executions >= FULL_SAVE) return;
    for (const [nodeId, epoch] of this.#unsaved) {
      if (this.#world.epochOf(nodeId) === epoch) this.#world.fail(`a report of ${nodeId} was not saved, and forgotten`);
    }
    this.#unsaved.clear();
  }

  /** The record did not confirm it. */
  failed(reports: readonly NodeReport[]): void {
    for (const { nodeId, epoch } of reports) this.#unsaved.set(nodeId, epoch);
  }
}
