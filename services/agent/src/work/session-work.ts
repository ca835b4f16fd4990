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

/** Outputs that are read at a time. */
const MOST_READINGS = 16;

/** What has changed on the machine. */
export interface WorkChange {
  readonly ids: readonly string[];
  /** Digests of all specs that are missing, in hexadecimal digits. */
  readonly wantedSpecs: readonly string[];
}

/** What a session knows of the machine's executions, and whom it tells what its server says of them. */
export interface WorkFeed {
  /** Whether the machine's executions are known. */
  readonly isKnown: boolean;
  /** Whether an execution has not ended. */
  readonly isRunning: boolean;
  /** What is seen of these executions, as far as the machine has them; of all for null. */
  observations(ids: readonly string[] | null): readonly ExecutionObservation[];
  /** See executionsDigest(). */
  digest(): bigint;
  /** Be told of changes, never before this returns. Returns the function that ends this. */
  subscribe(listener: (change: WorkChange) => void): () => void;
  /** A session was welcomed. */
  opened(): void;
  executions(frame: Executions): void;
  spec(frame: SpecFrame): void;
  /** The record has what was reported of these. */
  reported(ids: readonly string[]): void;
  /** The node was rejected, banned or deleted by this history of the record. */
  castOut(logId: string): void;
  /** The control plane was heard. */
  seen(): void;
  /** What executions wrote. */
  readonly output: OutputSource;
}

/** What one session tells of the machine's executions, and hears of them. */
export class SessionWork {
  readonly #feed: WorkFeed;
  readonly #clock: Clock;
  /** The executions of reports that are not acknowledged, by their numbers. */
  readonly #unacknowledged = new Map<number, readonly string[]>();
  /** Ends what is read of output. */
  readonly #reading = new AbortController();
  #readings = 0;
  #toldDigest = 0n;
  /** The history by which it was told what should run; null before that. */
  #toldBy: string | null = null;

  constructor(feed: WorkFeed, clock: Clock) {
    this.#feed = feed;
    this.#clock = clock;
  }

  /** The digest that the last report told; 0 before the first. */
  get toldDigest(): bigint {
    return this.#toldDigest;
  }

  /** The frames of a report: of all executions for null. */
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

  /** @param openOutput opens a call that brings output. */
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

  /** The stream has ended: what is read of output ends too. */
  end(): void {
    this.#reading.abort(new Error("the stream has ended"));
  }

  /** A server that names no history is one of before: the history that it has told of is meant. */
  #ended(end: SessionEnd): void {
    if (!isCastOut(end)) return;
    const by = end.castOutBy ?? this.#toldBy;
    if (by !== null) this.#feed.castOut(by);
  }

  /** The executions of all reports up to one, which are in the record. */
  #acknowledged(upTo: number): readonly string[] {
    const ids = new Set<string>();
    for (const [number, named] of this.#unacknowledged) {
      if (number > upTo) continue;
      for (const id of named) ids.add(id);
      this.#unacknowledged.delete(number);
    }
    return [...ids];
  }

  /** Output is sent on a separate call. */
  #sendOutput(request: LogRequest, openOutput: () => OutputCall): void {
    // A server stays below this limit. One that lost track of its readings is refused at little cost.
    if (this.#readings >= 2 * MOST_READINGS) return;
    this.#readings += 1;
    const call = openOutput();
    const services = { source: this.#feed.output, clock: this.#clock };
    const answering =
      this.#readings > MOST_READINGS
        ? refuseOutput(request, MOST_READINGS, call)
        : sendOutput(request, services, call, this.#reading.signal);
    answering
      // The reader was told; the keeper's connection has its own line in the log.
      .catch(() => {})
      .finally(() => {
        this.#readings -= 1;
      });
  }
}
