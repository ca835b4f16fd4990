import { readServerAddress, shownAddress } from "@rollcall/config/server-address";
import type { ChosenContext } from "../contexts/context.ts";
import { UsageError } from "../failure.ts";
import type { Shell } from "../shell.ts";
import type { RunFile } from "./data-directory.ts";

/** The services that a client calls. */
export type ServiceName = "registry" | "health" | "admin" | "scheduler";

export const SERVICE_NAMES: readonly ServiceName[] = ["registry", "health", "admin", "scheduler"];

/** The base URL of each service, such as "http://127.0.0.1:7700". */
export type Addresses = Readonly<Record<ServiceName, string>>;

/** The command-line flags that give the addresses. */
export interface AddressFlags {
  readonly server?: string;
  readonly registry?: string;
  readonly health?: string;
  readonly admin?: string;
  readonly scheduler?: string;
}

/** Where `up` listens by default. */
const DEFAULT_SERVER = "127.0.0.1:7700";

/**
 * Find the address of each service. In order of precedence: the service's own flag, --server, the context that
 * --context names, ROLLCALL_<SERVICE>, ROLLCALL_SERVER, the context in use, the run file of this user's `up`,
 * 127.0.0.1:7700. HOST:PORT without a scheme becomes https:// if `isTls` says so. Throws UsageError for an invalid
 * address.
 */
export function findAddresses(
  flags: AddressFlags,
  env: Shell["env"],
  runFile: RunFile | null,
  isTls: (hostAndPort: string) => boolean = () => false,
  chosen: ChosenContext | null = null,
): Addresses {
  const ofContext = `context ${chosen?.context.name}`;
  const find = (service: ServiceName): string => {
    const variable = `ROLLCALL_${service.toUpperCase()}`;
    const inContext = chosen?.context[service] || chosen?.context.server || undefined;
    const candidates = [
      [flags[service], `--${service}`],
      [flags.server, "--server"],
      [chosen?.isNamed ? inContext : undefined, ofContext],
      [env[variable], variable],
      [env.ROLLCALL_SERVER, "ROLLCALL_SERVER"],
      [inContext, ofContext],
      [runFile?.server, "the run file"],
    ] as const;
    const [value, source] = candidates.find(([text]) => text !== undefined && text !== "") ?? [
      DEFAULT_SERVER,
      "the default",
    ];
    return toBaseUrl(value ?? DEFAULT_SERVER, source, isTls);
  };
  return {
    registry: find("registry"),
    health: find("health"),
    admin: find("admin"),
    scheduler: find("scheduler"),
  };
}

/** The addresses that a context names, as base URLs. */
export function addressesOf(
  { server, registry, health, admin, scheduler }: ChosenContext["context"],
  isTls: (hostAndPort: string) => boolean,
): readonly string[] {
  const named = [server, registry, health, admin, scheduler].filter((it) => it !== null);
  return named.map((it) => toBaseUrl(it, "the context", isTls));
}

/** Whether the address never leaves this machine. */
export function isLoopback(baseUrl: string): boolean {
  const host = new URL(baseUrl).hostname;
  return host === "localhost" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** How an address is shown, always with its port: "127.0.0.1:7700", "https://rollcall.example:443". */
export function displayAddress(baseUrl: string): string {
  const { protocol, hostname, port } = new URL(baseUrl);
  return protocol === "http:" ? `${hostname}:${port || 80}` : `${protocol}//${hostname}:${port || 443}`;
}

function toBaseUrl(text: string, source: string, isTls: (hostAndPort: string) => boolean): string {
  const read = readServerAddress(text, { paths: true });
  if (!read.ok) {
    throw new UsageError(
      `cannot use '${shownAddress(text)}' from ${source} as an address, should be HOST:PORT or a URL such as ` +
        `https://rollcall.example:7700: ${read.reason}`,
    );
  }
  const { host, port, scheme } = read.address;
  const authority = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  return new URL(`${scheme ?? (isTls(text) ? "https" : "http")}://${authority}${read.path}`).href.replace(/\/$/, "");
}
