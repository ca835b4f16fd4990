import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** A started sign-in, against which the issuer's response is checked. */
export interface Attempt {
  readonly issuer: string;
  readonly state: string;
  readonly nonce: string;
  /** The code verifier of PKCE. */
  readonly verifier: string;
  readonly redirectUri: string;
  /** When the attempt expires, by the wall clock. */
  readonly expiresAtMs: number;
}

/** Encrypts attempts, so that the browser keeps them and no process has to. */
export interface AttemptSeal {
  seal(attempt: Attempt): string;
  /** Decrypt an attempt. Returns null when another cluster sealed the text, or when the text was changed. */
  open(text: string): Attempt | null;
}

const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Create a seal whose key is derived from the cluster's secret, so that every process can open what another
 * sealed.
 */
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
        // The cast is safe, because the authentication tag proves that seal() wrote the text.
        return JSON.parse(opened.toString("utf8")) as Attempt;
      } catch {
        // Do not give the reason, which would only help a forger.
        return null;
      }
    },
  };
}
