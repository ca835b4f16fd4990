import { readFileSync, statSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { decideAuthorities } from "@rollcall/domain";
import { certificatesIn, fetchAuthorities, fingerprintOf, isRoot } from "@rollcall/identity";
import { replaceFile } from "@rollcall/process";
import { addressesOf } from "../client/addresses.ts";
import { authorityServer } from "../client/authority-server.ts";
import type { Shell } from "../shell.ts";
import type { ChosenContext } from "./context.ts";
import { authorityDirectory } from "./context-file.ts";

/** Minimum time between two checks for a changed authority. A command checks after its work is done. */
const EVERY_MS = 3_600_000;
const LIMIT_MS = 2_000;

/**
 * Update the authority of a context that was created with --ca-fingerprint. Like an agent, accept the authorities that
 * the server serves over a connection that the context trusts. Never rejects: the command has already done its work.
 */
export async function refreshAuthority(shell: Shell, chosen: ChosenContext, serverName: string | null): Promise<void> {
  try {
    await refresh(shell, chosen, serverName);
  } catch {
    // Ignore the error. The next command tries again, and reports the problem if the server is not trusted at that
    // time.
  }
}

async function refresh(shell: Shell, chosen: ChosenContext, serverName: string | null): Promise<void> {
  const file = chosen.context.caFile;
  if (file === null || dirname(file) !== authorityDirectory(shell)) return;
  const nowMs = shell.wallMs();
  if (nowMs - statSync(file).mtimeMs < EVERY_MS) return;
  utimesSync(file, nowMs / 1000, nowMs / 1000);
  const [address] = addressesOf(chosen.context, () => true);
  if (address === undefined) return;
  const server = authorityServer(address, serverName);
  const limit = AbortSignal.any([shell.interrupted, AbortSignal.timeout(LIMIT_MS)]);
  const trusted = readFileSync(file, "utf8");
  const served = await fetchAuthorities({ ...server, trusted }, limit);
  const facts = served.map((it) => ({
    fingerprint: fingerprintOf(it),
    isRoot: isRoot(it),
    notBeforeMs: Date.parse(it.validFrom),
    notAfterMs: Date.parse(it.validTo),
    // Assume that each authority verifies the server. The connection below checks this.
    isVerifying: true,
  }));
  const decision = decideAuthorities(facts, certificatesIn(Buffer.from(trusted), file).map(fingerprintOf), nowMs);
  if (decision.kind !== "replace") return;
  const pem = served.filter((it) => decision.fingerprints.includes(fingerprintOf(it))).join("");
  await fetchAuthorities({ ...server, trusted: pem }, limit);
  // Write a separate file for this context, because a context of another cluster can share the current file.
  const caFile = join(authorityDirectory(shell), `context-${chosen.context.name}.pem`);
  await replaceFile(caFile, pem, 0o600);
  await chosen.save({ ...chosen.context, caFile });
}
