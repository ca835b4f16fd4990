import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { explainTlsError, type TlsOption } from "@rollcall/domain";
import { systemCodeOf } from "../failure.ts";
import { reasonNamed, refusalHint } from "../hints.ts";
import { printable } from "../output/text.ts";
import { formatExactDuration } from "../output/units.ts";
import { displayAddress, isLoopback, type ServiceName } from "./addresses.ts";

const NETWORK_HINTS: Readonly<Record<string, string>> = {
  ENOTFOUND: "check the host name; --server or ROLLCALL_SERVER names another address",
  EAI_AGAIN: "check the name servers of this machine, or use an address",
};

const TLS_FLAGS: Readonly<Record<TlsOption, string>> = {
  authority: "--ca-file, or `rollcall login --ca-fingerprint`",
  "server-name": "--tls-server-name",
  "client-certificate": "--client-cert, --client-key",
};

function reachHint({ service, baseUrl }: Callee): string {
  const others = `--server or ROLLCALL_SERVER names another address, --${service} that of ${service} alone`;
  return isLoopback(baseUrl)
    ? `\`rollcall up\` starts a control plane here; ${others}`
    : `check that the control plane runs there and that no firewall is in the way; ${others}`;
}

/** The service that a call was for. */
export interface Callee {
  readonly service: ServiceName;
  readonly baseUrl: string;
  /** How long the call could have taken. */
  readonly timeoutMs: number;
}

const NETWORK_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was closed",
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the host name cannot be resolved at the moment",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the network",
  ETIMEDOUT: "the connection timed out",
};

/** Whether the server does not have the method that was called. */
export function isUnknownMethod(error: unknown): boolean {
  return ConnectError.from(error).findDetails(ErrorInfoSchema)[0]?.reason === "UNKNOWN_METHOD";
}

/** Say in one line, and hints on further lines, why a call failed and what to do next. */
export function describeFailure(error: unknown, callee: Callee): string {
  const failure = ConnectError.from(error);
  const trouble = explainTlsError(tlsTextOf(failure));
  if (trouble !== null) {
    return lines([
      `cannot speak to the ${callee.service} service at ${displayAddress(callee.baseUrl)}: ${trouble.problem}`,
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
      `what answers at ${displayAddress(callee.baseUrl)} is not the ${callee.service} service (${failure.rawMessage})`,
      "hint: --server or ROLLCALL_SERVER names another address",
    ]);
  }
  if (failure.code === Code.DeadlineExceeded && reason === undefined) {
    return lines([
      `no answer from the ${callee.service} service at ${displayAddress(callee.baseUrl)} within ` +
        `${formatExactDuration(callee.timeoutMs)}`,
      "hint: --timeout waits longer",
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

/** Whether the server's certificate is of an authority that is not trusted here. */
export function isDistrust(error: unknown): boolean {
  return explainTlsError(tlsTextOf(ConnectError.from(error)))?.option === "authority";
}

/** Only what this side's TLS says: a server's own words are not searched. */
function tlsTextOf({ cause }: ConnectError): string {
  if (typeof cause !== "object" || cause === null || !("code" in cause)) return "";
  return `${cause.code} ${"message" in cause ? cause.message : ""}`;
}

/** The first line alone, for warnings that must not take more. */
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

/** One violation alone is often the message itself, or its end; each is cut to a length of its own. */
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
    "hint: `rollcall login` keeps an access token, --token-file, ROLLCALL_TOKEN or ROLLCALL_TOKEN_FILE names " +
      "one; the one of `rollcall up` is in its data directory (ROLLCALL_DATA_DIR, ./.rollcall, ~/.rollcall, " +
      "or /var/lib/rollcall for root)",
  ];
}
