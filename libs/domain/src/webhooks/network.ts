/** An IP address, as 4 or 16 bytes. */
export type AddressBytes = readonly number[];

/** A range of IP addresses. */
export interface Network {
  readonly bytes: AddressBytes;
  /** The number of leading bits that all addresses of the range share. */
  readonly bits: number;
}

const V4_BYTES = 4;
const V6_GROUPS = 8;
const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/**
 * Parse an address in the form that sockets and resolvers use; null for any other string, such as octal and decimal
 * forms of IPv4. An IPv4-mapped address ("::ffff:10.0.0.1") becomes the IPv4 address. A zone ("%eth0") is ignored.
 */
export function parseIpAddress(text: string): AddressBytes | null {
  const [address = ""] = text.split("%", 1);
  if (!address.includes(":")) return parseV4(address);
  const bytes = parseV6(address);
  if (bytes === null) return null;
  const isMapped = MAPPED_PREFIX.every((byte, index) => bytes[index] === byte);
  return isMapped ? bytes.slice(MAPPED_PREFIX.length) : bytes;
}

/**
 * A parsed range, or a description of the problem to append to the text, for example "has a zone, which a network
 * cannot have".
 */
export type ReadNetwork =
  | { readonly ok: true; readonly network: Network }
  | { readonly ok: false; readonly problem: string };

const refused = (problem: string) => ({ ok: false, problem }) as const;

/**
 * Parse a range such as "10.0.0.0/8", or a single address. As in Go's ParseCIDR, bits after the prefix are ignored.
 * Forms that other programs interpret differently are refused: zones, leading zeros, short forms of IPv4, and masks
 * such as /255.0.0.0.
 */
export function readNetwork(text: string): ReadNetwork {
  const [address = "", length, ...rest] = text.trim().split("/");
  if (address.includes("%")) return refused("has a zone, which a network cannot have");
  const bytes = parseIpAddress(address);
  if (bytes === null || rest.length > 0) return refused("is not an IP address, or a network such as 10.0.0.0/8");
  const most = bytes.length * 8;
  if (length === undefined) return { ok: true, network: { bytes, bits: most } };
  // The length of an IPv4 network in IPv6 form, such as ::ffff:10.0.0.0/104, includes the 96 bits before the IPv4
  // address.
  const prefix = most === 32 && address.includes(":") ? 96 : 0;
  const isLength = /^(0|[1-9][0-9]{0,2})$/.test(length) && Number(length) >= prefix && Number(length) <= most + prefix;
  if (isLength) return { ok: true, network: { bytes, bits: Number(length) - prefix } };
  return refused(`needs a prefix length from ${prefix} to ${most + prefix}`);
}

/** Describe why a range is invalid, including its text; null if it is valid. */
export function networkProblem(text: string): string | null {
  const read = readNetwork(text);
  return read.ok ? null : `"${text}" ${read.problem}`;
}

/** Like readNetwork(), but returns null if the text is not a range. */
export function parseNetwork(text: string): Network | null {
  const read = readNetwork(text);
  return read.ok ? read.network : null;
}

export function isInNetwork(address: AddressBytes, { bytes, bits }: Network): boolean {
  if (address.length !== bytes.length) return false;
  return bytes.every((byte, index) => {
    const ofByte = Math.min(8, Math.max(0, bits - index * 8));
    const mask = (0xff << (8 - ofByte)) & 0xff;
    return ((address[index] ?? 0) & mask) === (byte & mask);
  });
}

function parseV4(text: string): AddressBytes | null {
  const parts = text.split(".");
  // Refuse leading zeros, because some programs read a number with leading zeros as octal.
  if (parts.length !== V4_BYTES || !parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part))) return null;
  const bytes = parts.map(Number);
  return bytes.every((byte) => byte <= 0xff) ? bytes : null;
}

function parseV6(text: string): AddressBytes | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [head, tail] = halves.map(groupsOf);
  if (head === undefined || head === null || tail === null) return null;
  const missing = V6_GROUPS - head.length - (tail?.length ?? 0);
  // Require at least one group for "::".
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  const groups = [...head, ...Array.from({ length: missing }, () => 0), ...(tail ?? [])];
  return groups.flatMap((group) => [group >> 8, group & 0xff]);
}

/** The groups on one side of "::"; null if any of them is invalid. The last group can be an IPv4 address. */
function groupsOf(text: string): readonly number[] | null {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (part.includes(".")) {
      const v4 = index === parts.length - 1 ? parseV4(part) : null;
      if (v4 === null) return null;
      const [a = 0, b = 0, c = 0, d = 0] = v4;
      groups.push((a << 8) | b, (c << 8) | d);
    } else if (/^[0-9A-Fa-f]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16));
    else return null;
  }
  return groups;
}
