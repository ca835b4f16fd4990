import type { NodeReport } from "@rollcall/store";

/** The part of the simulated world that the watch reads. */
export interface WatchedWorld {
  /** The epoch of a node's session. */
  epochOf(nodeId: string): number;
  fail(message: string): void;
}

/**
 * The number of executions at which a save is full. A full save may leave out reports, and those wait for the next
 * save.
 */
const FULL_SAVE = 2_000;

/**
 * Checks that a replica retries a failed save for as long as the session lasts. Without this check, a forgotten save
 * would go unnoticed, because an agent without an acknowledgement sends a complete report after a while.
 */
export class ReportWatch {
  readonly #world: WatchedWorld;
  /**
   * Nodes whose last report may be missing in the store, keyed by node. The values are the epochs of their sessions.
   */
  readonly #unsaved = new Map<string, number>();

  constructor(world: WatchedWorld) {
    this.#world = world;
  }

  /** Called when a replica starts to save reports. It saves one batch after the other. */
  begin(reports: readonly NodeReport[]): void {
    let executions = 0;
    for (const report of reports) {
      this.#unsaved.delete(report.nodeId);
      executions += report.executions.length;
    }
    if (executions >= FULL_SAVE) return;
    for (const [nodeId, epoch] of this.#unsaved) {
      if (this.#world.epochOf(nodeId) === epoch) this.#world.fail(`a report of ${nodeId} was not saved, but forgotten`);
    }
    this.#unsaved.clear();
  }

  /** Called when the store did not confirm the save. */
  failed(reports: readonly NodeReport[]): void {
    for (const { nodeId, epoch } of reports) this.#unsaved.set(nodeId, epoch);
  }
}
