import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Welcome } from "@rollcall/api/rollcall/health/v1/health_pb";
import { explainTlsError, type TlsOption } from "@rollcall/domain";
import type { Logger } from "@rollcall/process";
import type { SessionEnd } from "../stream/session-end.ts";
import { isDecision, type NextStep } from "./next-step.ts";

/** The minimum clock skew to log, although nothing depends on the clock. */
const NOTABLE_SKEW_MS = 60_000;

/** Logs what happens to an agent's connection, in lines that a person can act on. */
export class ConnectionLog {
  readonly #log: Logger;
  readonly #wallMs: () => number;
  #wasConnected = false;
  #lastTrouble = "";

  constructor(log: Logger, wallMs: () => number) {
    this.#log = log;
    this.#wallMs = wallMs;
  }

  connected(endpoint: string, welcome: Welcome, membership: string | undefined): void {
    this.#wasConnected = true;
    this.#lastTrouble = "";
    const session_epoch = String(welcome.sessionEpoch);
    this.#log.info({ endpoint, session_epoch, membership }, "connected");
    if (membership === "PENDING") this.#log.info({}, "waiting for an operator's approval");
    if (welcome.serverTime === undefined) return;
    const skewMs = Math.round(this.#wallMs() - timestampMs(welcome.serverTime));
    if (Math.abs(skewMs) >= NOTABLE_SKEW_MS) {
      this.#log.warn({ skew_ms: skewMs }, "this machine's clock differs from the server's");
    }
  }

  /**
   * Log an end and the next step. A repeated problem is logged once, then only at debug level, unless a
   * person must decide.
   */
  ended(end: SessionEnd, step: NextStep): void {
    const fields = describe(end);
    if (step.kind === "idle") {
      this.#log.error(fields, "node was deleted, idle until the agent is restarted");
      return;
    }
    const trouble = `${fields.reason} ${fields.detail}`;
    const isNew = this.#wasConnected || trouble !== this.#lastTrouble || isDecision(end);
    const message = this.#wasConnected ? "connection lost" : "connection failed";
    this.#wasConnected = false;
    this.#lastTrouble = trouble;
    const write = isNew ? this.#log.warn : this.#log.debug;
    write.call(this.#log, { ...fields, retry_in_ms: step.delayMs }, message);
  }

  moving(reason: string): void {
    this.#log.info({ reason }, "server asks to move to another replica");
  }
}

function describe(end: SessionEnd): { readonly reason: string; readonly detail: string } {
  switch (end.kind) {
    case "unreachable":
      return { reason: "UNREACHABLE", detail: explained(end.message) };
    case "silent":
      return { reason: "NO_ACKS", detail: "the server stopped acknowledging heartbeats" };
    case "refused":
      return { reason: end.reason ?? "ENDED", detail: withHint(end.message, HINTS.get(end.reason ?? "")) };
    case "left":
      return { reason: "LEFT", detail: "" };
  }
}

/** Options and commands that help after a refusal whose message does not name them. */
const HINTS: ReadonlyMap<string, string> = new Map([
  [
    "JOIN_TOKEN_REQUIRED",
    "create one with `rollcall token create`; pass it with --join-token or ROLLCALL_JOIN_TOKEN_FILE",
  ],
  ...["INVALID", "EXPIRED", "REVOKED", "USED_UP", "NAME_MISMATCH", "WRONG_CLUSTER"].map(
    (why) => [`JOIN_TOKEN_${why}`, "create one with `rollcall token create`"] as const,
  ),
  ["NODE_KEY_MISMATCH", "delete a node with `rollcall node delete`"],
  ["NODE_ID_CONFUSABLE", "delete a node with `rollcall node delete`"],
  ["TLS_REQUIRED", "pass --ca-file if this machine does not trust the authority"],
  ["CLIENT_CERTIFICATE_REQUIRED", "pass one with --client-cert and --client-key"],
]);

const TLS_FLAGS: Readonly<Record<TlsOption, string>> = {
  authority: "--ca-fingerprint or --ca-file",
  "server-name": "--tls-server-name",
  "client-certificate": "--client-cert, --client-key",
};

/** Put OpenSSL's own message last, because the problem and the advice are clearer. */
function explained(message: string): string {
  const trouble = explainTlsError(message);
  if (trouble === null) return message;
  const { problem, advice, option } = trouble;
  const what = withHint(advice, option === undefined ? undefined : TLS_FLAGS[option]);
  return `the server was reached, but ${problem}: ${what} (${message})`;
}

function withHint(text: string, hint: string | undefined): string {
  return hint === undefined ? text : `${text} (${hint})`;
}
