import { decideAuthorities } from "@rollcall/domain";
import { authoritiesDigest } from "../network/agent-trust.ts";
import { seeded } from "./walks.ts";

const NOW_MS = 1_700_000_000_000;
const YEAR_MS = 31_536_000_000;

const fingerprint = (digit: string) => `sha256:${digit.repeat(64)}`;

/**
 * Announcements, each with the authorities trusted before and after it, and the digests that a Hello
 * carries.
 */
export function authorityVectors() {
  const decisions = Array.from({ length: 60 }, (_, seed) => {
    const random = seeded(seed + 900);
    const count = seed === 0 ? 0 : seed === 1 ? 17 : 1 + Math.floor(random() * 4);
    const announced = Array.from({ length: count }, () => ({
      fingerprint: fingerprint("0123456789abcdef"[Math.floor(random() * 6)] ?? "0"),
      isRoot: random() < 0.8,
      notBeforeMs: NOW_MS + (random() < 0.8 ? -YEAR_MS : random() < 0.5 ? 0 : YEAR_MS),
      notAfterMs: NOW_MS + (random() < 0.8 ? YEAR_MS : random() < 0.5 ? 0 : -1),
      isVerifying: random() < 0.6,
    }));
    const others = ["1", "0", "2"].filter(() => random() < 0.5).map(fingerprint);
    const first = decideAuthorities(announced, others, NOW_MS);
    // In some cases, let the authorities of this announcement be trusted already.
    const kept = first.kind === "replace" && random() < 0.3 ? first.fingerprints.toReversed() : others;
    const decision = decideAuthorities(announced, kept, NOW_MS);
    const fingerprints = decision.kind === "replace" ? decision.fingerprints : [];
    return { wallMs: NOW_MS, announced, kept, kind: decision.kind, fingerprints };
  });
  const digests = [[], ["b"], ["b", "a", "c"]].map((digits) => {
    const fingerprints = digits.map(fingerprint);
    return { fingerprints, digest: Buffer.from(authoritiesDigest(fingerprints)).toString("hex") };
  });
  return { decisions, digests };
}
