import { type ErrorReasonName, reasonOf, refuse } from "@rollcall/errors";
import type { Authenticator, KnownCaller, Role } from "@rollcall/identity";
import type { Clock } from "@rollcall/process";
import { findCaller } from "../calls/find-caller.ts";

/** A stream whose caller has a role. */
export interface OpenStream {
  /** The authorization header with which it was opened. */
  readonly authorization: string;
  /** Who opened it, as the last check found: the end of a session moves as it is used. */
  caller: KnownCaller;
  /** The role that its method needs. */
  readonly needs: Role;
  /** Aborted, with the reason, when the caller may not call any more. */
  readonly ending: AbortController;
}

/** What the check of streams needs. */
export interface StreamCallersOptions {
  readonly authenticate: Authenticator;
  readonly clock: Pick<Clock, "wallMs">;
  /** How often callers are asked for; 1 s. */
  readonly everyMs?: number;
}

const DEFAULT_EVERY_MS = 1_000;

/** With these the answer is final; anything else says that it cannot be known just now. */
const FINAL: ReadonlySet<ErrorReasonName | undefined> = new Set<ErrorReasonName>([
  "TOKEN_INVALID",
  "TOKEN_EXPIRED",
  "TOKEN_REVOKED",
  "ROLE_TOO_LOW",
]);

/**
 * Looks after the streams of a server: each caller is authenticated again about once a second, once however many
 * streams it has, and the streams of a caller that may no longer call are ended. While that cannot be known (the store
 * is away), streams go on until the token's own end.
 */
export class StreamCallers {
  readonly #options: StreamCallersOptions;
  readonly #streams = new Set<OpenStream>();
  #timer: NodeJS.Timeout | null = null;
  #isChecking = false;

  constructor(options: StreamCallersOptions) {
    this.#options = options;
  }

  /** Look after a stream until the answer is called. */
  join(stream: OpenStream): () => void {
    this.#streams.add(stream);
    const { everyMs = DEFAULT_EVERY_MS } = this.#options;
    this.#timer ??= setInterval(() => void this.#check(), everyMs).unref();
    return () => {
      this.#streams.delete(stream);
      if (this.#streams.size > 0 || this.#timer === null) return;
      clearInterval(this.#timer);
      this.#timer = null;
    };
  }

  async #check(): Promise<void> {
    // A record that answers slowly is not asked twice at a time.
    if (this.#isChecking) return;
    this.#isChecking = true;
    const groups = new Map<string, OpenStream[]>();
    for (const stream of this.#streams) {
      const key = `${stream.needs} ${stream.authorization}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [stream]);
      else group.push(stream);
    }
    for (const streams of groups.values()) await this.#checkGroup(streams);
    this.#isChecking = false;
  }

  /** Streams of one caller, with the same token, whose methods need the same role. */
  async #checkGroup(streams: readonly OpenStream[]): Promise<void> {
    const [first] = streams;
    if (first === undefined) return;
    const { authenticate, clock } = this.#options;
    try {
      const caller = await findCaller(first.needs, first.authorization, authenticate);
      if (caller.kind !== "anonymous") for (const stream of streams) stream.caller = caller;
    } catch (error) {
      const { expiresAtMs } = first.caller;
      const isOver = expiresAtMs !== undefined && expiresAtMs <= clock.wallMs();
      if (FINAL.has(reasonOf(error))) end(streams, error);
      else if (isOver) end(streams, refuse("TOKEN_EXPIRED", "the token of this stream has expired"));
    }
  }
}

function end(streams: readonly OpenStream[], reason: unknown): void {
  for (const { ending } of streams) ending.abort(reason);
}
