import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ExecutionReportSchema,
  Executions,
  LogRequest,
  SpecFrame,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import type { ExecutionObservation } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { Clock } from "@rollcall/process";
import { isCastOut, type SessionEnd } from "../stream/session-end.ts";
import type { SessionNews } from "../stream/session-state.ts";
import type { OutputSource } from "./output-source.ts";
import { reportParts } from "./report-parts.ts";
import { type OutputCall, refuseOutput, sendOutput } from "./send-output.ts";

/** Maximum number of simultaneous readings of output. */
const MOST_READINGS = 16;

/** A change on the machine. */
export interface WorkChange {
  readonly ids: readonly string[];
  /** Digests of all missing specs, in hexadecimal. */
  readonly wantedSpecs: readonly string[];
}

/**
 * The interface between a session and the machine's executions: the session's reports, and the data that it passes
 * on from the server.
 */
export interface WorkFeed {
  /** Whether the machine's executions are known. */
  readonly isKnown: boolean;
  /** Whether any execution has not ended. */
  readonly isRunning: boolean;
  /**
   * The observations of these executions, or of all executions if `ids` is null. Executions that the machine does
   * not have are omitted.
   */
  observations(ids: readonly string[] | null): readonly ExecutionObservation[];
  /** See executionsDigest(). */
  digest(): bigint;
  /** Subscribe to changes. The listener is never called before this returns. Returns an unsubscribe function. */
  subscribe(listener: (change: WorkChange) => void): () => void;
  /** Called when a session was welcomed. */
  opened(): void;
  executions(frame: Executions): void;
  spec(frame: SpecFrame): void;
  /** Called when the store has the reports of these executions. */
  reported(ids: readonly string[]): void;
  /** Called when the node was rejected, banned or deleted in this store history. */
  castOut(logId: string): void;
  /** Called when the control plane has responded. */
  seen(): void;
  /** The output of the machine's executions. */
  readonly output: OutputSource;
}

/** Exchanges information about the machine's executions in one session. */
export class SessionWork {
  readonly #feed: WorkFeed;
  readonly #clock: Clock;
  /** The executions of unacknowledged reports, keyed by report number. */
  readonly #unacknowledged = new Map<number, readonly string[]>();
  /** Aborts all readings of output. */
  readonly #reading = new AbortController();
  #readings = 0;
  #toldDigest = 0n;
  /** The store history that decides what runs on this machine; null before it is known. */
  #toldBy: string | null = null;

  constructor(feed: WorkFeed, clock: Clock) {
    this.#feed = feed;
    this.#clock = clock;
  }

  /** The digest of the last report; 0 before the first. */
  get toldDigest(): bigint {
    return this.#toldDigest;
  }

  /** The frames of a report about these executions, or about all if `ids` is null. */
  report(number: number, ids: readonly string[] | null): readonly MessageInitShape<typeof ExecutionReportSchema>[] {
    const observations = this.#feed.observations(ids);
    const digest = this.#feed.digest();
    this.#toldDigest = digest;
    this.#unacknowledged.set(
      number,
      observations.map(({ id }) => id),
    );
    return reportParts({ number, whole: ids === null, digest }, observations);
  }

  /** @param openOutput opens a call for sending output. */
  hear(news: SessionNews, openOutput: () => OutputCall): void {
    const feed = this.#feed;
    if (news.kind === "opened") feed.opened();
    else if (news.kind === "executions") {
      this.#toldBy = news.executions.logId;
      feed.executions(news.executions);
    } else if (news.kind === "spec") feed.spec(news.spec);
    else if (news.kind === "report-acked") feed.reported(this.#acknowledged(news.number));
    else if (news.kind === "acked") feed.seen();
    else if (news.kind === "log-request") this.#sendOutput(news.request, openOutput);
    else if (news.kind === "ended") this.#ended(news.end);
  }

  /** The stream has ended: abort all readings of output. */
  end(): void {
    this.#reading.abort(new Error("the stream has ended"));
  }

  /**
   * Handle the end of the stream. If the node was rejected, banned or deleted, and the server did not report its store
   * history, use the history whose executions it sent.
   */
  #ended(end: SessionEnd): void {
    if (!isCastOut(end)) return;
    const by = end.castOutBy ?? this.#toldBy;
    if (by !== null) this.#feed.castOut(by);
  }

  /** Return the executions of all reports up to this number, which are now in the store. */
  #acknowledged(upTo: number): readonly string[] {
    const ids = new Set<string>();
    for (const [number, named] of this.#unacknowledged) {
      if (number > upTo) continue;
      for (const id of named) ids.add(id);
      this.#unacknowledged.delete(number);
    }
    return [...ids];
  }

  /** Send output on a separate call. */
  #sendOutput(request: LogRequest, openOutput: () => OutputCall): void {
    // Ignore requests beyond twice the limit. A server only sends them if it has lost track of its readings.
    if (this.#readings >= 2 * MOST_READINGS) return;
    // Open the call before counting it, because a call that cannot be opened never ends.
    const call = openOutput();
    this.#readings += 1;
    const services = { source: this.#feed.output, clock: this.#clock };
    const answering =
      this.#readings > MOST_READINGS
        ? refuseOutput(request, MOST_READINGS, call)
        : sendOutput(request, services, call, this.#reading.signal);
    answering
      // Ignore errors, because the reader has been notified, and the keeper's connection logs its own problems.
      .catch(() => {})
      .finally(() => {
        this.#readings -= 1;
      });
  }
}
