import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { explainTlsError, type TlsOption } from "@rollcall/domain";
import { systemCodeOf } from "../failure.ts";
import { reasonNamed, refusalHint } from "../hints.ts";
import { printable } from "../output/text.ts";
import { formatExactDuration } from "../output/units.ts";
import { displayAddress, isLoopback, type ServiceName } from "./addresses.ts";

const NETWORK_HINTS: Readonly<Record<string, string>> = {
  ENOTFOUND: "check the host name; use --server or ROLLCALL_SERVER for another address",
  EAI_AGAIN: "check this machine's name servers, or use an IP address",
};

const TLS_FLAGS: Readonly<Record<TlsOption, string>> = {
  authority: "--ca-file, or `rollcall login --ca-fingerprint`",
  "server-name": "--tls-server-name",
  "client-certificate": "--client-cert, --client-key",
};

function reachHint({ service, baseUrl }: Callee): string {
  const others = `use --server or ROLLCALL_SERVER for another address, or --${service} for ${service} only`;
  return isLoopback(baseUrl)
    ? `\`rollcall up\` starts a control plane here; ${others}`
    : `check that the control plane runs there and that no firewall blocks it; ${others}`;
}

/** The service that was called. */
export interface Callee {
  readonly service: ServiceName;
  readonly baseUrl: string;
  /** The timeout of the call. */
  readonly timeoutMs: number;
}

const NETWORK_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was closed",
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the host name cannot be resolved at present",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the network",
  ETIMEDOUT: "the connection timed out",
};

/** Whether the server lacks the method that was called. */
export function isUnknownMethod(error: unknown): boolean {
  return ConnectError.from(error).findDetails(ErrorInfoSchema)[0]?.reason === "UNKNOWN_METHOD";
}

/**
 * Whether the result of a call is unknown: it got no response, or the control plane could not decide it because the
 * call took too long or the database is unreachable. A refused call has a known result, even one refused by a busy
 * server: nothing changed.
 */
export function isUnreached(error: unknown): boolean {
  const failure = ConnectError.from(error);
  if (explainTlsError(tlsTextOf(failure)) !== null || systemCodeOf(failure.cause) !== null) return true;
  const reason = failure.findDetails(ErrorInfoSchema)[0]?.reason;
  if (reason === undefined && /^HTTP \d{3}$/.test(failure.rawMessage)) return true;
  // LOG_UNAVAILABLE is a known result, because it means that the node cannot send the output.
  return UNDECIDED.has(failure.code) && reasonNamed(reason ?? "") !== ErrorReason.LOG_UNAVAILABLE;
}

/** Codes of proxies, of the client itself, and of a control plane that could not finish the call. */
const UNDECIDED: ReadonlySet<Code> = new Set([Code.Unavailable, Code.DeadlineExceeded]);

/** Explain why a call failed and what to do next: one line, and hints on further lines. */
export function describeFailure(error: unknown, callee: Callee): string {
  const failure = ConnectError.from(error);
  const trouble = explainTlsError(tlsTextOf(failure));
  if (trouble !== null) {
    return lines([
      `TLS failed with the ${callee.service} service at ${displayAddress(callee.baseUrl)}: ${trouble.problem}`,
      `hint: ${trouble.advice}${trouble.option === undefined ? "" : ` (${TLS_FLAGS[trouble.option]})`}`,
    ]);
  }
  const network = systemCodeOf(failure.cause);
  if (network !== null) {
    const why = NETWORK_ERRORS[network] ?? network;
    return lines([
      `cannot reach the ${callee.service} service at ${displayAddress(callee.baseUrl)}: ${why}`,
      `hint: ${NETWORK_HINTS[network] ?? reachHint(callee)}`,
    ]);
  }
  const info = failure.findDetails(ErrorInfoSchema)[0];
  const reason = info?.reason;
  if (reason === undefined && /^HTTP \d{3}$/.test(failure.rawMessage)) {
    return lines([
      `the server at ${displayAddress(callee.baseUrl)} is not the ${callee.service} service (${failure.rawMessage})`,
      "hint: use --server or ROLLCALL_SERVER for another address",
    ]);
  }
  if (failure.code === Code.DeadlineExceeded && reason === undefined) {
    return lines([
      `no answer from the ${callee.service} service at ${displayAddress(callee.baseUrl)} within ` +
        `${formatExactDuration(callee.timeoutMs)}`,
      "hint: use --timeout to wait longer",
    ]);
  }
  return lines([
    failure.rawMessage === "" ? Code[failure.code] : failure.rawMessage,
    ...violationsOf(failure),
    ...retryHint(failure),
    ...(info === undefined ? [] : hintLines(info.reason, info.metadata)),
    ...tokenHint(failure),
  ]);
}

/** Whether the user may have meant a control plane with another data directory on this machine. */
export function mayBeElsewhere(error: unknown, baseUrl: string): boolean {
  const { code, cause } = ConnectError.from(error);
  return isLoopback(baseUrl) && (code === Code.Unauthenticated || systemCodeOf(cause) === "ECONNREFUSED");
}

/** Whether the server's certificate is from an authority that this machine does not trust. */
export function isDistrust(error: unknown): boolean {
  return explainTlsError(tlsTextOf(ConnectError.from(error)))?.option === "authority";
}

/** Return the text of the local TLS library, never the server's text. */
function tlsTextOf({ cause }: ConnectError): string {
  if (typeof cause !== "object" || cause === null || !("code" in cause)) return "";
  return `${cause.code} ${"message" in cause ? cause.message : ""}`;
}

/** Explain why a call failed in one line, for warnings. */
export function describeBriefly(error: unknown, callee: Callee): string {
  return describeFailure(error, callee).split("\n", 1)[0] ?? "";
}

function lines(parts: readonly string[]): string {
  return parts.map((part) => printable(part)).join("\n");
}

function violationsOf(failure: ConnectError): string[] {
  return failure
    .findDetails(BadRequestSchema)
    .flatMap((details) => details.fieldViolations)
    .filter(({ description }) => !isSaidBy(failure.rawMessage, description))
    .map(({ field, description }) => `  ${field}: ${description}`);
}

/**
 * Whether the message already contains a violation's description. A single violation is often the whole message or its
 * end. The server truncates message and description separately.
 */
function isSaidBy(message: string, description: string): boolean {
  return message.endsWith(description) || (description.endsWith("...") && message.includes(description.slice(0, -3)));
}

function retryHint(failure: ConnectError): string[] {
  const delay = failure.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return delay === undefined ? [] : [`hint: try again in ${formatExactDuration(durationMs(delay))}`];
}

function hintLines(reason: string, metadata: Readonly<Record<string, string>>): string[] {
  const hint = refusalHint(reasonNamed(reason), metadata);
  return hint === null ? [] : [`hint: ${hint}`];
}

function tokenHint(failure: ConnectError): string[] {
  if (failure.code !== Code.Unauthenticated) return [];
  return [
    "hint: run `rollcall login`, or pass --token-file, ROLLCALL_TOKEN or ROLLCALL_TOKEN_FILE; " +
      "the token of `rollcall up` is in its data directory (ROLLCALL_DATA_DIR, ./.rollcall, ~/.rollcall, " +
      "or /var/lib/rollcall for root)",
  ];
}
