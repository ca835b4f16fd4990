import { constants, createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { errorCode } from "@rollcall/process";
import { authoritiesOf, isRoot } from "./trust-path.ts";

/** Where a server's certificate is, as PEM files. */
export interface TlsFiles {
  /** The server's certificate, followed by those between it and its authority. */
  readonly certFile: string;
  /** The key of the first certificate, without a passphrase. */
  readonly keyFile: string;
  /** Authorities of clients. When set, a client without a certificate signed by one of them is turned away. */
  readonly clientCaFile: string | undefined;
  /** The authority of the certificate, for clients that ask for it. Default: the root at the end of the chain. */
  readonly caFile?: string | undefined;
}

/** What the files held at one moment. */
export interface TlsPems {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Null when clients need no certificate. */
  readonly clientCa: Buffer | null;
  /** Null when no file is named. */
  readonly ca: Buffer | null;
  /** The same for the same contents. */
  readonly digest: string;
}

/** Files that fit together. */
export interface TlsMaterial extends TlsPems {
  readonly subject: string;
  /** The authority of the certificate, as PEM without anything else; null when it is not known, or too much. */
  readonly authority: string | null;
  /** The certificates of the same, at most MOST_AUTHORITIES; empty where there are more. */
  readonly authorities: readonly X509Certificate[];
  /** The first of them that verifies the certificate; null for none. */
  readonly verifiedBy: X509Certificate | null;
  /** The host names that the certificate is for, wildcards as they are. */
  readonly hostNames: readonly string[];
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** More than any private authority has; what is larger holds the authorities of a whole system. */
export const MOST_AUTHORITY_BYTES = 65_536;
/** As many as rollcall.health.v1.Authorities can carry. */
export const MOST_AUTHORITIES = 16;

/** A file of a certificate, a key or an authority that cannot be used; the message names it and says why. */
export class TlsFileError extends Error {
  override readonly name = "TlsFileError";
  readonly file: string;

  constructor(file: string, problem: string, cause?: unknown) {
    super(`${file}: ${problem}`, { cause });
    this.file = file;
  }
}

/** Read the files as they are now. Throws TlsFileError. */
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

/** Check that the contents are what they should be, and fit together. Throws TlsFileError. */
export function checkTlsPems(pems: TlsPems, files: TlsFiles): TlsMaterial {
  const chain = certificatesIn(pems.cert, files.certFile);
  const [certificate] = chain;
  const key = privateKeyIn(pems.key, files.keyFile);
  if (!certificate.checkPrivateKey(key)) {
    throw new TlsFileError(files.keyFile, `not the key of the certificate in ${files.certFile}`);
  }
  if (pems.clientCa !== null) rootsIn(pems.clientCa, files.clientCaFile ?? "");
  const named = authoritiesIn(pems, files);
  const [verifiedBy = null] = authoritiesOf(chain, named);
  if (files.caFile !== undefined && verifiedBy === null) {
    throw new TlsFileError(
      files.caFile,
      `holds no root that verifies the certificate in ${files.certFile}: write the self-signed certificate of its ` +
        `authority there, and intermediate ones into ${files.certFile}`,
    );
  }
  const authority = named.map(String).join("");
  const isHandedOut = named.length > 0 && authority.length <= MOST_AUTHORITY_BYTES;
  try {
    createSecureContext(contextOf(pems));
  } catch (cause) {
    // Whatever else OpenSSL holds against them, for example a key that is too short.
    throw new TlsFileError(files.certFile, `cannot be used for TLS: ${String(cause)}`, cause);
  }
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

/** Only roots are handed out: the file may hold a key and intermediate certificates as well. */
function authoritiesIn({ ca, cert }: TlsPems, { caFile = "", certFile }: TlsFiles): readonly X509Certificate[] {
  return ca === null ? certificatesIn(cert, certFile).filter(isRoot) : rootsIn(ca, caFile);
}

/** Read the self-signed certificates of a PEM file; at least one. Throws TlsFileError. */
export function rootsIn(pem: Buffer, file: string): readonly X509Certificate[] {
  const roots = certificatesIn(pem, file).filter(isRoot);
  if (roots.length > 0) return roots;
  throw new TlsFileError(
    file,
    "holds only intermediate or cross-signed certificates, and TLS trusts none of them without its root: add the " +
      "self-signed certificate of the authority",
  );
}

function hostNamesIn({ subjectAltName = "" }: X509Certificate): readonly string[] {
  return [...subjectAltName.matchAll(/DNS:([^,\s]+)/g)].map(([, name = ""]) => name);
}

/**
 * What our ports speak: the suites of TLS 1.3, and of TLS 1.2 those with an ephemeral key exchange and authenticated
 * encryption. Node's own list has CBC and SHA-1 too, for clients of a decade ago.
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

/** What Node's TLS makes a server's context of. */
export function contextOf({ cert, key, clientCa }: TlsPems): SecureContextOptions {
  const pair = { cert, key, minVersion: "TLSv1.2" as const, ciphers: SUITES.join(":") };
  // A session that is resumed by a ticket is not checked again: one begun without a certificate would pass.
  return clientCa === null ? pair : { ...pair, ca: clientCa, secureOptions: constants.SSL_OP_NO_TICKET };
}

/** Read every certificate of a PEM file; at least one. Throws TlsFileError. */
export function certificatesIn(pem: Buffer, file: string): readonly [X509Certificate, ...X509Certificate[]] {
  const blocks = String(pem).match(CERTIFICATE_BLOCK) ?? [];
  try {
    const [first, ...more] = blocks.map((block) => new X509Certificate(block));
    if (first !== undefined) return [first, ...more];
  } catch (cause) {
    throw new TlsFileError(file, "holds a certificate that cannot be read", cause);
  }
  throw new TlsFileError(file, "holds no certificate in PEM form");
}

const CERTIFICATE_BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

function privateKeyIn(pem: Buffer, file: string) {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    const isLocked = errorCode(cause) === "ERR_MISSING_PASSPHRASE" || /ENCRYPTED/.test(String(pem));
    // Neither the text of OpenSSL, which says nothing of use, nor the content, which is a secret.
    throw new TlsFileError(
      file,
      isLocked ? "the key needs a passphrase, write it without one" : "holds no private key in PEM form",
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
  EACCES: "this user may not read it",
  EPERM: "this user may not read it",
  EISDIR: "is a directory, not a file",
};

/** The error of a file that cannot be read, in words. */
export function unreadable(file: string, cause: unknown): TlsFileError {
  const code = errorCode(cause) ?? "";
  return new TlsFileError(file, `cannot be read: ${UNREADABLE[code] ?? (code || "unknown")}`, cause);
}
