import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** A sign-in at an issuer that has begun: what its answer is checked against. */
export interface Attempt {
  readonly issuer: string;
  readonly state: string;
  readonly nonce: string;
  /** The secret of PKCE. */
  readonly verifier: string;
  readonly redirectUri: string;
  /** From when on it is worth nothing, by the wall clock. */
  readonly expiresAtMs: number;
}

/** Seals attempts for the browsers that begin them, so that no process has to keep any. */
export interface AttemptSeal {
  seal(attempt: Attempt): string;
  /** Null for what was not sealed here, or has been changed. */
  open(text: string): Attempt | null;
}

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Seal with a key that follows from the secret of the cluster: any process opens what another has sealed. */
export function createAttemptSeal(clusterSecret: Buffer): AttemptSeal {
  const key = Buffer.from(hkdfSync("sha256", clusterSecret, "", "rollcall console sign-in attempt", 32));
  return {
    seal: (attempt) => {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, iv);
      const sealed = Buffer.concat([cipher.update(JSON.stringify(attempt), "utf8"), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url");
    },
    open: (text) => {
      const bytes = Buffer.from(text, "base64url");
      if (bytes.length <= IV_BYTES + TAG_BYTES) return null;
      const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, IV_BYTES));
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      try {
        const opened = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
        // The tag says that it was made above.
        return JSON.parse(opened.toString("utf8")) as Attempt;
      } catch {
        // Not sealed here: what exactly is wrong with it would help a forger alone.
        return null;
      }
    },
  };
}
