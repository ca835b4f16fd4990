import type { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { resolve } from "node:path";
import { authoritiesOf, certificatesIn, fetchAuthorities, fingerprintOf } from "@rollcall/identity";
import { authorityServer } from "../client/authority-server.ts";
import type { ControlPlane } from "../client/control-plane.ts";
import { UsageError, unreadableFile } from "../failure.ts";
import type { Shell } from "../shell.ts";
import type { NextCertificate } from "./evaluate-trust.ts";

/**
 * Read a certificate that is about to replace the current one. Its authority is looked up at the end of the file
 * and among the authorities that the control plane serves. Throws UsageError when the file contains no certificate.
 */
export async function readNextCertificate(
  control: ControlPlane,
  shell: Shell,
  written: string,
): Promise<NextCertificate> {
  const file = resolve(shell.cwd, written);
  const chain = readChain(file);
  const [leaf] = chain;
  const known = [...chain, ...(await served(control, shell))];
  const authorities = [...new Set(authoritiesOf(chain, known).map(fingerprintOf))];
  return {
    file: written,
    authorities,
    isFor: (name) => (isIP(name) === 0 ? leaf.checkHost(name) : leaf.checkIP(name)) !== undefined,
  };
}

function readChain(file: string) {
  let pem: Buffer;
  try {
    pem = readFileSync(file);
  } catch (cause) {
    throw unreadableFile(file, cause);
  }
  try {
    return certificatesIn(pem, file);
  } catch (cause) {
    throw new UsageError(Object(cause).message, { cause });
  }
}

const FETCH_LIMIT_MS = 3_000;

/** The authorities that the registry serves over a verified connection; empty when it serves none. */
async function served(control: ControlPlane, shell: Shell): Promise<readonly X509Certificate[]> {
  const { registry } = control.addresses;
  const { caFile, serverName } = control.trust("registry");
  if (new URL(registry).protocol !== "https:" || caFile === null) return [];
  const server = authorityServer(registry, serverName);
  const limit = AbortSignal.any([shell.interrupted, AbortSignal.timeout(FETCH_LIMIT_MS)]);
  try {
    return await fetchAuthorities({ ...server, trusted: readFileSync(caFile, "utf8") }, limit);
  } catch {
    // Return nothing, because only the root in the file is known without the registry. The other checks report why
    // the registry cannot be reached.
    return [];
  }
}
