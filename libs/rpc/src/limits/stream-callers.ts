import { type ErrorReasonName, reasonOf, refuse } from "@rollcall/errors";
import type { Authenticator, IdentifiedCaller, Role } from "@rollcall/identity";
import type { Clock } from "@rollcall/process";
import { findCaller } from "../calls/find-caller.ts";

/** An open stream of a method that requires a role. */
export interface OpenStream {
  /** The authorization header of the stream's request. */
  readonly authorization: string;
  /** The caller at the last check. It can change, because using a session extends its expiry. */
  caller: IdentifiedCaller;
  /** The role that the stream's method requires. */
  readonly needs: Role;
  /** Ends the stream. Aborted with the reason when the caller has lost its access. */
  readonly ending: AbortController;
}

export interface StreamCallersOptions {
  readonly authenticate: Authenticator;
  readonly clock: Pick<Clock, "wallMs">;
  /** How often to check the callers. Default 1 s. */
  readonly everyMs?: number;
}

const DEFAULT_EVERY_MS = 1_000;

/**
 * Reasons that show for certain that a caller has lost its access. After any other error, the caller may still
 * have access.
 */
const FINAL: ReadonlySet<ErrorReasonName | undefined> = new Set<ErrorReasonName>([
  "TOKEN_INVALID",
  "TOKEN_EXPIRED",
  "TOKEN_REVOKED",
  "ROLE_TOO_LOW",
]);

/**
 * Checks the callers of a server's streams. About once a second, each caller is authenticated again, with one
 * check for all streams of the caller. If a caller has lost its access, its streams are ended. While the store is
 * unavailable, streams continue until their token expires.
 */
export class StreamCallers {
  readonly #options: StreamCallersOptions;
  readonly #streams = new Set<OpenStream>();
  #timer: NodeJS.Timeout | null = null;
  #isChecking = false;

  constructor(options: StreamCallersOptions) {
    this.#options = options;
  }

  /** Check a stream until the returned function is called. */
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
    // Do not query a slow store twice at the same time.
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

  /** Check streams of one caller that have the same token, and whose methods require the same role. */
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
