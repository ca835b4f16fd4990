const SEQUENCE = 0x30;
const SET = 0x31;
const CONTEXT = 0x80;
const CONSTRUCTED = 0x20;

/** Encode an element: tag, length, content. */
function element(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body]);
}

export const sequence = (...content: readonly Uint8Array[]): Buffer => element(SEQUENCE, ...content);
export const setOf = (...content: readonly Uint8Array[]): Buffer => element(SET, ...content);
export const octets = (content: Uint8Array): Buffer => element(0x04, content);
export const utf8Text = (text: string): Buffer => element(0x0c, Buffer.from(text, "utf8"));
export const truth = (): Buffer => element(0x01, Buffer.from([0xff]));

/** Encode a non-negative integer from its bytes. */
export function unsigned(bytes: Uint8Array): Buffer {
  const firstUsed = bytes.findIndex((byte) => byte !== 0);
  const digits = firstUsed < 0 ? Buffer.from([0]) : Buffer.from(bytes.subarray(firstUsed));
  // Add a zero byte if the first bit is set, because that bit is the sign.
  return (digits[0] ?? 0) < 0x80 ? element(0x02, digits) : element(0x02, Buffer.from([0]), digits);
}

/** Encode a bit string, without its last `unused` bits. */
export function bits(content: Uint8Array, unused = 0): Buffer {
  return element(0x03, Buffer.from([unused]), content);
}

/** Encode an element with a context-specific tag: `[n]`. */
export function tagged(n: number, content: Uint8Array, kind: "explicit" | "implicit"): Buffer {
  return element(CONTEXT | (kind === "explicit" ? CONSTRUCTED : 0) | n, content);
}

/** Encode an object identifier such as "2.5.29.15". */
export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/**
 * Encode a time with a precision of one second. Certificates write years before 2050 with two
 * digits, and later years with four.
 */
export function time(atMs: number): Buffer {
  const digits = new Date(atMs)
    .toISOString()
    .replace(/\.\d+Z$/, "Z")
    .replace(/[-:T]/g, "");
  return digits < "2050"
    ? element(0x17, Buffer.from(digits.slice(2), "ascii"))
    : element(0x18, Buffer.from(digits, "ascii"));
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(length);
  const used = bytes.subarray(bytes.findIndex((byte) => byte !== 0));
  return Buffer.concat([Buffer.from([0x80 | used.length]), used]);
}

function base128(value: number): readonly number[] {
  const groups = [value & 0x7f];
  for (let left = value >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
  return groups;
}
