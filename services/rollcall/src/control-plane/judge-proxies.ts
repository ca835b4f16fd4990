import { BlockList, isIP } from "node:net";
import type { HostJudgement } from "@rollcall/domain";

/** Tell trusted proxies from other addresses, by addresses and networks as the configuration has them. */
export function judgeProxies(proxies: readonly string[]): (host: string) => HostJudgement {
  const trusted = new BlockList();
  for (const proxy of proxies) {
    const [host = "", length] = proxy.split("/");
    const family = familyOf(host);
    if (family === null) throw new Error(`${proxy} is neither an address nor a network`);
    if (length === undefined) trusted.addAddress(host, family);
    else trusted.addSubnet(host, Number(length), family);
  }
  return (host) => {
    const family = familyOf(host);
    if (family === null) return "invalid";
    return trusted.check(host, family) ? "proxy" : "other";
  };
}

function familyOf(host: string): "ipv4" | "ipv6" | null {
  const version = isIP(host);
  if (version === 0) return null;
  return version === 4 ? "ipv4" : "ipv6";
}
