import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { joinTokenText } from "@rollcall/domain";
import { joinTokenHash } from "@rollcall/store";

/** A join token that was just made. */
export interface NewText {
  /** Public: 12 hexadecimal digits. */
  readonly id: string;
  /** What machines give. */
  readonly text: string;
  /** With the caller's own token, it gives the same secret again. */
  readonly salt: Uint8Array;
}

/** What is remembered of a text: not enough to tell it. */
export type TextTrace = Pick<NewText, "id" | "salt"> & { readonly hash: Uint8Array };

const SECRET_BYTES = 32;

/**
 * Make the text of a new token. Its secret follows from random bytes and the caller's own token, which is kept nowhere:
 * who repeats a request is told the same text, and the record, which has the random bytes, cannot tell it.
 */
export function newText(clusterId: string, bearer: string): NewText {
  const id = randomBytes(6).toString("hex");
  const salt = new Uint8Array(randomBytes(SECRET_BYTES));
  return { id, salt, text: textOf(clusterId, bearer, { id, salt }) };
}

/** The text that was made with this bearer; empty for any other. */
export function textAgain(clusterId: string, bearer: string, trace: TextTrace): string {
  const text = textOf(clusterId, bearer, trace);
  return timingSafeEqual(joinTokenHash(text), trace.hash) ? text : "";
}

function textOf(clusterId: string, bearer: string, { id, salt }: Pick<NewText, "id" | "salt">): string {
  const secret = createHmac("sha256", bearer).update(`rollcall join token ${id}\n`).update(salt);
  return joinTokenText(clusterId, id, secret.digest("base64url"));
}
