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
/** The length of the fixed prefix of an Ed25519 SubjectPublicKeyInfo (RFC 8410). The raw key follows the prefix. */
const SPKI_PREFIX_BYTES = 12;

/** A node's identity. The node signs proofs with the private key and registers the public key. */
export interface NodeKeyPair {
  /** The raw public key, 32 bytes, as registered. */
  readonly publicKey: Uint8Array;
  readonly privateKey: KeyObject;
}

/** Generate a new Ed25519 identity. */
export function generateKeyPair(): NodeKeyPair {
  const { privateKey } = generateKeyPairSync("ed25519");
  return { publicKey: rawPublicKey(privateKey), privateKey };
}

/** Encode a private key for a file (PKCS #8, PEM). */
export function privateKeyToPem(privateKey: KeyObject): string {
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Parse an identity from the content of a file. Throws when the content is not an Ed25519 private key. */
export function keyPairFromPem(pem: string): NodeKeyPair {
  const privateKey = createPrivateKey(pem);
  if (privateKey.asymmetricKeyType !== "ed25519") {
    throw new Error(`expected an Ed25519 key, got ${privateKey.asymmetricKeyType}`);
  }
  return { publicKey: rawPublicKey(privateKey), privateKey };
}

/** Sign the text of a proof. Returns 64 bytes. */
export function signProof(privateKey: KeyObject, text: string): Uint8Array {
  return sign(null, Buffer.from(text, "utf8"), privateKey);
}

/** Whether the holder of a raw public key signed this text. Returns false, without throwing, for malformed input. */
export function verifyProof(publicKey: Uint8Array, text: string, signature: Uint8Array): boolean {
  if (publicKey.length !== PUBLIC_KEY_BYTES || signature.length !== SIGNATURE_BYTES) return false;
  try {
    return verify(null, Buffer.from(text, "utf8"), importPublicKey(publicKey), signature);
  } catch {
    // Return false, because the 32 bytes are not a point on the curve, so no signature can be valid.
    return false;
  }
}

/**
 * Like verifyProof(), but on the thread pool of Node.js, so that only a fifth of the cost stays on the event loop.
 * Use it to verify many proofs concurrently.
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

/** A key's fingerprint for people: "SHA256:" and the base64url of the key's hash. */
export function keyFingerprint(publicKey: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(publicKey).digest("base64url")}`;
}

/**
 * Import the key as a JWK. OpenSSL would take ten times as long to parse DER, about as long as the verification
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
