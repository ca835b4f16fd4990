import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { fetchAuthorities, fingerprintOf } from "@rollcall/identity";
import { isLoopback } from "./addresses.ts";
import { authorityServer } from "./authority-server.ts";
import type { Trust } from "./client-tls.ts";

/** How a machine that joins gets the authority of the servers. */
export type AuthorityToShow =
  /** It trusts the authority already, or there is no TLS. */
  | { readonly kind: "system" }
  /** It fetches the authority from the registry, and compares it. */
  | { readonly kind: "fingerprint"; readonly fingerprint: string }
  /** The command brings it along. */
  | { readonly kind: "text"; readonly pem: string }
  /** People copy the file. */
  | { readonly kind: "file"; readonly path: string };

/** Where the command that is shown leads. */
export interface ShownCommand {
  /** Base URL of the registry as it is reached here. */
  readonly reached: string;
  /** The same as other machines reach it. */
  readonly registry: string;
  readonly trust: Trust;
}

/** More than any authority has. What is larger holds the authorities of a whole system, and is not worth showing. */
const MOST_CA_BYTES = 8192;
/** A file holds the old authority and the new one while they are replaced, seldom more. */
const MOST_CERTIFICATES = 4;

/** Decide what of the authority to show in a command that is run on another machine. */
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
    // A file with anything else in it, such as a key, is for people to copy.
    const isPublic = pem.includes("BEGIN CERTIFICATE") && !pem.includes("PRIVATE KEY");
    return isPublic && pem.length <= MOST_CA_BYTES ? pem : null;
  } catch {
    return null;
  }
}

/**
 * The fingerprint by which an agent can trust the registry: of an authority that verifies it, and that it hands out.
 * Null when there is none, as where something else answers for it, or an older version.
 */
async function servedFingerprint(reached: string, { serverName }: Trust, pem: string): Promise<string | null> {
  const server = authorityServer(reached, serverName);
  for (const trusted of (pem.match(CERTIFICATE) ?? []).slice(0, MOST_CERTIFICATES)) {
    try {
      const wanted = fingerprintOf(new X509Certificate(trusted));
      const served = await fetchAuthorities({ ...server, trusted }, AbortSignal.timeout(FETCH_LIMIT_MS));
      if (served.some((it) => fingerprintOf(it) === wanted)) return wanted;
    } catch {
      // Not this one: the token was made, and the command is shown with the next one, or with the authority itself.
    }
  }
  return null;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;
const FETCH_LIMIT_MS = 3_000;
