import { constants, createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { errorCode } from "@rollcall/process";
import { authoritiesOf, isRoot } from "./trust-path.ts";

/** The PEM files of a server's certificate. */
export interface TlsFiles {
  /** The server's certificate, followed by intermediate certificates. */
  readonly certFile: string;
  /** The key of the first certificate, without a passphrase. */
  readonly keyFile: string;
  /**
   * Authorities for client certificates. If set, clients without a certificate signed by one of them are rejected.
   */
  readonly clientCaFile: string | undefined;
  /** The certificate's authority, for clients that request it. Default: the root at the end of the chain. */
  readonly caFile?: string | undefined;
}

/** The content of the files at one moment. */
export interface TlsPems {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** The authorities for client certificates; null when clients need no certificate. */
  readonly clientCa: Buffer | null;
  /** The certificate's authority; null when no file is configured. */
  readonly ca: Buffer | null;
  /** A digest of the files, which is equal for equal content. */
  readonly digest: string;
}

/** Validated, matching files. */
export interface TlsMaterial extends TlsPems {
  readonly subject: string;
  /** The certificate's authority as PEM, without any other text; null when it is unknown or too large. */
  readonly authority: string | null;
  /** The certificates of `authority`, parsed; empty when there are more than MOST_AUTHORITIES. */
  readonly authorities: readonly X509Certificate[];
  /** The first of these authorities that verifies the certificate; null when none does. */
  readonly verifiedBy: X509Certificate | null;
  /** The certificate's host names, including wildcards. */
  readonly hostNames: readonly string[];
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** Maximum size of a private authority, in bytes. Larger files are trust stores of whole systems. */
export const MOST_AUTHORITY_BYTES = 65_536;
/** Maximum number of certificates in rollcall.health.v1.Authorities. */
export const MOST_AUTHORITIES = 16;

/** A certificate, key or authority file is unusable. The message names the file and says why. */
export class TlsFileError extends Error {
  override readonly name = "TlsFileError";
  readonly file: string;

  constructor(file: string, problem: string, cause?: unknown) {
    super(`${file}: ${problem}`, { cause });
    this.file = file;
  }
}

/** Read the current content of the files. Throws TlsFileError. */
export async function readTlsFiles(files: TlsFiles): Promise<TlsPems> {
  const cert = await read(files.certFile);
  const key = await read(files.keyFile);
  const clientCa = files.clientCaFile === undefined ? null : await read(files.clientCaFile);
  const ca = files.caFile === undefined ? null : await read(files.caFile);
  const digest = createHash("sha256")
    .update(cert)
    .update(key)
    .update(clientCa ?? "")
    .update(ca ?? "");
  return { cert, key, clientCa, ca, digest: digest.digest("hex") };
}

/** Check that the files are valid and match. Throws TlsFileError. */
export function checkTlsPems(pems: TlsPems, files: TlsFiles): TlsMaterial {
  const chain = checkPair(pems, files);
  const [certificate] = chain;
  if (pems.clientCa !== null) rootsIn(pems.clientCa, files.clientCaFile ?? "");
  const named = authoritiesIn(pems, files);
  const [verifiedBy = null] = authoritiesOf(chain, named);
  if (files.caFile !== undefined && verifiedBy === null) {
    throw new TlsFileError(
      files.caFile,
      `contains no root that verifies the certificate in ${files.certFile}: add the self-signed certificate of its ` +
        `authority, and move intermediate certificates to ${files.certFile}`,
    );
  }
  const authority = named.map(String).join("");
  const isHandedOut = named.length > 0 && authority.length <= MOST_AUTHORITY_BYTES;
  tryContext(contextOf(pems), files.certFile);
  return {
    ...pems,
    subject: certificate.subject.replaceAll("\n", ", "),
    authority: isHandedOut ? authority : null,
    authorities: isHandedOut && named.length <= MOST_AUTHORITIES ? named : [],
    verifiedBy,
    hostNames: hostNamesIn(certificate),
    notBeforeMs: Date.parse(certificate.validFrom),
    notAfterMs: Date.parse(certificate.validTo),
  };
}

/** Check that a key belongs to the first certificate of a chain. Returns the chain. Throws TlsFileError. */
export function checkPair(
  { cert, key }: Pick<TlsPems, "cert" | "key">,
  { certFile, keyFile }: Pick<TlsFiles, "certFile" | "keyFile">,
): readonly [X509Certificate, ...X509Certificate[]] {
  const chain = certificatesIn(cert, certFile);
  if (chain[0].checkPrivateKey(privateKeyIn(key, keyFile))) return chain;
  throw new TlsFileError(keyFile, `not the key of the certificate in ${certFile}`);
}

/** Check that OpenSSL accepts the options, which it can refuse for example because the key is too short. */
export function tryContext(options: SecureContextOptions, file: string): void {
  try {
    createSecureContext(options);
  } catch (cause) {
    throw new TlsFileError(file, `cannot be used for TLS: ${String(cause)}`, cause);
  }
}

/** Publish only roots, because the file may also contain a key and intermediate certificates. */
function authoritiesIn({ ca, cert }: TlsPems, { caFile = "", certFile }: TlsFiles): readonly X509Certificate[] {
  return ca === null ? certificatesIn(cert, certFile).filter(isRoot) : rootsIn(ca, caFile);
}

/** Read the self-signed certificates of a PEM file; at least one. Throws TlsFileError. */
export function rootsIn(pem: Buffer, file: string): readonly X509Certificate[] {
  const roots = certificatesIn(pem, file).filter(isRoot);
  if (roots.length > 0) return roots;
  throw new TlsFileError(
    file,
    "contains only intermediate or cross-signed certificates, which TLS does not trust without their root: add the " +
      "self-signed certificate of the authority",
  );
}

function hostNamesIn({ subjectAltName = "" }: X509Certificate): readonly string[] {
  return [...subjectAltName.matchAll(/DNS:([^,\s]+)/g)].map(([, name = ""]) => name);
}

/**
 * The cipher suites of Rollcall's ports: those of TLS 1.3, and those of TLS 1.2 with ephemeral key exchange and
 * authenticated encryption. The defaults of Node.js also include CBC and SHA-1, for very old clients.
 */
const SUITES = [
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "TLS_AES_128_GCM_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
];

/** The options for the server's TLS context. */
export function contextOf({ cert, key, clientCa }: TlsPems): SecureContextOptions {
  const pair = { cert, key, minVersion: "TLSv1.2" as const, ciphers: SUITES.join(":") };
  // Disable tickets: a session that is resumed from a ticket is not verified again, so a session that started
  // without a certificate would be accepted.
  return clientCa === null ? pair : { ...pair, ca: clientCa, secureOptions: constants.SSL_OP_NO_TICKET };
}

/** Read every certificate of a PEM file; at least one. Throws TlsFileError. */
export function certificatesIn(pem: Buffer, file: string): readonly [X509Certificate, ...X509Certificate[]] {
  const blocks = String(pem).match(CERTIFICATE_BLOCK) ?? [];
  try {
    const [first, ...more] = blocks.map((block) => new X509Certificate(block));
    if (first !== undefined) return [first, ...more];
  } catch (cause) {
    throw new TlsFileError(file, "contains a certificate that cannot be read", cause);
  }
  throw new TlsFileError(file, "contains no PEM certificate");
}

const CERTIFICATE_BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

function privateKeyIn(pem: Buffer, file: string) {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    const isLocked = errorCode(cause) === "ERR_MISSING_PASSPHRASE" || /ENCRYPTED/.test(String(pem));
    // Omit OpenSSL's message, which does not help, and the content, which is secret.
    throw new TlsFileError(
      file,
      isLocked ? "the key is encrypted, store it without a passphrase" : "contains no PEM private key",
    );
  }
}

async function read(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw unreadable(file, cause);
  }
}

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "is a directory, not a file",
};

/** Describe why a file cannot be read. */
export function unreadable(file: string, cause: unknown): TlsFileError {
  const code = errorCode(cause) ?? "";
  return new TlsFileError(file, `cannot be read: ${UNREADABLE[code] ?? (code || "unknown")}`, cause);
}
