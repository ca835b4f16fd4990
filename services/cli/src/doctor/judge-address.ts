import { explainTlsError } from "@rollcall/domain";
import { formatDuration } from "../output/units.ts";
import { type Finding, finding, fine } from "./finding.ts";
import type { Probe } from "./probe-address.ts";

const WHY: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was reset",
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the host name cannot be resolved at the moment",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the network",
  ETIMEDOUT: "no answer",
};

const NAME_ADVICE = "correct the name, or mend the name servers of this machine";
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: "start what should listen there, or correct the address",
  ENOTFOUND: NAME_ADVICE,
  EAI_AGAIN: NAME_ADVICE,
};
const OTHER_NETWORK: ReadonlySet<string> = new Set(["ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND"]);
const FIREWALL = "check the firewalls on the way, and that the server listens on this interface (Listen.Host)";

const DAY_MS = 86_400_000;
/** What renews certificates does so weeks before. */
const WARN_BEFORE_MS = 14 * DAY_MS;
const PROBLEM_BEFORE_MS = 3 * DAY_MS;
const RENEW =
  "renew it, and write the new files over those of TLS.CertFile and TLS.KeyFile: they are taken within seconds";

/** Judge the outcome of connecting to an address, and the certificate that was shown there. */
export function judgeAddress(check: "address" | "agents-port", probe: Probe, nowMs: number): readonly Finding[] {
  const { subject, failure, certificate, isTls, host } = probe;
  const about = { check, subject };
  if (failure !== null) {
    const trouble = explainTlsError(failure);
    if (trouble !== null) return [finding("problem", about, trouble.problem, trouble.advice)];
    const why = WHY[failure] ?? failure;
    // Agents may be on a network of their own, as the pods of a cluster are.
    const isElsewhere = check === "agents-port" && OTHER_NETWORK.has(failure);
    return [
      finding(isElsewhere ? "unknown" : "problem", about, `cannot be reached: ${why}`, ADVICE[failure] ?? FIREWALL),
    ];
  }
  if (!isTls) {
    if (isLoopback(host)) return [fine(check, subject, "answers, in clear text on this machine")];
    const advice = "set TLS.CertFile and TLS.KeyFile, unless the network encrypts by itself";
    return [finding("warning", about, "answers in clear text: tokens can be read on the way", advice)];
  }
  if (certificate === null) return [fine(check, subject, "answers over TLS")];
  const reached = fine(check, subject, `answers over TLS, with ${certificate.chain} certificates`);
  return [reached, ...judgeTrust(subject, certificate.distrust), judgeExpiry(subject, certificate.endsAtMs, nowMs)];
}

function judgeTrust(subject: string, distrust: string): readonly Finding[] {
  if (distrust === "") return [];
  const trouble = explainTlsError(distrust);
  const advice = trouble?.advice ?? "check the chain of TLS.CertFile, and which authority clients trust (--ca-file)";
  return [finding("problem", { check: "tls-chain", subject }, trouble?.problem ?? distrust, advice)];
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Judge when a certificate ends. */
export function judgeExpiry(subject: string, endsAtMs: number, nowMs: number): Finding {
  const about = { check: "certificate", subject };
  const leftMs = endsAtMs - nowMs;
  const day = new Date(endsAtMs).toISOString();
  if (leftMs <= 0) {
    return finding("problem", about, `expired at ${day}: agents and clients refuse the server`, RENEW);
  }
  const found = `expires in ${formatDuration(leftMs)}, at ${day}`;
  if (leftMs < PROBLEM_BEFORE_MS) return finding("problem", about, found, RENEW);
  if (leftMs < WARN_BEFORE_MS) return finding("warning", about, found, `check what renews it; ${RENEW}`);
  return fine(about.check, subject, found);
}
