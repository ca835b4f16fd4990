/** The state of a session's reports about executions. Times are from the monotonic clock. */
export interface ReportState {
  /**
   * Whether the machine's executions are known. No report is sent earlier, because an empty report would
   * declare all of them lost.
   */
  readonly isKnown: boolean;
  /** Number of the last report; 0 before the first. */
  readonly number: number;
  /**
   * The report without a ReportAck. Only one is sent at a time, so that changes accumulate while the store is
   * busy.
   */
  readonly inFlight: { readonly number: number; readonly sentAtMs: number } | null;
  readonly isWholeDue: boolean;
  /** Executions that have changed since their last report. */
  readonly changed: ReadonlySet<string>;
  /** When the next report is due; null if there is nothing to report, or while the last report is in flight. */
  readonly dueAtMs: number | null;
  /** When each spec was requested, keyed by the spec's digest in hexadecimal. */
  readonly asked: ReadonlyMap<string, number>;
}

/** Events that affect reports, after the Welcome. */
export type ReportEvent =
  /** The machine's executions are now known, or some of them have changed. */
  | { readonly kind: "changed"; readonly ids: readonly string[]; readonly wantedSpecs: readonly string[] }
  /** The server requests a complete report. */
  | { readonly kind: "asked" }
  | { readonly kind: "acked"; readonly number: number }
  | { readonly kind: "spec"; readonly digest: string }
  | { readonly kind: "due" };

/** Effects that the shell carries out. */
export type ReportEffect =
  /** Send a report about these executions, or about all if `ids` is null. */
  | { readonly kind: "send-report"; readonly number: number; readonly ids: readonly string[] | null }
  | { readonly kind: "send-want-specs"; readonly digests: readonly string[] };

export interface ReportStep {
  readonly state: ReportState;
  readonly effects: readonly ReportEffect[];
}

/**
 * How long to collect changes, so that simultaneous ones, such as ten starting executions, share one report.
 */
const GATHER_MS = 50;

/**
 * How long to wait for a ReportAck before sending a complete report: the server may have failed to store the
 * last one.
 */
export const ACK_PATIENCE_MS = 20_000;

/** How long to wait for a spec before requesting it again. */
const SPEC_PATIENCE_MS = 20_000;

/** The maximum number of digests in one frame, by the contract. */
const MOST_SPECS = 100;

/** The state after the Welcome: a complete report is due. */
export function beginReports(isKnown: boolean, nowMs: number): ReportState {
  return {
    isKnown,
    number: 0,
    inFlight: null,
    isWholeDue: true,
    changed: new Set(),
    dueAtMs: isKnown ? nowMs : null,
    asked: new Map(),
  };
}

/** When the next `due` event is expected; null for never. */
export function reportDueMs({ dueAtMs, inFlight }: ReportState): number | null {
  return inFlight === null ? dueAtMs : inFlight.sentAtMs + ACK_PATIENCE_MS;
}

/** Decide what to send to the server. */
export function stepReports(state: ReportState, event: ReportEvent, nowMs: number): ReportStep {
  switch (event.kind) {
    case "changed": {
      const known = { ...state, isKnown: true, changed: new Set([...state.changed, ...event.ids]) };
      return want(schedule(known, state.isKnown ? nowMs + GATHER_MS : nowMs), event.wantedSpecs, nowMs);
    }
    case "asked":
      return { state: schedule({ ...state, isWholeDue: true }, nowMs), effects: [] };
    case "acked": {
      if (state.inFlight === null || event.number < state.inFlight.number) return { state, effects: [] };
      return { state: schedule({ ...state, inFlight: null }, nowMs), effects: [] };
    }
    case "spec": {
      const asked = new Map(state.asked);
      asked.delete(event.digest);
      return { state: { ...state, asked }, effects: [] };
    }
    case "due":
      return onDue(state, nowMs);
  }
}

function onDue(state: ReportState, nowMs: number): ReportStep {
  const atMs = reportDueMs(state);
  if (atMs === null || atMs > nowMs) return { state, effects: [] };
  if (state.inFlight !== null) {
    return { state: schedule({ ...state, inFlight: null, isWholeDue: true }, nowMs), effects: [] };
  }
  const number = state.number + 1;
  return {
    state: {
      ...state,
      number,
      inFlight: { number, sentAtMs: nowMs },
      isWholeDue: false,
      changed: new Set(),
      dueAtMs: null,
    },
    effects: [{ kind: "send-report", number, ids: state.isWholeDue ? null : [...state.changed] }],
  };
}

function schedule(state: ReportState, atMs: number): ReportState {
  const hasNews = state.isKnown && (state.isWholeDue || state.changed.size > 0);
  if (!hasNews) return state;
  return { ...state, dueAtMs: state.dueAtMs === null ? atMs : Math.min(atMs, state.dueAtMs) };
}

function want(state: ReportState, wanted: readonly string[], nowMs: number): ReportStep {
  const waiting = new Map([...state.asked].filter(([digest]) => wanted.includes(digest)));
  const isOverdue = (digest: string): boolean => nowMs - (waiting.get(digest) ?? -Infinity) >= SPEC_PATIENCE_MS;
  const fresh = [...waiting.keys()].filter((digest) => !isOverdue(digest)).length;
  const digests = wanted.filter(isOverdue).slice(0, Math.max(0, MOST_SPECS - fresh));
  for (const digest of digests) waiting.set(digest, nowMs);
  return {
    state: { ...state, asked: waiting },
    effects: digests.length === 0 ? [] : [{ kind: "send-want-specs", digests }],
  };
}
