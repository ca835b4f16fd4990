import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";

const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
/** The fixed start of a SubjectPublicKeyInfo of Ed25519 (RFC 8410); the raw key follows. */
const SPKI_PREFIX_BYTES = 12;

/** The identity of a node: it signs proofs with the private key and registers the public one. */
export interface NodeKeyPair {
  /** 32 bytes, as registered. */
  readonly publicKey: Uint8Array;
  readonly privateKey: KeyObject;
}

/** Make a new Ed25519 identity. */
export function generateKeyPair(): NodeKeyPair {
  const { privateKey } = generateKeyPairSync("ed25519");
  return { publicKey: rawPublicKey(privateKey), privateKey };
}

/** The text (PKCS 8, PEM) in which a private key is kept in a file. */
export function privateKeyToPem(privateKey: KeyObject): string {
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Read an identity from its file's text. Throws when the text is no Ed25519 private key. */
export function keyPairFromPem(pem: string): NodeKeyPair {
  const privateKey = createPrivateKey(pem);
  if (privateKey.asymmetricKeyType !== "ed25519") {
    throw new Error(`expected an Ed25519 key, got ${privateKey.asymmetricKeyType}`);
  }
  return { publicKey: rawPublicKey(privateKey), privateKey };
}

/** Sign the text of a proof: 64 bytes. */
export function signProof(privateKey: KeyObject, text: string): Uint8Array {
  return sign(null, Buffer.from(text, "utf8"), privateKey);
}

/** Whether the holder of a raw public key signed this text. False, never an error, for anything malformed. */
export function verifyProof(publicKey: Uint8Array, text: string, signature: Uint8Array): boolean {
  if (publicKey.length !== PUBLIC_KEY_BYTES || signature.length !== SIGNATURE_BYTES) return false;
  try {
    return verify(null, Buffer.from(text, "utf8"), importPublicKey(publicKey), signature);
  } catch {
    // 32 bytes that are no point of the curve: such a key has signed nothing.
    return false;
  }
}

/**
 * The same, verified by the threads that Node.js has for such work: a fifth of its time is left for the event loop. For
 * many proofs at a time.
 */
export async function verifyProofAside(publicKey: Uint8Array, text: string, signature: Uint8Array): Promise<boolean> {
  if (publicKey.length !== PUBLIC_KEY_BYTES || signature.length !== SIGNATURE_BYTES) return false;
  try {
    const key = importPublicKey(publicKey);
    return await new Promise((resolve) => {
      verify(null, Buffer.from(text, "utf8"), key, signature, (error, isValid) => resolve(error === null && isValid));
    });
  } catch {
    return false;
  }
}

/** How a key is named to people: "SHA256:" and the base64url of its hash. */
export function keyFingerprint(publicKey: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(publicKey).digest("base64url")}`;
}

/**
 * As a JWK: OpenSSL takes ten times as long to find out what a DER text holds, which is as long as the verification
 * itself.
 */
function importPublicKey(publicKey: Uint8Array): KeyObject {
  const x = Buffer.from(publicKey).toString("base64url");
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
}

function rawPublicKey(privateKey: KeyObject): Uint8Array {
  const spki = createPublicKey(privateKey).export({ type: "spki", format: "der" });
  return new Uint8Array(spki.subarray(SPKI_PREFIX_BYTES));
}
