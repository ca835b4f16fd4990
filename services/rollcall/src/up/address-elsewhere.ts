import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { NetworkInterfaceInfo } from "node:os";

/** The interfaces of a machine, as `os.networkInterfaces()` returns them. */
export type Interfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

/** Maximum number of addresses in a certificate, because machines that run containers have many. */
const MOST_ADDRESSES = 16;

/** Whether a server that listens on `host` listens on all addresses of its machine. */
export function isAnyHost(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** The addresses at which other machines may reach this one, IPv4 first. */
export function externalAddresses(interfaces: Interfaces): readonly string[] {
  const all = Object.values(interfaces).flatMap((list) => list ?? []);
  // Leave out link-local addresses, because they need the name of an interface, which differs between machines.
  const external = all.filter(({ internal, address }) => !internal && !/^(fe80:|169\.254\.)/i.test(address));
  const ofFamily = (family: string) => external.filter((it) => it.family === family).map(({ address }) => address);
  return [...new Set([...ofFamily("IPv4"), ...ofFamily("IPv6")])].slice(0, MOST_ADDRESSES);
}

/**
 * The HOST:PORT at which other machines reach a server; null when it serves only its own machine, or when its
 * certificate contains no known name of the machine.
 *
 * @param certificatePem The server's certificate; null for clear text.
 */
export function addressElsewhere(
  listen: { readonly host: string; readonly port: number },
  certificatePem: string | null,
  interfaces: Interfaces,
): string | null {
  const { host, port } = listen;
  if (host === "localhost" || host === "::1" || host.startsWith("127.")) return null;
  const certificate = certificatePem === null ? null : new X509Certificate(certificatePem);
  const hosts = [
    ...(isAnyHost(host) ? externalAddresses(interfaces) : [host]).filter((it) => isFor(certificate, it)),
    ...namesOf(certificate),
  ];
  const [first] = hosts;
  if (first === undefined) return null;
  return `${first.includes(":") ? `[${first}]` : first}:${port}`;
}

function isFor(certificate: X509Certificate | null, host: string): boolean {
  if (certificate === null) return true;
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
}

/** The names in a certificate. Wildcards are left out, because they name no host. */
function namesOf(certificate: X509Certificate | null): readonly string[] {
  const names = [...(certificate?.subjectAltName ?? "").matchAll(/DNS:([^,\s*]+)(?=,|$)/g)].map(
    ([, name = ""]) => name,
  );
  return names.filter((name) => name !== "localhost");
}
