import type { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { resolve } from "node:path";
import { authoritiesOf, certificatesIn, fetchAuthorities, fingerprintOf } from "@rollcall/identity";
import { authorityServer } from "../client/authority-server.ts";
import type { ControlPlane } from "../client/control-plane.ts";
import { UsageError, unreadableFile } from "../failure.ts";
import type { Shell } from "../shell.ts";
import type { NextCertificate } from "./judge-trust.ts";

/**
 * Read a certificate that is about to replace the present one. Its authority is looked for at the end of its file and
 * among those that the control plane hands out. Throws UsageError when the file holds no certificate.
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

/** What the registry hands out, over a connection that is verified; nothing where it hands out none. */
async function served(control: ControlPlane, shell: Shell): Promise<readonly X509Certificate[]> {
  const { registry } = control.addresses;
  const { caFile, serverName } = control.trust("registry");
  if (new URL(registry).protocol !== "https:" || caFile === null) return [];
  const server = authorityServer(registry, serverName);
  const limit = AbortSignal.any([shell.interrupted, AbortSignal.timeout(FETCH_LIMIT_MS)]);
  try {
    return await fetchAuthorities({ ...server, trusted: readFileSync(caFile, "utf8") }, limit);
  } catch {
    // The other checks say why the registry cannot be reached. Without it only the file's own root is known.
    return [];
  }
}
