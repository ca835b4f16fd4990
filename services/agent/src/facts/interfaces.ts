import type { InterfaceAddress, Machine } from "../machine/machine.ts";
import { parseCount } from "../machine/parse-text.ts";
import type { InterfaceFacts } from "./machine-facts.ts";

const NET_ROOT = "/sys/class/net";

/** Read the network interfaces of a Linux machine, ordered by name. */
export async function readInterfaces(machine: Machine): Promise<readonly InterfaceFacts[]> {
  const names = (await machine.listNames(NET_ROOT)).filter((name) => name !== "lo");
  const kinds = new Map<string, InterfaceKind>();
  for (const name of names) kinds.set(name, await readKind(machine, name));
  const passing = parseTemporaryAddresses((await machine.readText("/proc/net/if_inet6")) ?? "");
  const addresses = machine.system
    .addresses()
    .filter(({ address, internal }) => !internal && !passing.has(address) && isLasting(address));
  return Promise.all(lastingNames(kinds, addresses).map((name) => readInterface(machine, name, addresses)));
}

/** The IPv6 addresses of /proc/net/if_inet6 that the kernel has marked as temporary, tentative or deprecated. */
export function parseTemporaryAddresses(text: string): ReadonlySet<string> {
  const passing = new Set<string>();
  for (const line of text.split("\n")) {
    const [hex, , , , flags] = line.trim().split(/\s+/);
    if (!hex || !/^[0-9a-f]{32}$/.test(hex) || flags === undefined) continue;
    if ((Number.parseInt(flags, 16) & PASSING_FLAGS) !== 0) passing.add(toIpv6(hex));
  }
  return passing;
}

/** IFA_F_TEMPORARY, IFA_F_DEPRECATED and IFA_F_TENTATIVE of linux/if_addr.h. */
const PASSING_FLAGS = 0x01 | 0x20 | 0x40;

/**
 * The kind of an interface. A `port` is created and deleted with a container or a virtual machine: veth pairs,
 * taps, container bridges, virtual functions.
 */
type InterfaceKind =
  | { readonly is: "lasting" }
  | { readonly is: "bridge"; readonly members: readonly string[] }
  | { readonly is: "port" };

async function readKind(machine: Machine, name: string): Promise<InterfaceKind> {
  const at = `${NET_ROOT}/${name}`;
  const uevent = (await machine.readText(`${at}/uevent`)) ?? "";
  switch (/^DEVTYPE=(.*)$/m.exec(uevent)?.[1]) {
    case "bridge":
      return { is: "bridge", members: await machine.listNames(`${at}/brif`) };
    case "bond":
    case "vlan":
    case "wireguard":
      return { is: "lasting" };
  }
  const device = await machine.linkName(`${at}/device`);
  const isVirtualFunction = (await machine.linkName(`${at}/device/physfn`)) !== undefined;
  return device !== undefined && !isVirtualFunction ? { is: "lasting" } : { is: "port" };
}

/** Choose the interfaces that remain while containers start and stop. */
function lastingNames(
  kinds: ReadonlyMap<string, InterfaceKind>,
  addresses: readonly InterfaceAddress[],
): readonly string[] {
  const lasting = (name: string): boolean => {
    const kind = kinds.get(name);
    // Count a bridge if it has a permanent member. The host's own bridge has one, and a container engine's
    // bridge does not.
    return kind?.is === "bridge" ? kind.members.some(lasting) : kind?.is === "lasting";
  };
  const chosen = [...kinds.keys()].filter(lasting);
  if (chosen.length > 0) return chosen;
  // Count every interface with an address, because a container has no hardware interfaces.
  return [...kinds.keys()].filter((name) => addresses.some(({ interfaceName }) => interfaceName === name));
}

async function readInterface(
  machine: Machine,
  name: string,
  addresses: readonly InterfaceAddress[],
): Promise<InterfaceFacts> {
  const [mac, speed] = await Promise.all([
    machine.readText(`${NET_ROOT}/${name}/address`),
    machine.readText(`${NET_ROOT}/${name}/speed`),
  ]);
  const speedMbps = parseCount(speed);
  return {
    name,
    mac: parseMac(mac),
    addresses: addresses
      .filter(({ interfaceName }) => interfaceName === name)
      .map(({ cidr }) => cidr)
      .sort(),
    speedMbps: speedMbps === 0 || speedMbps === UNKNOWN_SPEED ? undefined : speedMbps,
  };
}

/** SPEED_UNKNOWN truncated to 16 bits, which some drivers return. */
const UNKNOWN_SPEED = 65_535;

/** Parse a hardware address into lower case. Tunnels have no address, or only zeros. */
export function parseMac(text: string | undefined): string | undefined {
  const mac = text?.trim().toLowerCase() ?? "";
  return /^([0-9a-f]{2}:)+[0-9a-f]{2}$/.test(mac) && !/^(00:)+00$/.test(mac) ? mac : undefined;
}

/** Link-local addresses say nothing about where a machine can be reached. */
export function isLasting(address: string): boolean {
  return !/^fe[89ab][0-9a-f]:/i.test(address) && !address.startsWith("169.254.");
}

/**
 * Write 32 hexadecimal digits in the canonical form of IPv6, to compare them with addresses that Node.js
 * reports.
 */
function toIpv6(hex: string): string {
  const groups = hex.match(/.{4}/g) ?? [];
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}
