/**
 * What of an address is one party, as far as that can be told: the whole of an IPv4 address, and the /64 of an IPv6
 * address, of which any host has as many as it likes. Anything else is a party of its own.
 *
 * @param peer HOST:PORT, [HOST]:PORT or HOST.
 */
export function addressGroup(peer: string): string {
  const host = hostOf(peer);
  if (!host.includes(":")) return host;
  // grpc-js writes IPv6 without brackets, its port included; of the first four groups that port is never one.
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?$/i.exec(host)?.[1];
  if (mapped !== undefined) return mapped;
  const [address = ""] = host.split("%", 1);
  const [head = "", tail] = address.toLowerCase().split("::", 2);
  const groups = head === "" ? [] : head.split(":");
  const behind = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - behind.length);
  const all = [...groups, ...Array.from({ length: zeros }, () => "0"), ...behind];
  const network = all.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ""));
  return `${network.join(":")}::/64`;
}

/** The host of HOST:PORT, [HOST]:PORT or HOST. */
export function hostOf(peer: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(peer)?.[1];
  if (bracketed !== undefined) return bracketed;
  const colons = peer.split(":").length - 1;
  return colons === 1 ? peer.slice(0, peer.indexOf(":")) : peer;
}
