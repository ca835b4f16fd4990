import type { Settings } from "@rollcall/api/rollcall/health/v1/health_pb";
import { describeError } from "@rollcall/errors";
import { type Clock, fullJitter, type Logger } from "@rollcall/process";
import type { Registrar } from "../registration/registrar.ts";
import { type AgentIdentity, toMs } from "../stream/hello.ts";

export interface KeyRotationOptions {
  readonly identity: AgentIdentity;
  readonly registrar: Registrar;
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns numbers in [0, 1), for jitter. */
  readonly random: () => number;
  /** The age at which the key is rotated without an operator's request; 0 for never. */
  readonly intervalMs: number;
  /** When the current key was created, by this machine's wall clock. */
  readonly keyMadeAtMs: number;
  /**
   * Called when the server has accepted the next key. The callback opens a stream with it, which is the key's first
   * use.
   */
  readonly onOffered: () => void;
}

const BACKOFF_BASE_MS = 1_000;
const BACKOFF_MAX_MS = 300_000;
/**
 * How long to wait until a stream with the next key is open. After that, the offer is repeated and signed with the
 * next key, and this signature also counts as the key's use.
 */
const USE_WITHIN_MS = 15_000;
const LONGEST_WAIT_MS = 86_400_000;

/**
 * Rotates the node's key when an operator requests it or the key is old enough, and resumes a rotation that a crash
 * interrupted.
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

  /** Apply the server's settings. They repeat the request for a rotation until the rotation is done. */
  heed({ rotateKeyWithin }: Settings): void {
    if (rotateKeyWithin === undefined) {
      this.#dueAtMs = undefined;
      return;
    }
    const { clock, random } = this.#options;
    this.#dueAtMs ??= clock.nowMs() + random() * toMs(rotateKeyWithin);
    this.#wake.abort();
  }

  /** Run until the signal aborts. */
  async run(signal: AbortSignal, succeeded: () => void = () => {}): Promise<void> {
    // Do not use a Loop, because the waits differ in length.
    while (!signal.aborted) {
      const waitMs = this.#waitMs();
      if (waitMs > 0) {
        await this.#wait(waitMs, signal);
        continue;
      }
      if (await this.#rotate(signal)) succeeded();
    }
  }

  /** Time until the next rotation; infinite if none is planned. */
  #waitMs(): number {
    const { identity, clock, intervalMs } = this.#options;
    if (identity.keys.phase !== "settled") return 0;
    const dueMs = this.#dueAtMs === undefined ? Infinity : this.#dueAtMs - clock.nowMs();
    if (intervalMs === 0) return dueMs;
    const ageMs = Math.max(0, clock.wallMs() - this.#madeAtMs);
    // Limit the wait, because timers cannot be set months ahead.
    return Math.min(dueMs, intervalMs - ageMs, LONGEST_WAIT_MS);
  }

  /** Offer the next key, and wait until it is used. Returns whether the server responded. */
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
      // Retry immediately with the other key, because the server may have accepted that key although its response
      // was lost.
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

  /** Called when the next key has become the node's key, by a rotation or otherwise. */
  used(): void {
    this.#dueAtMs = undefined;
    this.#madeAtMs = this.#options.clock.wallMs();
    this.#wake.abort();
  }

  #backoffMs(): number {
    const { random } = this.#options;
    const limits = { baseMs: BACKOFF_BASE_MS, maxMs: BACKOFF_MAX_MS };
    // Never wait 0 ms, because the agent would then ask the registry in a tight loop.
    const spreadMs = fullJitter({ attempt: this.#failures, ...limits, random01: random() });
    return BACKOFF_BASE_MS + spreadMs;
  }

  /** Resolves after the time, or earlier if something changes or the signal aborts. */
  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#wake = new AbortController();
    const either = AbortSignal.any([signal, this.#wake.signal]);
    if (ms === Infinity) {
      await new Promise((resolve) => either.addEventListener("abort", resolve, { once: true }));
    } else {
      // Ignore the rejection, because sleep() rejects only on an abort, after which the caller checks the state
      // again.
      await this.#options.clock.sleep(ms, either).catch(() => {});
    }
  }
}
