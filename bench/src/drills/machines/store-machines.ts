import { type ReportedExecution, readNodeWork, type Store, saveObservations } from "@rollcall/store";

/**
 * Machines that replace health services and agents, and immediately carry out what the store asks for. Batch executions
 * end immediately. All others run until they are stopped.
 */
export class StoreMachines {
  readonly #store: Store;
  readonly #nodeIds: readonly string[];
  readonly #kept = new Map<string, Map<string, ReportedExecution>>();
  readonly #everStarted = new Set<string>();
  /** The number of the last report. */
  #numbers = 0;
  #violation: string | null = null;

  constructor(store: Store, nodeIds: readonly string[]) {
    this.#store = store;
    this.#nodeIds = nodeIds;
    for (const id of nodeIds) this.#kept.set(id, new Map());
  }

  /** The first violated invariant; null if there is none. */
  get violation(): string | null {
    return this.#violation;
  }

  get starts(): number {
    return this.#everStarted.size;
  }

  /** The executions that run, regardless of what the store says about them. */
  running(): readonly string[] {
    return [...this.#kept.values()].flatMap((own) =>
      [...own.values()].flatMap(({ id, observed }) => (observed === "ENDED" ? [] : [id])),
    );
  }

  /** Let each machine read its desired executions once and send a complete report. */
  async work(isBatch: (job: string) => boolean): Promise<void> {
    const { db } = this.#store;
    const works = await readNodeWork(
      db,
      this.#nodeIds.map((nodeId) => ({ nodeId, after: 0n })),
    );
    const wanted = new Map(works.map((one) => [one.nodeId, one.references]));
    const jobs = new Map<string, string>();
    for (const { id, job } of await db.selectFrom("executions").select(["id", "job"]).execute()) jobs.set(id, job);
    const epochs = new Map<string, number>();
    for (const row of await db.selectFrom("node_sessions").select(["node_id", "epoch"]).execute()) {
      epochs.set(row.node_id, row.epoch);
    }
    this.#numbers += 1;
    const reports = this.#nodeIds.map((nodeId) => {
      const own = this.#kept.get(nodeId) ?? new Map<string, ReportedExecution>();
      const references = wanted.get(nodeId) ?? [];
      const named = new Set(references.map(({ id }) => id));
      for (const [id, { observed }] of own) if (!named.has(id) && observed === "ENDED") own.delete(id);
      for (const { id, desired } of references) this.#obey(own, id, desired, isBatch(jobs.get(id) ?? ""));
      const epoch = epochs.get(nodeId) ?? 0;
      return { nodeId, epoch, number: this.#numbers, whole: true, executions: [...own.values()] };
    });
    await saveObservations(this.#store, reports);
  }

  #obey(own: Map<string, ReportedExecution>, id: string, desired: string, isBatch: boolean): void {
    const known = own.get(id);
    if (known?.observed === "ENDED") return;
    if (known === undefined && desired === "RUN") {
      if (this.#everStarted.has(id)) this.#violation ??= `execution ${id} was started twice`;
      this.#everStarted.add(id);
    }
    if (desired === "STOP") own.set(id, { ...seen(id), observed: "ENDED", end: "STOPPED", endedAtMs: 2_000 });
    else if (!isBatch) own.set(id, { ...seen(id), observed: "READY" });
    else own.set(id, { ...seen(id), observed: "ENDED", end: "EXITED", exitCode: 0, endedAtMs: 2_000 });
  }
}

function seen(id: string): ReportedExecution {
  return {
    ...{ id, observed: "RUNNING", startedAtMs: 1_000, endedAtMs: null, end: null, exitCode: null, signal: null },
    ...{ message: "", job: "", specDigest: null },
  };
}
