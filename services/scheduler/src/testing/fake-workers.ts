import { type ReportedExecution, readNodeWork, type Store, saveObservations } from "@rollcall/store";

/** The result of an execution that a fake machine should run, on each call of work(). */
export type Fate = "RUNS" | "COMPLETES" | "FAILS" | "RUNS_OUT_OF_MEMORY" | "IS_NOT_REPORTED";

/**
 * Machines that carry out their work immediately. They behave like the health service and agents, but use only the
 * store. A machine that is off does nothing and sends no reports.
 */
export class FakeWorkers {
  readonly #store: Store;
  readonly #reports = new Map<string, number>();
  readonly #off = new Set<string>();
  readonly #running = new Map<string, Map<string, ReportedExecution>>();
  fate: (executionId: string, index: number) => Fate = () => "RUNS";

  constructor(store: Store) {
    this.#store = store;
  }

  /** Stop the reports of a machine; its executions keep running. */
  turnOff(nodeId: string): void {
    this.#off.add(nodeId);
  }

  turnOn(nodeId: string): void {
    this.#off.delete(nodeId);
  }

  /** The executions that run on a machine, whatever the store says. */
  runningOn(nodeId: string): readonly string[] {
    const own = this.#running.get(nodeId) ?? new Map<string, ReportedExecution>();
    return [...own.values()].filter(({ observed }) => observed === "READY").map(({ id }) => id);
  }

  /** Handle the work that each machine should run, once, and send a complete report from each machine. */
  async work(nodeIds: readonly string[]): Promise<void> {
    const on = nodeIds.filter((nodeId) => !this.#off.has(nodeId));
    const works = await readNodeWork(
      this.#store.db,
      on.map((nodeId) => ({ nodeId, after: 0n })),
    );
    const wanted = new Map(works.map((work) => [work.nodeId, work.references]));
    const epochs = new Map<string, number>();
    for (const { node_id: id, epoch } of await this.#store.db
      .selectFrom("node_sessions")
      .select(["node_id", "epoch"])
      .execute()) {
      epochs.set(id, epoch);
    }
    await saveObservations(
      this.#store,
      on.map((nodeId) => {
        const own = this.#running.get(nodeId) ?? new Map<string, ReportedExecution>();
        this.#running.set(nodeId, own);
        const references = wanted.get(nodeId) ?? [];
        const named = new Set(references.map(({ id }) => id));
        for (const [id, { observed }] of own) if (!named.has(id) && observed === "ENDED") own.delete(id);
        for (const { id, desired, index } of references) this.#obey(own, id, desired, index);
        const number = (this.#reports.get(nodeId) ?? 0) + 1;
        this.#reports.set(nodeId, number);
        return { nodeId, epoch: epochs.get(nodeId) ?? 0, number, whole: true, executions: [...own.values()] };
      }),
    );
  }

  #obey(own: Map<string, ReportedExecution>, id: string, desired: string, index: number): void {
    const known = own.get(id);
    if (known?.observed === "ENDED") return;
    if (desired === "STOP") {
      own.set(id, { ...seen(id), observed: "ENDED", end: "STOPPED", endedAtMs: 2_000 });
      return;
    }
    switch (this.fate(id, index)) {
      case "RUNS":
        own.set(id, { ...seen(id), observed: "READY" });
        break;
      case "COMPLETES":
        own.set(id, { ...seen(id), observed: "ENDED", end: "EXITED", exitCode: 0, endedAtMs: 2_000 });
        break;
      case "FAILS":
        own.set(id, { ...seen(id), observed: "ENDED", end: "EXITED", exitCode: 1, endedAtMs: 2_000 });
        break;
      case "RUNS_OUT_OF_MEMORY":
        own.set(id, { ...seen(id), observed: "ENDED", end: "OOM", signal: "SIGKILL", endedAtMs: 2_000 });
        break;
      case "IS_NOT_REPORTED":
        break;
    }
  }
}

function seen(id: string): ReportedExecution {
  return {
    ...{ id, observed: "RUNNING", startedAtMs: 1_000, endedAtMs: null, end: null, exitCode: null, signal: null },
    ...{ message: "", job: "", specDigest: null },
  };
}
