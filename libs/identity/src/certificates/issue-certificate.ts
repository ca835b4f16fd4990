import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIP, isIPv4 } from "node:net";
import { domainToASCII } from "node:url";
import { bits, objectId, octets, sequence, setOf, tagged, time, truth, unsigned, utf8Text } from "./der.ts";

/** A certificate and its private key, as PEM. */
export interface Issued {
  readonly certPem: string;
  /** The private key as PKCS #8. Files that contain it have mode 0600. */
  readonly keyPem: string;
}

/** The validity period of a certificate, in wall-clock milliseconds since 1970. */
export interface Validity {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** The contents of a certificate. */
export interface CertificateRequest extends Validity {
  readonly commonName: string;
  /** The certificate's host names and IP addresses. */
  readonly names: readonly string[];
  readonly usage: "server" | "client";
}

const OID = {
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  commonName: "2.5.4.3",
  subjectKeyId: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyId: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  server: "1.3.6.1.5.5.7.3.1",
  client: "1.3.6.1.5.5.7.3.2",
} as const;

const DIGITAL_SIGNATURE = bits(Buffer.from([0x80]), 7);
const SIGN_CERTIFICATES = bits(Buffer.from([0x06]), 1);
const DNS_NAME = 2;
const IP_ADDRESS = 7;

/**
 * Create an authority: a self-signed certificate that can sign end-entity certificates but no further
 * authorities.
 */
export function createAuthority(options: Validity & { readonly commonName: string }): Issued {
  const { publicKey, privateKey } = newKeyPair();
  const extensions = [
    extension(OID.basicConstraints, sequence(truth(), unsigned(Buffer.from([0]))), true),
    extension(OID.keyUsage, SIGN_CERTIFICATES, true),
    extension(OID.subjectKeyId, octets(keyId(publicKey))),
  ];
  const subject = { ...options, publicKey, extensions };
  return issued(subject, { name: options.commonName, key: privateKey }, privateKey);
}

/** Create a certificate signed by an authority from createAuthority(). */
export function issueCertificate(authority: Issued, request: CertificateRequest): Issued {
  const { publicKey, privateKey } = newKeyPair();
  const issuer = new X509Certificate(authority.certPem);
  const extensions = [
    extension(OID.basicConstraints, sequence(), true),
    extension(OID.keyUsage, DIGITAL_SIGNATURE, true),
    extension(OID.extendedKeyUsage, sequence(objectId(OID[request.usage]))),
    extension(OID.subjectKeyId, octets(keyId(publicKey))),
    extension(OID.authorityKeyId, sequence(tagged(0, keyId(createPublicKey(authority.certPem)), "implicit"))),
    ...(request.names.length === 0
      ? []
      : [extension(OID.subjectAltName, sequence(...request.names.map(alternativeName)))]),
  ];
  const signer = {
    name: issuer.subject.replace(/^CN=/, "").replace(/\\(.)/g, "$1"),
    key: createPrivateKey(authority.keyPem),
  };
  return issued({ ...request, publicKey, extensions }, signer, privateKey);
}

interface Subject extends Validity {
  readonly commonName: string;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
}

function issued(
  subject: Subject,
  signer: { readonly name: string; readonly key: KeyObject },
  ownKey: KeyObject,
): Issued {
  const algorithm = sequence(objectId(OID.ecdsaWithSha256));
  const toBeSigned = sequence(
    tagged(0, unsigned(Buffer.from([2])), "explicit"),
    unsigned(randomBytes(16)),
    algorithm,
    distinguishedName(signer.name),
    sequence(time(subject.notBeforeMs), time(subject.notAfterMs)),
    distinguishedName(subject.commonName),
    spki(subject.publicKey),
    tagged(3, sequence(...subject.extensions), "explicit"),
  );
  const signature = sign("sha256", toBeSigned, signer.key);
  return {
    certPem: new X509Certificate(sequence(toBeSigned, algorithm, bits(signature))).toString(),
    keyPem: String(ownKey.export({ type: "pkcs8", format: "pem" })),
  };
}

function newKeyPair() {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function spki(key: KeyObject): Buffer {
  return key.export({ type: "spki", format: "der" });
}

function keyId(key: KeyObject): Buffer {
  return createHash("sha256").update(spki(key)).digest().subarray(0, 20);
}

function distinguishedName(commonName: string): Buffer {
  return sequence(setOf(sequence(objectId(OID.commonName), utf8Text(commonName))));
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  return isCritical ? sequence(objectId(id), truth(), octets(value)) : sequence(objectId(id), octets(value));
}

function alternativeName(name: string): Buffer {
  if (isIP(name) !== 0) return tagged(IP_ADDRESS, addressBytes(name), "implicit");
  const ascii = domainToASCII(name);
  return tagged(DNS_NAME, Buffer.from(ascii === "" ? name : ascii, "ascii"), "implicit");
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  // Use the URL parser to get the canonical form of the address, in which only the run of zeros must be
  // expanded.
  const [, canonical = ""] = /^\[(.*)\]$/.exec(new URL(`http://[${address}]`).hostname) ?? [];
  const [head = "", tail] = canonical.split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":"));
  const missing = tail === undefined ? 0 : 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array<string>(missing).fill("0"), ...groups(tail ?? "")];
  return Buffer.from(all.map((group) => group.padStart(4, "0")).join(""), "hex");
}
