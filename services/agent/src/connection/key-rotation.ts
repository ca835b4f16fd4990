import type { Settings } from "@rollcall/api/rollcall/health/v1/health_pb";
import { describeError } from "@rollcall/errors";
import { type Clock, fullJitter, type Logger } from "@rollcall/process";
import type { Registrar } from "../registration/registrar.ts";
import { type AgentIdentity, toMs } from "../stream/hello.ts";

/** What a rotation works with. */
export interface KeyRotationOptions {
  readonly identity: AgentIdentity;
  readonly registrar: Registrar;
  readonly clock: Clock;
  readonly log: Logger;
  /** Numbers from 0 to less than 1, for jitter. */
  readonly random: () => number;
  /** The age at which the key is rotated without an operator's request; 0 for never. */
  readonly intervalMs: number;
  /** When the present key was made, by this machine's wall clock. */
  readonly keyMadeAtMs: number;
  /** Called when the server has the next key: open a stream with it, which is its first use. */
  readonly onOffered: () => void;
}

const BACKOFF_BASE_MS = 1_000;
const BACKOFF_MAX_MS = 300_000;
/**
 * A stream with the next key should be open by then. If it is not, the offer is made again, signed with the next key:
 * that is a use too.
 */
const USE_WITHIN_MS = 15_000;
const LONGEST_WAIT_MS = 86_400_000;

/**
 * Rotates the node's key when an operator wants it or its age calls for it, and goes on with a rotation that a crash
 * cut short.
 */
export class KeyRotation {
  readonly #options: KeyRotationOptions;
  #dueAtMs: number | undefined;
  #madeAtMs: number;
  #failures = 0;
  #wake = new AbortController();

  constructor(options: KeyRotationOptions) {
    this.#options = options;
    this.#madeAtMs = options.keyMadeAtMs;
  }

  /** Note what the server's settings say; they say it for as long as the rotation is wanted. */
  heed({ rotateKeyWithin }: Settings): void {
    if (rotateKeyWithin === undefined) {
      this.#dueAtMs = undefined;
      return;
    }
    const { clock, random } = this.#options;
    this.#dueAtMs ??= clock.nowMs() + random() * toMs(rotateKeyWithin);
    this.#wake.abort();
  }

  /** Work until the signal aborts. */
  async run(signal: AbortSignal, succeeded: () => void = () => {}): Promise<void> {
    // Not a Loop: each wait has a length of its own.
    while (!signal.aborted) {
      const waitMs = this.#waitMs();
      if (waitMs > 0) {
        await this.#wait(waitMs, signal);
        continue;
      }
      if (await this.#rotate(signal)) succeeded();
    }
  }

  /** Time until there is something to do; infinite when nothing is in sight. */
  #waitMs(): number {
    const { identity, clock, intervalMs } = this.#options;
    if (identity.keys.phase !== "settled") return 0;
    const dueMs = this.#dueAtMs === undefined ? Infinity : this.#dueAtMs - clock.nowMs();
    if (intervalMs === 0) return dueMs;
    const ageMs = Math.max(0, clock.wallMs() - this.#madeAtMs);
    // A timer cannot be set for months.
    return Math.min(dueMs, intervalMs - ageMs, LONGEST_WAIT_MS);
  }

  /** Offer the next key, and see it used. Whether the server had an answer. */
  async #rotate(signal: AbortSignal): Promise<boolean> {
    const { identity, registrar, log, onOffered } = this.#options;
    const { keys, nodeId } = identity;
    if (keys.phase === "settled") log.info({}, "rotating the key");
    const keyPair = keys.toUse();
    try {
      const next = await keys.prepareNext();
      const answer = await registrar.rotateKey({ nodeId, keyPair, next }, signal);
      await keys.answered(answer);
    } catch (error) {
      if (signal.aborted) return false;
      const { reason, message } = describeError(error);
      const isOther = reason === "PROOF_INVALID" && keys.refused(keyPair);
      // With the other key it is tried at once: the server may have taken that one before its answer was lost.
      const waitMs = isOther && this.#failures === 0 ? 0 : this.#backoffMs();
      this.#failures += 1;
      log.warn({ reason, detail: message, retry_in_ms: waitMs }, "key cannot be rotated");
      await this.#wait(waitMs, signal);
      return false;
    }
    this.#failures = 0;
    if (keys.phase === "offered") {
      onOffered();
      await this.#wait(USE_WITHIN_MS, signal);
    }
    if (keys.phase === "settled") this.used();
    return true;
  }

  /** The next key is the node's key now, however that came about. */
  used(): void {
    this.#dueAtMs = undefined;
    this.#madeAtMs = this.#options.clock.wallMs();
    this.#wake.abort();
  }

  #backoffMs(): number {
    const { random } = this.#options;
    const limits = { baseMs: BACKOFF_BASE_MS, maxMs: BACKOFF_MAX_MS };
    // Never nothing: the registry would be asked in a tight loop.
    const spreadMs = fullJitter({ attempt: this.#failures, ...limits, random01: random() });
    return BACKOFF_BASE_MS + spreadMs;
  }

  /** Resolves after the time, or earlier when something has changed or the signal aborts. */
  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#wake = new AbortController();
    const either = AbortSignal.any([signal, this.#wake.signal]);
    if (ms === Infinity) {
      await new Promise((resolve) => either.addEventListener("abort", resolve, { once: true }));
    } else {
      // Rejects with the abort alone, after which the caller looks at how things are.
      await this.#options.clock.sleep(ms, either).catch(() => {});
    }
  }
}
