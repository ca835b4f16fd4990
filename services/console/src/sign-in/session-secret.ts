import { createHash, randomBytes } from "node:crypto";

/** A session's secret in two halves. Each is useless without the other. */
export interface SessionSecret {
  /** Public: 12 hexadecimal digits. */
  readonly id: string;
  /** The half in the cookie, "rcs_<id>_<random>": scripts cannot read it. */
  readonly cookie: string;
  /** The half that the page stores for its own origin. Other ports of the host receive only the cookie. */
  readonly proof: string;
  /** The hash under which the store keeps the whole secret, as for any bearer token. */
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

/** Join both halves to a bearer token; null when they are malformed. */
export function bearerOfHalves(cookie: string, proof: string): string | null {
  return COOKIE_HALF.test(cookie) && PROOF_HALF.test(proof) ? joined(cookie, proof) : null;
}

/** Create the text of a new sign-in code. */
export function newCodeText(): string {
  return `rcc_${randomText()}`;
}

/**
 * The hash under which the store keeps a secret. Secrets are long and random, so a slow hash would not make
 * them safer.
 */
export function hashOf(secret: string): Buffer {
  return createHash("sha256").update(secret, "utf8").digest();
}

function joined(cookie: string, proof: string): string {
  return `${cookie}.${proof}`;
}

function randomText(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}
