import { formatDuration } from "../output/units.ts";
import { type Finding, finding, fine } from "./finding.ts";

const DAY_MS = 86_400_000;
/** What renews certificates does so weeks before. */
const WARN_BEFORE_MS = 14 * DAY_MS;
const PROBLEM_BEFORE_MS = 3 * DAY_MS;
const RENEW =
  "renew it, and write the new files over those of TLS.CertFile and TLS.KeyFile: they are taken within seconds";

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
