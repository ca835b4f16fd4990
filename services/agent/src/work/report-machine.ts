/** What a session has told its server about executions. Points in time are of the monotonic clock. */
export interface ReportState {
  /** Whether the machine's executions are known: before that, an empty report would call all of them lost. */
  readonly isKnown: boolean;
  /** Number of the last report; 0 before the first. */
  readonly number: number;
  /** The report that has no ReportAck yet: one at a time, so that changes gather while the record is busy. */
  readonly inFlight: { readonly number: number; readonly sentAtMs: number } | null;
  readonly isWholeDue: boolean;
  /** Executions that have changed since they were reported. */
  readonly changed: ReadonlySet<string>;
  /** When the next report is due; null while there is nothing to tell, or the last one is under way. */
  readonly dueAtMs: number | null;
  /** Digests of specs, in hexadecimal digits, by the time at which they were asked for. */
  readonly asked: ReadonlyMap<string, number>;
}

/** What bears on reports, after the Welcome. */
export type ReportEvent =
  /** The machine's executions are known, all of them or some of them have changed. */
  | { readonly kind: "changed"; readonly ids: readonly string[]; readonly wantedSpecs: readonly string[] }
  /** The server wants a whole report. */
  | { readonly kind: "asked" }
  | { readonly kind: "acked"; readonly number: number }
  | { readonly kind: "spec"; readonly digest: string }
  | { readonly kind: "due" };

/** What the shell does. */
export type ReportEffect =
  /** Send a report: of all executions, or of these. */
  | { readonly kind: "send-report"; readonly number: number; readonly ids: readonly string[] | null }
  | { readonly kind: "send-want-specs"; readonly digests: readonly string[] };

export interface ReportStep {
  readonly state: ReportState;
  readonly effects: readonly ReportEffect[];
}

/** Changes that come at once, as when ten executions are started, are one report. */
const GATHER_MS = 50;

/** A report without a ReportAck is followed by a whole one: the server may have been unable to keep it. */
export const ACK_PATIENCE_MS = 20_000;

/** A spec that does not come is asked for again. */
const SPEC_PATIENCE_MS = 20_000;

/** Of one frame, as the contract says. */
const MOST_SPECS = 100;

/** A session that has just been welcomed: a whole report is due. */
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

/** When the next `due` event is to come; null for never. */
export function reportDueMs({ dueAtMs, inFlight }: ReportState): number | null {
  return inFlight === null ? dueAtMs : inFlight.sentAtMs + ACK_PATIENCE_MS;
}

/** Decide what to tell the server. */
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
