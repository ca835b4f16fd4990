import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import type { Issued } from "@rollcall/identity/certificates";
import { type Clock, type Logger, Loop, replaceFile, type Task } from "@rollcall/process";
import { isAnyHost } from "./address-elsewhere.ts";

/** What a development certificate is made for. */
export interface DevelopmentOptions {
  /** A directory of its own; made when it is not there. */
  readonly dir: string;
  /** Host names and addresses by which the server is reached. */
  readonly names: readonly string[];
  readonly clock: Pick<Clock, "wallMs">;
  readonly log: Logger;
}

/** Where everything is. */
export interface DevelopmentFiles {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

const DAY_MS = 86_400_000;
const AUTHORITY_DAYS = 3_650;
/** Browsers and some systems take none that is longer. */
const CERTIFICATE_DAYS = 365;
/** Renewed when less is left. */
const RENEW_DAYS = 30;
/** Machines' clocks differ; a new certificate has to be good at once on all of them. */
const BACKDATED_MS = 3_600_000;
const AUTHORITY_NAME = "Rollcall development authority";

/** The names and addresses by which what listens on a host of this machine is reached. */
export function developmentNames(host: string, hostname: string, addresses: readonly string[]): readonly string[] {
  return [...new Set(["localhost", "127.0.0.1", "::1", hostname, ...(isAnyHost(host) ? addresses : [host])])];
}

/**
 * Make sure that a directory holds a development authority and a server certificate for these names that are good for
 * some time. What is good is kept, so that clients that trust the authority need no change. Keys are readable by
 * this user alone.
 */
export async function keepDevelopmentCertificates(options: DevelopmentOptions): Promise<DevelopmentFiles> {
  const { dir, names, clock, log } = options;
  const files = {
    caFile: join(dir, "ca.pem"),
    certFile: join(dir, "server.pem"),
    keyFile: join(dir, "server-key.pem"),
  };
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const nowMs = clock.wallMs();
  const caKeyFile = join(dir, "ca-key.pem");
  const authority = await readPair(files.caFile, caKeyFile);
  const server = await readPair(files.certFile, files.keyFile);
  const isAuthorityGood = authority !== null && isGood(authority, nowMs, CERTIFICATE_DAYS);
  if (isAuthorityGood && server !== null && isGood(server, nowMs, RENEW_DAYS)) {
    if (isSignedBy(server, authority) && isFor(server, names)) return files;
  }
  // Loaded only when there is something to make.
  const { createAuthority, issueCertificate } = await import("@rollcall/identity/certificates");
  const lasting = (days: number) => ({
    notBeforeMs: nowMs - BACKDATED_MS,
    notAfterMs: nowMs + days * DAY_MS,
  });
  let signer = authority;
  if (signer === null || !isAuthorityGood) {
    signer = createAuthority({ commonName: AUTHORITY_NAME, ...lasting(AUTHORITY_DAYS) });
    await writePair(signer, files.caFile, caKeyFile);
    log.info({ ca_file: files.caFile }, "development authority made");
  }
  const request = { commonName: "Rollcall development server", names, usage: "server" as const };
  const issued = issueCertificate(signer, { ...request, ...lasting(CERTIFICATE_DAYS) });
  await writePair(issued, files.certFile, files.keyFile);
  log.info({ cert_file: files.certFile, names }, "development certificate made");
  return files;
}

/** The task that renews the certificate while the process runs; a TlsSource that watches the files takes it up. */
export function renewDevelopmentCertificates(options: DevelopmentOptions & { readonly clock: Clock }): Task {
  const turn = async () => void (await keepDevelopmentCertificates(options));
  return new Loop({ name: "development-certificates", clock: options.clock, everyMs: DAY_MS, turn });
}

async function readPair(certFile: string, keyFile: string): Promise<Issued | null> {
  try {
    const [certPem, keyPem] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
    const isPair = new X509Certificate(certPem).checkPrivateKey(createPrivateKey(keyPem));
    return isPair ? { certPem, keyPem } : null;
  } catch {
    // Not there, or cut short by a crash: made again.
    return null;
  }
}

/** The key first: a reader in between finds a pair that does not fit, and looks again. */
async function writePair(pair: Issued, certFile: string, keyFile: string): Promise<void> {
  await replaceFile(keyFile, pair.keyPem, 0o600);
  await replaceFile(certFile, pair.certPem, 0o644);
}

function isGood({ certPem }: Issued, nowMs: number, daysLeft: number): boolean {
  const { validFrom, validTo } = new X509Certificate(certPem);
  return Date.parse(validFrom) <= nowMs && Date.parse(validTo) > nowMs + daysLeft * DAY_MS;
}

function isSignedBy(server: Issued, authority: Issued): boolean {
  const { publicKey } = new X509Certificate(authority.certPem);
  return new X509Certificate(server.certPem).verify(publicKey);
}

function isFor({ certPem }: Issued, names: readonly string[]): boolean {
  const certificate = new X509Certificate(certPem);
  return names.every((name) =>
    isIP(name) === 0 ? certificate.checkHost(name) !== undefined : certificate.checkIP(name) !== undefined,
  );
}
