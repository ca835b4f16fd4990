import { createHash, randomBytes } from "node:crypto";

/** A session's secret in two halves, neither of which opens anything alone. */
export interface SessionSecret {
  /** Public: 12 hexadecimal digits. */
  readonly id: string;
  /** The half of the cookie, "rcs_<id>_<random>": no script can read it. */
  readonly cookie: string;
  /** The half of the page, which it keeps for its own origin: other ports of the host get the cookie alone. */
  readonly proof: string;
  /** Under which the record keeps the whole, as it does with any bearer token. */
  readonly hash: Buffer;
}

const SECRET_BYTES = 32;
const COOKIE_HALF = /^rcs_[0-9a-f]{12}_[\w-]{43}$/;
const PROOF_HALF = /^[\w-]{43}$/;

/** Make the secret of a new session. */
export function newSessionSecret(): SessionSecret {
  const id = randomBytes(6).toString("hex");
  const cookie = `rcs_${id}_${randomText()}`;
  const proof = randomText();
  return { id, cookie, proof, hash: hashOf(joined(cookie, proof)) };
}

/** The bearer token that both halves make; null for what cannot be halves of one. */
export function bearerOfHalves(cookie: string, proof: string): string | null {
  return COOKIE_HALF.test(cookie) && PROOF_HALF.test(proof) ? joined(cookie, proof) : null;
}

/** The text of a new code to sign in with. */
export function newCodeText(): string {
  return `rcc_${randomText()}`;
}

/** Under which the record keeps a secret. Secrets are random and long, so a slow hash would protect nothing. */
export function hashOf(secret: string): Buffer {
  return createHash("sha256").update(secret, "utf8").digest();
}

function joined(cookie: string, proof: string): string {
  return `${cookie}.${proof}`;
}

function randomText(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}
