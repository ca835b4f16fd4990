import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { fetchAuthorities, fingerprintOf } from "@rollcall/identity";
import { isLoopback } from "./addresses.ts";
import { authorityServer } from "./authority-server.ts";
import type { Trust } from "./client-tls.ts";

/** How a machine that joins gets the authority of the servers. */
export type AuthorityToShow =
  /** The machine already trusts the authority, or there is no TLS. */
  | { readonly kind: "system" }
  /** The machine fetches the authority from the registry and compares the fingerprint. */
  | { readonly kind: "fingerprint"; readonly fingerprint: string }
  /** The command contains the authority's certificate. */
  | { readonly kind: "text"; readonly pem: string }
  /** The user copies the file. */
  | { readonly kind: "file"; readonly path: string };

/** Where the displayed command connects. */
export interface ShownCommand {
  /** Base URL of the registry as reached from this machine. */
  readonly reached: string;
  /** Base URL of the registry as reached from other machines. */
  readonly registry: string;
  readonly trust: Trust;
}

/**
 * Maximum size of an authority file to show, larger than any single authority. A larger file holds the authorities
 * of a whole system and is not worth showing.
 */
const MOST_CA_BYTES = 8192;
/**
 * Maximum number of certificates to check. A file holds the old and the new authority during a rotation, seldom
 * more.
 */
const MOST_CERTIFICATES = 4;

/** Decide how a command that runs on another machine gets the authority. */
export async function authorityToShow({ reached, registry, trust }: ShownCommand): Promise<AuthorityToShow> {
  const { caFile } = trust;
  if (caFile === null) return { kind: "system" };
  const pem = publicPem(caFile);
  if (pem === null) return { kind: "file", path: caFile };
  const fingerprint = await servedFingerprint(reached, trust, pem);
  if (fingerprint !== null) return { kind: "fingerprint", fingerprint };
  return isLoopback(registry) ? { kind: "file", path: caFile } : { kind: "text", pem };
}

/** The file's text; null when it cannot be read, or should not be shown. */
function publicPem(caFile: string): string | null {
  try {
    const pem = readFileSync(caFile, "utf8");
    // Show only files that contain nothing but certificates. The user must copy any other file, for example one
    // with a private key.
    const isPublic = pem.includes("BEGIN CERTIFICATE") && !pem.includes("PRIVATE KEY");
    return isPublic && pem.length <= MOST_CA_BYTES ? pem : null;
  } catch {
    return null;
  }
}

/**
 * The fingerprint that lets an agent trust the registry: the fingerprint of an authority that the registry serves
 * and that verifies the registry's certificate. Null when there is no such authority, for example because another
 * server answers, or because the registry runs an older version.
 */
async function servedFingerprint(reached: string, { serverName }: Trust, pem: string): Promise<string | null> {
  const server = authorityServer(reached, serverName);
  for (const trusted of (pem.match(CERTIFICATE) ?? []).slice(0, MOST_CERTIFICATES)) {
    try {
      const wanted = fingerprintOf(new X509Certificate(trusted));
      const served = await fetchAuthorities({ ...server, trusted }, AbortSignal.timeout(FETCH_LIMIT_MS));
      if (served.some((it) => fingerprintOf(it) === wanted)) return wanted;
    } catch {
      // Try the next certificate. The token already exists, so the command must be shown in any case. Without a
      // fingerprint, the command contains the whole certificate.
    }
  }
  return null;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;
const FETCH_LIMIT_MS = 3_000;
