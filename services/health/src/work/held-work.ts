import type { NodeReport, ReportedExecution } from "@rollcall/store";

/**
 * Most executions that a node may report: more than a keeper keeps, which are 1,000 that run and 2,000 that ended while
 * the record was away. A node that may not report all of them could never be connected again.
 */
export const MOST_REPORTED = 4_000;
/** Most specs that an agent may wait for at a time. */
export const MOST_WANTED = 200;

/** A part of a report, as it came. */
export interface ReportPart {
  readonly number: number;
  readonly isWhole: boolean;
  readonly hasMore: boolean;
  readonly digest: bigint;
  readonly executions: readonly ReportedExecution[];
}

/** What a part of a report led to. */
export type PartTaken = "more" | "complete" | "too-many" | "out-of-order";

type Waiting = Omit<NodeReport, "nodeId" | "epoch" | "executions"> & {
  readonly executions: ReadonlyMap<string, ReportedExecution>;
};

/**
 * What a session knows about the work of its node: how far the agent was told, what it reported, and what of that is
 * not in the record yet. All of it is bounded by the number of executions a node may report.
 */
export class HeldWork {
  /** The generation up to which the agent was told; null before the whole list. */
  told: bigint | null = null;
  /** Whether the agent was not told of executions that another agent of its node may have started. */
  isWithheld = false;
  /** Digests of specs that the agent waits for, each once, oldest first. */
  readonly wanted: Uint8Array[] = [];
  /** Executions that its last whole report had as ended. */
  ended: readonly string[] = [];
  #open: { readonly number: number; executions: Map<string, ReportedExecution> } | null = null;
  #waiting: Waiting | null = null;
  #saving: Waiting | null = null;
  #lastNumber = 0;
  #digest: bigint | null = null;
  /** The Welcome asks for one. */
  #isReportAsked = true;
  /** Whether something of its last whole report was not believed. */
  #isDoubted = false;
  /** When a whole report is due since not all of the last one was recorded; null for never. */
  #againAtMs: number | null = null;

  /** Whether a report waits to be saved. */
  get hasReport(): boolean {
    return this.#waiting !== null;
  }

  /**
   * Whether a whole report must be asked for: a Beat names a digest that no report explains, the last one was not
   * believed and would be by now, or not all of it was recorded a while ago. True once for each reason: the next report
   * answers it.
   *
   * @param isContested see Replica.isContested().
   * @param nowMs monotonic.
   */
  asksForReport(digest: bigint, isContested: boolean, nowMs: number): boolean {
    const isBelievedNow = this.#isDoubted && !isContested;
    const isDue = this.#againAtMs !== null && nowMs >= this.#againAtMs;
    const isExplained = this.#digest === digest && !isBelievedNow && !isDue;
    if (isExplained || this.#isReportAsked || this.#open !== null) return false;
    this.#isReportAsked = true;
    return true;
  }

  /** Not all that the node runs was recorded: ask for a whole report at this time, or later. */
  askAgainAt(nowMs: number): void {
    this.#againAtMs = nowMs;
  }

  /** The agent could not be asked, since it does not read: the next Beat asks again. */
  reportNotAsked(): void {
    this.#isReportAsked = false;
  }

  /** Take in a part of a report. Numbers rise; parts of a report come one after the other. */
  take(part: ReportPart): PartTaken {
    const executions = this.#open?.executions ?? new Map<string, ReportedExecution>();
    const isNext = this.#open === null ? part.number > this.#lastNumber : part.number === this.#open.number;
    if (!isNext) return "out-of-order";
    if (executions.size + part.executions.length > MOST_REPORTED) return "too-many";
    for (const execution of part.executions) executions.set(execution.id, execution);
    if (part.hasMore) {
      this.#open = { number: part.number, executions };
      return "more";
    }
    const { number, isWhole: whole } = part;
    const waiting = merge(this.#waiting, { number, whole, executions });
    if (waiting.executions.size > MOST_REPORTED) return "too-many";
    this.#open = null;
    this.#waiting = waiting;
    this.#lastNumber = number;
    this.#digest = part.digest;
    this.#isReportAsked = false;
    if (whole) this.#againAtMs = null;
    return "complete";
  }

  /**
   * Begin to save what waits; null when nothing does, or while a report is being saved. While the node is contested,
   * what its agent lacks may run under another agent, and is left out.
   *
   * @param isContested see Replica.isContested().
   */
  beginSave(isContested: boolean): Omit<NodeReport, "nodeId" | "epoch"> | null {
    if (this.#waiting === null || this.#saving !== null) return null;
    this.#saving = this.#waiting;
    this.#waiting = null;
    const { number, whole, executions } = this.#saving;
    if (!isContested) {
      if (whole) this.#isDoubted = false;
      return { number, whole, executions: [...executions.values()] };
    }
    const seen = [...executions.values()].filter((execution) => !isLacked(execution));
    if (whole || seen.length < executions.size) this.#isDoubted = true;
    return { number, whole: false, executions: seen };
  }

  /** What was being saved is in the record: returns its number, which the agent is to be told. */
  saved(): number {
    const number = this.#saving?.number ?? 0;
    this.#saving = null;
    return number;
  }

  /** What was being saved may not be in the record: it is saved again, with what has come since. */
  notSaved(): void {
    if (this.#saving === null) return;
    this.#waiting = this.#waiting === null ? this.#saving : merge(this.#saving, this.#waiting);
    this.#saving = null;
  }
}

/** Whether a report says no more than that its machine does not have the execution. */
function isLacked({ observed, end, startedAtMs }: ReportedExecution): boolean {
  return observed === "ENDED" && (end === "GONE" || (end === "STOPPED" && startedAtMs === null));
}

/**
 * One report that says what two said, one after the other. A node keeps what ended in its reports until it is told to
 * forget it, so both together are whole when one of them is.
 */
function merge(earlier: Waiting | null, later: Waiting): Waiting {
  if (earlier === null) return later;
  const executions = new Map(earlier.executions);
  for (const [id, execution] of later.executions) executions.set(id, execution);
  return { number: later.number, whole: earlier.whole || later.whole, executions };
}
