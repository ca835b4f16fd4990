import { type AddressBytes, isInNetwork, type Network, parseIpAddress, parseNetwork } from "./network.ts";

/** Whether events may be posted to an address, and what it is where they may not. */
export type AddressJudgement = { readonly ok: true } | { readonly ok: false; readonly kind: string };

/**
 * Judge an address that is about to be connected to. Public ones are allowed, and those of `allowed`; all that the
 * registries of special addresses of IANA have are refused otherwise, tunnels to IPv4 by what is at their end.
 */
export function judgeAddress(address: string, allowed: readonly Network[]): AddressJudgement {
  const bytes = parseIpAddress(address);
  if (bytes === null) return { ok: false, kind: "no address" };
  if (allowed.some((network) => isInNetwork(bytes, network))) return { ok: true };
  const special = SPECIAL.find(({ network }) => isInNetwork(bytes, network));
  if (special !== undefined) return { ok: false, kind: special.kind };
  const inner = tunnelEnd(bytes);
  if (inner !== null) return judgeAddress(inner.join("."), allowed);
  // Of IPv6 only this part has ever been given to anyone.
  const isUnassigned = bytes.length !== 4 && !isInNetwork(bytes, GLOBAL_UNICAST) && !isInNetwork(bytes, NAT64);
  return isUnassigned ? { ok: false, kind: "unassigned" } : { ok: true };
}

const GLOBAL_UNICAST = networkOf("2000::/3");
const NAT64 = networkOf("64:ff9b::/96");
const SIX_TO_FOUR = networkOf("2002::/16");

/** The IPv4 address that NAT64 or 6to4 leads to; null for an address that is no tunnel. */
function tunnelEnd(bytes: AddressBytes): AddressBytes | null {
  if (isInNetwork(bytes, NAT64)) return bytes.slice(12);
  return isInNetwork(bytes, SIX_TO_FOUR) ? bytes.slice(2, 6) : null;
}

/** The registries of special-purpose addresses of IANA, as RFC 6890 began them, with multicast and what is reserved. */
const SPECIAL = [
  ["0.0.0.0/8", "this machine"],
  ["10.0.0.0/8", "private"],
  ["100.64.0.0/10", "shared by a carrier"],
  ["127.0.0.0/8", "loopback"],
  ["169.254.0.0/16", "link-local, where clouds serve metadata"],
  ["172.16.0.0/12", "private"],
  ["192.0.0.0/24", "for protocols"],
  ["192.0.2.0/24", "for documents"],
  ["192.88.99.0/24", "for protocols"],
  ["192.168.0.0/16", "private"],
  ["198.18.0.0/15", "for measurements"],
  ["198.51.100.0/24", "for documents"],
  ["203.0.113.0/24", "for documents"],
  ["224.0.0.0/4", "multicast"],
  ["240.0.0.0/4", "reserved"],
  // Also those that are compatible with IPv4, long obsolete.
  ["::/96", "this machine or loopback"],
  ["64:ff9b:1::/48", "private"],
  ["100::/64", "discarded"],
  ["2001::/23", "for protocols"],
  ["2001:db8::/32", "for documents"],
  ["3fff::/20", "for documents"],
  ["5f00::/16", "for protocols"],
  ["fc00::/7", "private"],
  ["fe80::/10", "link-local"],
  ["fec0::/10", "private"],
  ["ff00::/8", "multicast"],
].map(([text = "", kind = ""]) => ({ network: networkOf(text), kind }));

function networkOf(text: string): Network {
  const network = parseNetwork(text);
  if (network === null) throw new Error(`${text} is no network`);
  return network;
}
