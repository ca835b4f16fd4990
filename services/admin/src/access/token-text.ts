import { createHmac, randomBytes } from "node:crypto";

/** The text of an access token, with the parts of it that may be shown. */
export interface TokenText {
  /** Public: 12 hexadecimal digits. */
  readonly id: string;
  /** "rc_<id>_<secret>". */
  readonly text: string;
}

const SECRET_BYTES = 32;

/** A new token: "rc_", its public id, and 32 random bytes. */
export function newTokenText(): TokenText {
  return tokenText(newTokenId(), randomBytes(SECRET_BYTES));
}

/** A public id that no token has yet. */
export function newTokenId(): string {
  return randomBytes(6).toString("hex");
}

/** Random bytes that make what is derived from one request different from what another of the same id would get. */
export function newSalt(): Uint8Array {
  return new Uint8Array(randomBytes(SECRET_BYTES));
}

/**
 * The token of a request that may be repeated. Its secret follows from the caller's own token, which is kept nowhere,
 * so that the same caller gets the same text again, and the record, which has the salt, cannot tell it.
 *
 * @param bearer the caller's own token, whole.
 */
export function derivedTokenText(id: string, bearer: string, salt: Uint8Array): TokenText {
  return tokenText(id, derivedSecret("access", id, bearer, salt));
}

/** What is kept secret by a derived text: tokens, and what signs deliveries. */
type SecretKind = "access" | "join" | "webhook";

/** The secret of a token that the holder of `bearer` may ask for again. */
export function derivedSecret(kind: SecretKind, id: string, bearer: string, salt: Uint8Array): Buffer {
  return createHmac("sha256", bearer).update(`rollcall ${kind} token ${id}\n`).update(salt).digest();
}

function tokenText(id: string, secret: Uint8Array): TokenText {
  return { id, text: `rc_${id}_${Buffer.from(secret).toString("base64url")}` };
}
