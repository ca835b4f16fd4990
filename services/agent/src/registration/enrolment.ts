import type { MembershipState } from "@rollcall/domain";
import { describeError } from "@rollcall/errors";
import type { NodeKeyPair } from "@rollcall/identity";
import type { Logger } from "@rollcall/process";
import type { NodeInfoKeeper } from "../info/node-info-keeper.ts";
import type { Sentinel } from "../state/sentinel.ts";
import type { StateDirectory } from "../state/state-directory.ts";
import type { AgentIdentity } from "../stream/hello.ts";
import type { SessionEnd } from "../stream/session-end.ts";
import { JoinTokenError, type JoinTokenSource, NO_JOIN_TOKEN } from "./join-token.ts";
import type { Registrar } from "./registrar.ts";

export interface EnrolmentOptions {
  readonly identity: AgentIdentity;
  readonly state: Pick<StateDirectory, "readSentinel" | "writeSentinel" | "removeSentinel">;
  readonly registrar: Registrar;
  readonly info: NodeInfoKeeper;
  readonly log: Logger;
  /** Where the join token comes from. Default: no token. */
  readonly joinToken?: JoinTokenSource;
}

/** The result of a registration. */
export type RegistrationOutcome =
  | { readonly ok: true; readonly membership: MembershipState | undefined; readonly endpoints: readonly string[] }
  | { readonly ok: false; readonly end: SessionEnd };

/** The node's registration, and the sentinel that remembers it. Problems with the file never block the agent. */
export class Enrolment {
  readonly #options: EnrolmentOptions;
  #sentinel: Sentinel | undefined;

  constructor(options: EnrolmentOptions) {
    this.#options = options;
  }

  /** The remembered registration. */
  get sentinel(): Sentinel | undefined {
    return this.#sentinel;
  }

  /** Read the sentinel of an earlier run. A sentinel of another node or key is ignored. */
  async load(): Promise<void> {
    const found = await this.#attempt("sentinel cannot be read", () => this.#options.state.readSentinel());
    const { nodeId, keys } = this.#options.identity;
    const isOwn = found?.nodeId === nodeId && keys.has(found.keyFingerprint);
    this.#sentinel = isOwn ? found : undefined;
  }

  /** Register, and remember the registration. */
  async register(signal: AbortSignal): Promise<RegistrationOutcome> {
    const { keys } = this.#options.identity;
    const keyPair = keys.toUse();
    const outcome = await this.#registerWith(keyPair, signal);
    // Retry with the other key, because during a rotation, the server may have accepted that key although its
    // response was lost.
    if (!isKeyRefused(outcome) || !keys.refused(keyPair)) return outcome;
    return this.#registerWith(keys.toUse(), signal);
  }

  async #registerWith(keyPair: NodeKeyPair, signal: AbortSignal): Promise<RegistrationOutcome> {
    const { identity, registrar, info, log } = this.#options;
    const { nodeId, keys } = identity;
    try {
      const snapshot = await info.current();
      const joinToken = await this.#joinToken();
      const registration = { nodeId, keyPair, info: snapshot.info, joinToken };
      const answer = await registrar.register(registration, signal);
      const { clusterId, membership, created } = answer;
      await keys.accepted(keyPair);
      log.info({ cluster_id: clusterId, membership, created }, "registered");
      const { healthEndpoints: endpoints } = answer;
      // A control plane without health replicas returns no endpoints. In that case, keep the previous ones as the
      // best guess.
      const known = this.#sentinel?.healthEndpoints ?? [];
      await this.remember(clusterId, endpoints.length > 0 ? endpoints : known);
      return { ok: true, membership, endpoints };
    } catch (error) {
      return { ok: false, end: signal.aborted ? { kind: "left" } : endOfRegistration(error) };
    }
  }

  /** Store the cluster and the endpoints for streams, if they have changed. */
  async remember(clusterId: string, healthEndpoints: readonly string[]): Promise<void> {
    const { nodeId, keys } = this.#options.identity;
    const next = { nodeId, keyFingerprint: keys.fingerprint, clusterId, healthEndpoints };
    const isKnown = JSON.stringify(next) === JSON.stringify(this.#sentinel);
    this.#sentinel = next;
    if (isKnown || healthEndpoints.length === 0) return;
    await this.#attempt("sentinel cannot be written", () => this.#options.state.writeSentinel(next));
  }

  /** Forget the registration, so that the next start registers again. */
  async forget(): Promise<void> {
    this.#sentinel = undefined;
    await this.#attempt("sentinel cannot be removed", () => this.#options.state.removeSentinel());
  }

  async #joinToken(): Promise<string> {
    const { joinToken = NO_JOIN_TOKEN, log } = this.#options;
    try {
      return await joinToken();
    } catch (error) {
      // Fail only on a new machine, which must not register without the rights that its token grants. A
      // registered machine no longer needs its token.
      if (!(error instanceof JoinTokenError) || this.#sentinel === undefined) throw error;
      log.debug({ err: error }, "registering without a join token");
      return "";
    }
  }

  async #attempt<T>(message: string, run: () => Promise<T>): Promise<T | undefined> {
    try {
      return await run();
    } catch (error) {
      // Only log the error, because the agent can continue without the file. It then registers again at its next
      // start.
      this.#options.log.warn({ err: error }, message);
      return undefined;
    }
  }
}

function isKeyRefused(outcome: RegistrationOutcome): boolean {
  if (outcome.ok || outcome.end.kind !== "refused") return false;
  return outcome.end.reason === "NODE_KEY_MISMATCH";
}

function endOfRegistration(error: unknown): SessionEnd {
  if (error instanceof JoinTokenError) return { kind: "unreachable", message: error.message };
  const { reason, message, retryAfterMs, metadata } = describeError(error);
  return reason === undefined
    ? { kind: "unreachable", message }
    : { kind: "refused", reason, message, retryAfterMs, action: undefined, castOutBy: metadata.logId };
}
