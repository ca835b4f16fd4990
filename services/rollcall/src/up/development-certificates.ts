import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdir, readFile, rename } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { certificatesIn, fingerprintOf } from "@rollcall/identity";
import type { Issued } from "@rollcall/identity/certificates";
import { type Clock, type Logger, Loop, replaceFile, type Task } from "@rollcall/process";
import { isAnyHost } from "./address-elsewhere.ts";

/** The directory and names of a development certificate. */
export interface DevelopmentOptions {
  /** The directory for the certificates only; created if missing. */
  readonly dir: string;
  /** Host names and addresses of the server. */
  readonly names: readonly string[];
  readonly clock: Pick<Clock, "wallMs">;
  readonly log: Logger;
}

/** The files of the certificates. */
export interface DevelopmentFiles {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

const DAY_MS = 86_400_000;
const AUTHORITY_DAYS = 3_650;
/** Validity of a certificate in days. Browsers and some systems reject certificates that are valid for longer. */
const CERTIFICATE_DAYS = 365;
/** Remaining validity in days below which a certificate is renewed. */
const RENEW_DAYS = 30;
/**
 * How far back a certificate's validity starts. Clocks differ between machines, and a new certificate must be valid
 * immediately on all of them.
 */
const BACKDATED_MS = 3_600_000;
/** Key files of the two authorities: the one that signs, and the announced one that will sign next. */
const PRESENT_KEY = "ca-key.pem";
const NEXT_KEY = "next-ca-key.pem";
const REPLACED =
  "development authority replaced without notice: give agents that joined with --ca-fingerprint the new " +
  "fingerprint, and agents with --ca-file the new file; see docs/how-to/rotate-authority.md";
const AUTHORITY_NAME = "Rollcall development authority";

/** The names and addresses of a server that listens on a host of this machine. */
export function developmentNames(host: string, hostname: string, addresses: readonly string[]): readonly string[] {
  return [...new Set(["localhost", "127.0.0.1", "::1", hostname, ...(isAnyHost(host) ? addresses : [host])])];
}

/**
 * Make sure that a directory contains a development authority and a server certificate for these names, both valid
 * for some time. Valid ones are kept, so that clients that trust the authority need no change. The next authority is
 * announced in ca.pem while the current one still signs, or while the current certificate is valid. Only this user
 * can read the keys.
 */
export async function keepDevelopmentCertificates(options: DevelopmentOptions): Promise<DevelopmentFiles> {
  const { dir, names, clock, log } = options;
  const at = (name: string) => join(dir, name);
  const files = { caFile: at("ca.pem"), certFile: at("server.pem"), keyFile: at("server-key.pem") };
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const nowMs = clock.wallMs();
  const roots = await readRoots(files.caFile);
  const present = await readSigner(at(PRESENT_KEY), roots);
  const next = await readSigner(at(NEXT_KEY), roots);
  const server = await readServer(files, names);
  const verifying = roots.filter((root) => server !== null && isSignedBy(server.certificate, root));
  const plan = planDevelopment({ present, next, server: server && { ...server, verifying } }, nowMs);
  warnOfClock(options, server?.certificate, nowMs);
  if (plan.kind === "keep") {
    const announced = roots.filter(
      (it) => it === present?.certificate || it === next?.certificate || verifying.includes(it),
    );
    if (announced.length < roots.length) await writeRoots(files.caFile, announced);
    return files;
  }
  // Load this module only when something must be created.
  const { createAuthority, issueCertificate } = await import("@rollcall/identity/certificates");
  const until = (notAfterMs: number) => ({ notBeforeMs: nowMs - BACKDATED_MS, notAfterMs });
  let made: Signer | null = null;
  if (plan.makesNext) {
    const issued = createAuthority({ commonName: AUTHORITY_NAME, ...until(nowMs + AUTHORITY_DAYS * DAY_MS) });
    made = { ...issued, certificate: new X509Certificate(issued.certPem) };
    await replaceFile(at(NEXT_KEY), made.keyPem, 0o600);
    await writeRoots(files.caFile, [...roots, made.certificate]);
    const fields = { ca_file: files.caFile, ca_fingerprint: fingerprintOf(made.certificate) };
    const isAnnounced = plan.issuer !== "next";
    log.info(fields, isAnnounced ? "next development authority announced" : "development authority created");
  }
  if (plan.issuer === null) return files;
  const signer = plan.issuer === "next" ? (made ?? next) : present;
  if (signer === null) throw new Error("the plan for development certificates names a missing authority");
  // The next authority's certificate is already in ca.pem, so a concurrent reader finds a root for both the old and
  // the new server certificate.
  if (plan.issuer === "next") {
    await rename(at(NEXT_KEY), at(PRESENT_KEY));
    const isFirst = server === null && roots.length === 0;
    if (made !== null && !isFirst)
      log.warn({ ca_fingerprint: fingerprintOf(made.certificate), ca_file: files.caFile }, REPLACED);
  }
  const request = { commonName: "Rollcall development server", names, usage: "server" as const };
  const lasting = Math.min(nowMs + CERTIFICATE_DAYS * DAY_MS, notAfterMs(signer.certificate));
  await writePair(issueCertificate(signer, { ...request, ...until(lasting) }), files.certFile, files.keyFile);
  log.info({ cert_file: files.certFile, names }, "development certificate created");
  return files;
}

/** The task that renews the certificate while the process runs; a TlsSource that watches the files loads it. */
export function renewDevelopmentCertificates(options: DevelopmentOptions & { readonly clock: Clock }): Task {
  const turn = async () => void (await keepDevelopmentCertificates(options));
  return new Loop({ name: "development-certificates", clock: options.clock, everyMs: DAY_MS, turn });
}

/** The contents of the directory on which the plan depends. */
interface DevelopmentFacts {
  /** The current authority, if its certificate is announced and its key exists; likewise `next`. */
  readonly present: Pick<Signer, "certificate"> | null;
  readonly next: Pick<Signer, "certificate"> | null;
  readonly server: {
    readonly certificate: X509Certificate;
    readonly isForNames: boolean;
    /** The announced authorities that verify the server's certificate. */
    readonly verifying: readonly X509Certificate[];
  } | null;
}

type DevelopmentPlan =
  | { readonly kind: "keep" }
  /** Create and announce another authority, or sign a new certificate with one of the two authorities, or both. */
  | { readonly kind: "make"; readonly makesNext: boolean; readonly issuer: "present" | "next" | null };

/**
 * Decide what to create. Agents store announced authorities, so the next authority is announced a year before it
 * signs. If the current authority's key is missing, the next one is announced for as long as the certificate in use
 * is valid.
 */
function planDevelopment({ present, next, server }: DevelopmentFacts, nowMs: number): DevelopmentPlan {
  const lasts = (it: X509Certificate | undefined, days: number) =>
    it !== undefined && notAfterMs(it) > nowMs + days * DAY_MS;
  const isPresentLong = lasts(present?.certificate, CERTIFICATE_DAYS);
  const makesNext = !isPresentLong && !lasts(next?.certificate, CERTIFICATE_DAYS);
  const isServerGood =
    server?.isForNames === true &&
    lasts(server.certificate, RENEW_DAYS) &&
    server.verifying.some((it) => lasts(it, RENEW_DAYS));
  if (isServerGood) return makesNext ? { kind: "make", makesNext, issuer: null } : { kind: "keep" };
  return { kind: "make", makesNext, issuer: lasts(present?.certificate, RENEW_DAYS) ? "present" : "next" };
}

/** An authority and its key. */
interface Signer extends Issued {
  readonly certificate: X509Certificate;
}

/** Read the announced authorities; none when the file is missing or was truncated by a crash. */
async function readRoots(file: string): Promise<readonly X509Certificate[]> {
  try {
    return certificatesIn(await readFile(file), file);
  } catch {
    return [];
  }
}

function writeRoots(file: string, roots: readonly X509Certificate[]): Promise<void> {
  return replaceFile(file, roots.map(String).join(""), 0o644);
}

/** Read the announced authority that belongs to a key; null without the key. */
async function readSigner(keyFile: string, roots: readonly X509Certificate[]): Promise<Signer | null> {
  try {
    const keyPem = await readFile(keyFile, "utf8");
    const key = createPrivateKey(keyPem);
    const certificate = roots.find((it) => it.checkPrivateKey(key));
    return certificate === undefined ? null : { certificate, certPem: String(certificate), keyPem };
  } catch {
    // Return null, because the certificate is missing or was truncated by a crash, so it is created again.
    return null;
  }
}

async function readServer({ certFile, keyFile }: DevelopmentFiles, names: readonly string[]) {
  try {
    const [certificate] = certificatesIn(await readFile(certFile), certFile);
    const isPair = certificate.checkPrivateKey(createPrivateKey(await readFile(keyFile)));
    return isPair ? { certificate, isForNames: isFor(certificate, names) } : null;
  } catch {
    return null;
  }
}

/**
 * Write a certificate and its key. The key is written first. A concurrent reader that finds a mismatched pair
 * retries.
 */
async function writePair(pair: Issued, certFile: string, keyFile: string): Promise<void> {
  await replaceFile(keyFile, pair.keyPem, 0o600);
  await replaceFile(certFile, pair.certPem, 0o644);
}

/**
 * Warn when the certificate is not valid yet. The certificate is kept, because a clock that is behind is more likely
 * than a wrong certificate, and replacing the certificate would lose agents.
 */
function warnOfClock({ dir, log }: DevelopmentOptions, server: X509Certificate | undefined, nowMs: number): void {
  if (server === undefined || Date.parse(server.validFrom) <= nowMs) return;
  const fields = { not_before: new Date(server.validFrom).toISOString(), dir };
  log.warn(fields, "development certificate is not valid yet: correct this machine's clock, or remove the directory");
}

function notAfterMs({ validTo }: X509Certificate): number {
  return Date.parse(validTo);
}

function isSignedBy(server: X509Certificate, authority: X509Certificate): boolean {
  return server.verify(authority.publicKey);
}

function isFor(certificate: X509Certificate, names: readonly string[]): boolean {
  return names.every((name) =>
    isIP(name) === 0 ? certificate.checkHost(name) !== undefined : certificate.checkIP(name) !== undefined,
  );
}
