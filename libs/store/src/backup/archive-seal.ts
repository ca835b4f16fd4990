import { createCipheriv, createDecipheriv, createHmac, randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { Transform } from "node:stream";
import { ArchiveError, damaged } from "./archive-frames.ts";

/** How an archive is encrypted. The header itself is not encrypted. */
export interface SealHeader {
  readonly cipher: "aes-256-gcm";
  /** Parameters of scrypt. */
  readonly cost: number;
  readonly blockSize: number;
  readonly salt: string;
  /** Verifies the passphrase before anything is decrypted. Salt, key and check are base64. */
  readonly check: string;
}

const COST = 2 ** 16;
const BLOCK_SIZE = 8;
/** The highest cost that a header can demand: 512 MiB of memory. */
const HIGHEST_COST = 2 ** 19;
const MEMORY_MARGIN_BYTES = 2 ** 20;
const SALT_BYTES = 16;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Unencrypted bytes per chunk. */
const CHUNK_BYTES = 64 * 1024;

/** Derive a key from a passphrase and a new salt, and encrypt with it. */
export async function createSeal(passphrase: string): Promise<{ header: SealHeader; seal: Transform }> {
  const salt = randomBytes(SALT_BYTES).toString("base64");
  const terms = { cipher: "aes-256-gcm", cost: COST, blockSize: BLOCK_SIZE, salt } as const;
  const { key, check } = await deriveKeys(passphrase, terms);
  return { header: { ...terms, check }, seal: new ChunkCipher(key, "seal") };
}

/**
 * Derive the key again from the passphrase, and decrypt with it.
 *
 * @throws ArchiveError for a wrong passphrase.
 */
export async function openSeal(header: SealHeader, passphrase: string): Promise<Transform> {
  const { key, check } = await deriveKeys(passphrase, header);
  if (!isSame(check, header.check)) throw new ArchiveError("the passphrase of the archive is wrong");
  return new ChunkCipher(key, "open");
}

/** Whether this is a valid header whose cost is within the limits. */
export function isSealHeader(value: unknown): value is SealHeader {
  const { cipher, cost, blockSize, salt, check } = Object(value);
  return (
    cipher === "aes-256-gcm" &&
    Number.isInteger(Math.log2(cost)) &&
    cost >= 2 &&
    cost <= HIGHEST_COST &&
    blockSize === BLOCK_SIZE &&
    typeof salt === "string" &&
    typeof check === "string"
  );
}

type Terms = Omit<SealHeader, "check">;

async function deriveKeys(passphrase: string, terms: Terms): Promise<{ key: Buffer; check: string }> {
  const { cost, blockSize, salt } = terms;
  const maxmem = 128 * cost * blockSize + MEMORY_MARGIN_BYTES;
  const both = await new Promise<Buffer>((resolve, reject) => {
    const options = { N: cost, r: blockSize, p: 1, maxmem };
    // Normalize to NFKC, so that composed and decomposed characters yield the same key.
    scrypt(passphrase.normalize("NFKC"), Buffer.from(salt, "base64"), 2 * KEY_BYTES, options, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
  const check = createHmac("sha256", both.subarray(KEY_BYTES)).update(`${cost} ${blockSize} ${salt}`).digest("base64");
  return { key: both.subarray(0, KEY_BYTES), check };
}

function isSame(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one, "base64"), Buffer.from(other, "base64")];
  return left.length === right.length && timingSafeEqual(left, right);
}

/**
 * Encrypts or decrypts in chunks of a fixed size. The nonce of a chunk consists of its number and whether it is the
 * last, so decryption fails if a chunk is missing, moved or truncated. Each archive has its own salt, so no key is
 * used twice.
 */
class ChunkCipher extends Transform {
  readonly #key: Buffer;
  readonly #work: "seal" | "open";
  readonly #chunkBytes: number;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #number = 0;

  constructor(key: Buffer, work: "seal" | "open") {
    super();
    this.#key = key;
    this.#work = work;
    this.#chunkBytes = work === "seal" ? CHUNK_BYTES : CHUNK_BYTES + TAG_BYTES;
  }

  override _transform(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.length;
    // Hold back the last chunk until the end of the stream shows that it is the last.
    if (this.#pendingBytes <= this.#chunkBytes) {
      done();
      return;
    }
    try {
      this.#passOn(Buffer.concat(this.#pending));
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  #passOn(bytes: Buffer): void {
    let rest = bytes;
    for (; rest.length > this.#chunkBytes; rest = rest.subarray(this.#chunkBytes)) {
      this.push(this.#chunk(rest.subarray(0, this.#chunkBytes), false));
    }
    this.#pending = [rest];
    this.#pendingBytes = rest.length;
  }

  override _flush(done: (error?: Error | null) => void): void {
    try {
      this.push(this.#chunk(Buffer.concat(this.#pending), true));
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  #chunk(bytes: Buffer, isLast: boolean): Buffer {
    const nonce = Buffer.alloc(NONCE_BYTES);
    nonce.writeUIntBE(this.#number, NONCE_BYTES - 7, 6);
    nonce[NONCE_BYTES - 1] = isLast ? 1 : 0;
    this.#number += 1;
    return this.#work === "seal" ? this.#encrypt(bytes, nonce) : this.#decrypt(bytes, nonce);
  }

  #encrypt(bytes: Buffer, nonce: Buffer): Buffer {
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonce);
    return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }

  #decrypt(bytes: Buffer, nonce: Buffer): Buffer {
    if (bytes.length < TAG_BYTES) throw damaged("it is truncated");
    const decipher = createDecipheriv("aes-256-gcm", this.#key, nonce);
    decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]);
    } catch (cause) {
      throw damaged(`its encrypted chunk ${this.#number} was modified, or the archive was truncated there`, cause);
    }
  }
}
