import { type AddressBytes, isInNetwork, type Network, parseIpAddress, parseNetwork } from "./network.ts";

/** Whether events can be sent to an address. If not, `kind` is the kind of the address. */
export type AddressEvaluation = { readonly ok: true } | { readonly ok: false; readonly kind: string };

/**
 * Check an address before connecting to it. Public addresses and those in `allowed` are accepted. All others in
 * IANA's registries of special-purpose addresses are refused. For a tunnel to IPv4, the inner address is checked.
 */
export function evaluateAddress(address: string, allowed: readonly Network[]): AddressEvaluation {
  const bytes = parseIpAddress(address);
  if (bytes === null) return { ok: false, kind: "not an address" };
  if (allowed.some((network) => isInNetwork(bytes, network))) return { ok: true };
  const special = SPECIAL.find(({ network }) => isInNetwork(bytes, network));
  if (special !== undefined) return { ok: false, kind: special.kind };
  const inner = tunnelEnd(bytes);
  if (inner !== null) return evaluateAddress(inner.join("."), allowed);
  // Only 2000::/3 of IPv6 has been assigned for public use.
  const isUnassigned = bytes.length !== 4 && !isInNetwork(bytes, GLOBAL_UNICAST) && !isInNetwork(bytes, NAT64);
  return isUnassigned ? { ok: false, kind: "unassigned" } : { ok: true };
}

const GLOBAL_UNICAST = networkOf("2000::/3");
const NAT64 = networkOf("64:ff9b::/96");
const SIX_TO_FOUR = networkOf("2002::/16");

/** The IPv4 address inside a NAT64 or 6to4 address; null for any other address. */
function tunnelEnd(bytes: AddressBytes): AddressBytes | null {
  if (isInNetwork(bytes, NAT64)) return bytes.slice(12);
  return isInNetwork(bytes, SIX_TO_FOUR) ? bytes.slice(2, 6) : null;
}

/** IANA's registries of special-purpose addresses (RFC 6890), plus multicast and reserved addresses. */
const SPECIAL = [
  ["0.0.0.0/8", "this machine"],
  ["10.0.0.0/8", "private"],
  ["100.64.0.0/10", "for carrier-grade NAT"],
  ["127.0.0.0/8", "loopback"],
  ["169.254.0.0/16", "link-local, where clouds serve metadata"],
  ["172.16.0.0/12", "private"],
  ["192.0.0.0/24", "for protocol assignments"],
  ["192.0.2.0/24", "for documentation"],
  ["192.88.99.0/24", "for protocol assignments"],
  ["192.168.0.0/16", "private"],
  ["198.18.0.0/15", "for benchmarking"],
  ["198.51.100.0/24", "for documentation"],
  ["203.0.113.0/24", "for documentation"],
  ["224.0.0.0/4", "multicast"],
  ["240.0.0.0/4", "reserved"],
  // This includes the obsolete IPv4-compatible addresses.
  ["::/96", "this machine or loopback"],
  ["64:ff9b:1::/48", "private"],
  ["100::/64", "discarded"],
  ["2001::/23", "for protocol assignments"],
  ["2001:db8::/32", "for documentation"],
  ["3fff::/20", "for documentation"],
  ["5f00::/16", "for protocol assignments"],
  ["fc00::/7", "private"],
  ["fe80::/10", "link-local"],
  ["fec0::/10", "private"],
  ["ff00::/8", "multicast"],
].map(([text = "", kind = ""]) => ({ network: networkOf(text), kind }));

function networkOf(text: string): Network {
  const network = parseNetwork(text);
  if (network === null) throw new Error(`${text} is not a network`);
  return network;
}
