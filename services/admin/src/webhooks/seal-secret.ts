import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** Encrypts webhook secrets for the store, each bound to its webhook. */
export interface SecretSeal {
  seal(name: string, secret: Uint8Array): Buffer;
  /** Decrypt a secret. Returns null when it was sealed with another key or for another webhook, or was changed. */
  open(name: string, sealed: Uint8Array): Buffer | null;
}

/** Number of random bytes in a webhook secret. */
export const SECRET_BYTES = 32;

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";

/**
 * Create the seal. Its key is derived from the cluster's secret, which is in another table, and from a key outside the
 * store if there is one. The webhooks table alone therefore reveals no secret. With an outer key, neither does the
 * whole store or a backup.
 */
export function createSecretSeal(clusterSecret: Uint8Array, outerKey: string | undefined): SecretSeal {
  const key = Buffer.from(hkdfSync("sha256", clusterSecret, outerKey ?? "", "rollcall webhook secrets", SECRET_BYTES));
  const boundTo = (name: string) => Buffer.from(`webhook/${name}`);
  return {
    seal: (name, secret) => {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(boundTo(name));
      const sealed = [cipher.update(secret), cipher.final()];
      return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), ...sealed]);
    },
    open: (name, sealed) => {
      const bytes = Buffer.from(sealed);
      if (bytes[0] !== VERSION || bytes.length <= 1 + NONCE_BYTES + TAG_BYTES) return null;
      const nonce = bytes.subarray(1, 1 + NONCE_BYTES);
      const tag = bytes.subarray(1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES);
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(boundTo(name)).setAuthTag(tag);
      try {
        return Buffer.concat([decipher.update(bytes.subarray(1 + NONCE_BYTES + TAG_BYTES)), decipher.final()]);
      } catch {
        return null;
      }
    },
  };
}

export interface SealedSecrets {
  readonly name: string;
  readonly secret: Uint8Array;
  /** The previous secret; null for none. */
  readonly formerSecret: Uint8Array | null;
  /** Until when deliveries are also signed with the previous secret, by the wall clock; null for none. */
  readonly formerUntilMs: number | null;
}

/**
 * The secrets that sign a delivery at a wall time, in the format of Standard Webhooks; null when the current secret
 * cannot be decrypted.
 */
export function openSecrets(
  seal: SecretSeal,
  { name, secret, formerSecret, formerUntilMs }: SealedSecrets,
): ((wallMs: number) => readonly string[]) | null {
  const present = seal.open(name, secret);
  if (present === null) return null;
  const former = formerSecret === null ? null : seal.open(name, formerSecret);
  const alone = [secretText(present)];
  if (former === null || formerUntilMs === null) return () => alone;
  const both = [...alone, secretText(former)];
  return (wallMs) => (wallMs < formerUntilMs ? both : alone);
}

/** Format a secret as Standard Webhooks does. */
export function secretText(secret: Uint8Array): string {
  return `whsec_${Buffer.from(secret).toString("base64")}`;
}
