import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** Seals the secrets of webhooks for the record, each for its webhook alone. */
export interface SecretSeal {
  seal(name: string, secret: Uint8Array): Buffer;
  /** Null for what was sealed with another key, for another webhook, or was changed. */
  open(name: string, sealed: Uint8Array): Buffer | null;
}

/** Secrets of webhooks have so many random bytes. */
export const SECRET_BYTES = 32;

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";

/**
 * Create the seal. Its key follows from the cluster's secret, which is in another table, and from a key outside of the
 * record where there is one: who reads the table of webhooks alone learns no secret, and with such a key neither does
 * who reads the whole record or a backup.
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
        // It does not say which of the reasons it was.
        return null;
      }
    },
  };
}

/** The sealed secrets of a webhook. */
export interface SealedSecrets {
  readonly name: string;
  readonly secret: Uint8Array;
  /** The one before; null without one. */
  readonly formerSecret: Uint8Array | null;
  /** Until when the one before signs too, by the wall; null without one. */
  readonly formerUntilMs: number | null;
}

/** Which secrets sign at a wall time, as Standard Webhooks writes them; null when the present one cannot be read. */
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

/** A secret as Standard Webhooks writes it. */
export function secretText(secret: Uint8Array): string {
  return `whsec_${Buffer.from(secret).toString("base64")}`;
}
