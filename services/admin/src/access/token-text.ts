import { createHmac, randomBytes } from "node:crypto";

/** The text of an access token, with its public parts. */
export interface TokenText {
  /** Public: 12 hexadecimal digits. */
  readonly id: string;
  /** "rc_<id>_<secret>". */
  readonly text: string;
}

const SECRET_BYTES = 32;

/** Create a token: "rc_", its public id, and 32 random bytes. */
export function newTokenText(): TokenText {
  return tokenText(newTokenId(), randomBytes(SECRET_BYTES));
}

/** Create a random public id. */
export function newTokenId(): string {
  return randomBytes(6).toString("hex");
}

/** Create random bytes, so that two requests with the same id never derive the same secret. */
export function newSalt(): Uint8Array {
  return new Uint8Array(randomBytes(SECRET_BYTES));
}

/**
 * The token of a request that can be repeated. Its secret is derived from the caller's own token, which is not
 * stored. The same caller therefore gets the same text again, but the salt in the store is not enough to
 * derive it.
 *
 * @param bearer The caller's complete token.
 */
export function derivedTokenText(id: string, bearer: string, salt: Uint8Array): TokenText {
  return tokenText(id, derivedSecret("access", id, bearer, salt));
}

/** The use of a derived secret: access tokens, join tokens, or the signatures of webhook deliveries. */
type SecretKind = "access" | "join" | "webhook";

/** The secret that the holder of `bearer` can request again. */
export function derivedSecret(kind: SecretKind, id: string, bearer: string, salt: Uint8Array): Buffer {
  return createHmac("sha256", bearer).update(`rollcall ${kind} token ${id}\n`).update(salt).digest();
}

function tokenText(id: string, secret: Uint8Array): TokenText {
  return { id, text: `rc_${id}_${Buffer.from(secret).toString("base64url")}` };
}
