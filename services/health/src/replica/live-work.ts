import type { NodeReport, ReportedExecution } from "@rollcall/store";

/**
 * Maximum number of executions that a node can report. A node that could not report all of its executions could never
 * connect again, so this is more than a keeper keeps: 1,000 running executions, and 2,000 that ended while the store
 * was unavailable.
 */
export const MOST_REPORTED = 4_000;
/** Maximum number of specs that an agent can wait for at a time. */
export const MOST_WANTED = 200;

/** A part of a report, as received. */
export interface ReportPart {
  readonly number: number;
  readonly isWhole: boolean;
  readonly hasMore: boolean;
  readonly digest: bigint;
  readonly executions: readonly ReportedExecution[];
}

/** The result of taking a part of a report. */
export type PartTaken = "more" | "complete" | "too-many" | "out-of-order";

type Waiting = Omit<NodeReport, "nodeId" | "epoch" | "executions"> & {
  readonly executions: ReadonlyMap<string, ReportedExecution>;
};

/**
 * A session's knowledge about the work of its node: the generation that the agent has, the agent's reports, and which
 * reports are not in the store yet. Everything is bounded by the number of executions that a node can report.
 */
export class LiveWork {
  /** The generation of the list that the agent has; null until the whole list has been sent. */
  told: bigint | null = null;
  /** Whether executions were withheld from the agent because another agent of the node may have started them. */
  isWithheld = false;
  /** Digests of specs that the agent waits for, without duplicates, oldest first. */
  readonly wanted: Uint8Array[] = [];
  /** Executions that the agent reported as ended and has not been asked to forget. */
  readonly ended = new Set<string>();
  #open: { readonly number: number; executions: Map<string, ReportedExecution> } | null = null;
  #waiting: Waiting | null = null;
  #saving: Waiting | null = null;
  #lastNumber = 0;
  #digest: bigint | null = null;
  /** Whether a report was requested. Initially true, because the Welcome requests a report. */
  #isReportAsked = true;
  /** Whether a part of the agent's last whole report was not trusted. */
  #isDoubted = false;
  /** When to request a whole report because the last one was not saved completely; null for never. */
  #againAtMs: number | null = null;

  /** Whether a report waits to be saved. */
  get hasReport(): boolean {
    return this.#waiting !== null;
  }

  /**
   * Whether to request a whole report. There are three reasons: no report explains the digest of a Beat, the last
   * report was not trusted but would be now, or it was saved incompletely some time ago. Returns true once per reason,
   * until the next report arrives.
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

  /** Request a whole report at this time or later, because not all of the node's executions were saved. */
  askAgainAt(nowMs: number): void {
    this.#againAtMs = nowMs;
  }

  /** Called when the request could not be sent because the agent does not read. The next Beat tries again. */
  reportNotAsked(): void {
    this.#isReportAsked = false;
  }

  /** Take a part of a report. Report numbers must increase, and the parts of a report must follow each other. */
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
   * Start saving the waiting report. Returns null when there is none, or while another report is being saved. While the
   * node is contested, the report leaves out executions that the agent lacks, because they may run under another agent.
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

  /**
   * Called when the store has the report that was being saved. Returns the number of the report, to be acknowledged to
   * the agent.
   */
  saved(): number {
    const number = this.#saving?.number ?? 0;
    this.#saving = null;
    return number;
  }

  /** Called when the report being saved may not be in the store. It is saved again, together with later reports. */
  notSaved(): void {
    if (this.#saving === null) return;
    this.#waiting = this.#waiting === null ? this.#saving : merge(this.#saving, this.#waiting);
    this.#saving = null;
  }
}

/** Whether a report says only that the agent's machine does not have the execution. */
function isLacked({ observed, end, startedAtMs }: ReportedExecution): boolean {
  return observed === "ENDED" && (end === "GONE" || (end === "STOPPED" && startedAtMs === null));
}

/**
 * Merge two consecutive reports. A node keeps ended executions in its reports until it can forget them, so the result
 * is whole if either report is.
 */
function merge(earlier: Waiting | null, later: Waiting): Waiting {
  if (earlier === null) return later;
  const executions = new Map(earlier.executions);
  for (const [id, execution] of later.executions) executions.set(id, execution);
  return { number: later.number, whole: earlier.whole || later.whole, executions };
}
