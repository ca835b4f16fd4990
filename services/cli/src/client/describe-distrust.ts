import { readFileSync } from "node:fs";
import { certificatesIn, fetchAuthorities, fingerprintOf } from "@rollcall/identity";
import { displayAddress } from "./addresses.ts";
import { authorityServer } from "./authority-server.ts";
import type { Trust } from "./client-tls.ts";

const FETCH_LIMIT_MS = 3_000;

/**
 * Describe why a server is not trusted: which authorities this machine trusts, and which ones the server serves. The
 * served authorities are not verified, so the user compares the fingerprints. Empty when this machine knows all
 * authorities that the server serves.
 */
export async function describeDistrust(baseUrl: string, { caFile, serverName }: Trust): Promise<string> {
  const server = authorityServer(baseUrl, serverName);
  const served = await fetchAuthorities(server, AbortSignal.timeout(FETCH_LIMIT_MS)).then(
    (certificates) => certificates.map(fingerprintOf),
    () => [],
  );
  const trusted = caFile === null ? [] : fingerprintsIn(caFile);
  const [other] = served.filter((it) => !trusted.includes(it));
  if (other === undefined) return "";
  const here =
    trusted.length === 0
      ? "this machine trusts only the system's authorities"
      : `this machine trusts only ${trusted.join(", ")}`;
  return [
    `\nhint: the server's authority is ${served.join(", ")}, and ${here}`,
    `\nhint: if \`rollcall token create\` on the control plane's own machine prints the same fingerprint, run ` +
      `\`rollcall login --server ${displayAddress(baseUrl)} --ca-fingerprint ${other}\` to trust it`,
  ].join("");
}

function fingerprintsIn(file: string): readonly string[] {
  try {
    return certificatesIn(readFileSync(file), file).map(fingerprintOf);
  } catch {
    // Report nothing if the file is unreadable. The described failure already says so, unless the file was replaced
    // since.
    return [];
  }
}
