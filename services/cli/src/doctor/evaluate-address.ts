import { explainTlsError } from "@rollcall/domain";
import { formatDuration } from "../output/units.ts";
import { type Finding, finding, fine } from "./finding.ts";
import { NO_ANSWER, type Probe } from "./probe-address.ts";

const WHY: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was reset",
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the host name cannot be resolved at present",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the network",
  ETIMEDOUT: "no answer",
};

const NAME_ADVICE = "correct the name, or fix this machine's name servers";
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: "start the server that should listen there, or correct the address",
  ENOTFOUND: NAME_ADVICE,
  EAI_AGAIN: NAME_ADVICE,
};
const OTHER_NETWORK: ReadonlySet<string> = new Set(["ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND"]);
const FIREWALL = "check the firewalls in between, and that the server listens on this interface (Listen.Host)";

const DAY_MS = 86_400_000;
/** How long before its expiry to warn about a certificate. Certificates are usually renewed weeks earlier. */
const WARN_BEFORE_MS = 14 * DAY_MS;
const PROBLEM_BEFORE_MS = 3 * DAY_MS;
const RENEW = "renew it, and replace the files of TLS.CertFile and TLS.KeyFile: they are reloaded within seconds";

/** Evaluate the connection to an address, and the certificate that the server presented. */
export function evaluateAddress(check: "address" | "agents-port", probe: Probe, nowMs: number): readonly Finding[] {
  const { subject, failure, certificate, isTls, host } = probe;
  const about = { check, subject };
  if (failure !== null) {
    if (failure === NO_ANSWER) {
      const advice = "check that the process that listens there is neither stopped nor overloaded";
      return [finding("problem", about, "accepts connections, but does not answer", advice)];
    }
    const trouble = explainTlsError(failure);
    if (trouble !== null) return [finding("problem", about, trouble.problem, trouble.advice)];
    const why = WHY[failure] ?? failure;
    // An agents' port that cannot be reached may be on a separate network, such as the pod network of a cluster.
    const isElsewhere = check === "agents-port" && OTHER_NETWORK.has(failure);
    return [
      finding(isElsewhere ? "unknown" : "problem", about, `cannot be reached: ${why}`, ADVICE[failure] ?? FIREWALL),
    ];
  }
  if (!isTls) {
    if (isLoopback(host)) return [fine(check, subject, "answers, in clear text on this machine")];
    const advice = "set TLS.CertFile and TLS.KeyFile, unless the network is encrypted";
    return [finding("warning", about, "answers in clear text: tokens can be read in transit", advice)];
  }
  if (certificate === null) return [fine(check, subject, "answers over TLS")];
  const reached = fine(check, subject, `answers over TLS, with ${certificate.chain} certificates`);
  return [
    reached,
    ...evaluateTrust(subject, certificate.distrust),
    evaluateExpiry(subject, certificate.endsAtMs, nowMs),
  ];
}

function evaluateTrust(subject: string, distrust: string): readonly Finding[] {
  if (distrust === "") return [];
  const trouble = explainTlsError(distrust);
  const advice = trouble?.advice ?? "check the chain of TLS.CertFile, and which authority clients trust (--ca-file)";
  return [finding("problem", { check: "tls-chain", subject }, trouble?.problem ?? distrust, advice)];
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Evaluate when a certificate expires. */
export function evaluateExpiry(subject: string, endsAtMs: number, nowMs: number): Finding {
  const about = { check: "certificate", subject };
  const leftMs = endsAtMs - nowMs;
  const day = new Date(endsAtMs).toISOString();
  if (leftMs <= 0) {
    return finding("problem", about, `expired on ${day}: agents and clients refuse to connect`, RENEW);
  }
  const found = `expires in ${formatDuration(leftMs)}, on ${day}`;
  if (leftMs < PROBLEM_BEFORE_MS) return finding("problem", about, found, RENEW);
  if (leftMs < WARN_BEFORE_MS)
    return finding("warning", about, found, `check why it was not renewed automatically; ${RENEW}`);
  return fine(about.check, subject, found);
}
