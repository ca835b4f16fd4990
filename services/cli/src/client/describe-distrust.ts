import { readFileSync } from "node:fs";
import { certificatesIn, fetchAuthorities, fingerprintOf } from "@rollcall/identity";
import { displayAddress } from "./addresses.ts";
import { authorityServer } from "./authority-server.ts";
import type { Trust } from "./client-tls.ts";

const FETCH_LIMIT_MS = 3_000;

/**
 * Say which authorities are trusted here and which ones the server hands out, for a server that is not trusted. Nothing
 * is trusted because of that answer: people compare it. Empty where the server hands out none.
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
    trusted.length === 0 ? "the authorities of this machine are trusted" : `trusted is ${trusted.join(", ")}`;
  return [
    `\nhint: ${here}, and the server hands out ${served.join(", ")}`,
    `\nhint: if \`rollcall token create\` prints the same on the control plane's own machine, then ` +
      `\`rollcall login --server ${displayAddress(baseUrl)} --ca-fingerprint ${other}\` trusts it`,
  ].join("");
}

function fingerprintsIn(file: string): readonly string[] {
  try {
    return certificatesIn(readFileSync(file), file).map(fingerprintOf);
  } catch {
    // The failure that is described here has said so, or the file was replaced since.
    return [];
  }
}
