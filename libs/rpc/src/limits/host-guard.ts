import { type RefusalError, refuse } from "@rollcall/errors";
import { counter, type MetricsRegistry } from "@rollcall/process";
import { peerOf } from "../calls/client-address.ts";
import type { HttpRequest } from "../calls/http-handler.ts";
import type { AnonymousLog } from "./anonymous-log.ts";

/**
 * Whether to answer a request, depending on the host name that it was sent to. The domain's isRequestForUs()
 * implements it.
 */
export type HostRule = (request: {
  readonly method: string;
  /** The value of `Host` or `:authority`; "" for none. */
  readonly authority: string;
  /** Whether the request has headers that only browsers send. */
  readonly hasBrowserHeaders: boolean;
}) => boolean;

export interface HostGuardOptions {
  /** The rule for host names; absent to allow all. */
  readonly hosts?: HostRule | undefined;
  readonly anonymousClients: AnonymousLog;
  readonly metrics: MetricsRegistry;
}

/**
 * Prevents DNS rebinding. It refuses requests that a foreign page makes a browser send to this server under a
 * host name that the attacker resolved to this server.
 */
export class HostGuard {
  readonly #options: HostGuardOptions;

  constructor(options: HostGuardOptions) {
    this.#options = options;
  }

  /** The error if a request must be refused, otherwise null. */
  refusalOf(request: HttpRequest): RefusalError | null {
    const { hosts, anonymousClients, metrics } = this.#options;
    const authority = authorityOf(request);
    const { method = "" } = request;
    const isAllowed = hosts?.({ method, authority, hasBrowserHeaders: hasBrowserHeaders(request) });
    if (isAllowed !== false) return null;
    counter(metrics, {
      name: "rollcall_hosts_refused_total",
      help: "Requests that may come from a browser, refused because they name a host other than this server.",
    }).inc();
    const host = authority.slice(0, MOST_SHOWN);
    anonymousClients.write({
      level: "warn",
      peer: peerOf(request.socket),
      what: "HOST_NOT_ALLOWED",
      fields: { host },
      message: "request for another host refused",
      isFault: true,
    });
    return refuse(
      "HOST_NOT_ALLOWED",
      `this server does not accept requests for the host ${host}; add it to Listen.HostNames, or use an IP address`,
      { metadata: { host } },
    );
  }
}

/** Maximum number of characters of a host to show. No valid host name is this long. */
const MOST_SHOWN = 260;

function authorityOf({ headers }: HttpRequest): string {
  const { ":authority": authority, host } = headers;
  return String(authority ?? host ?? "");
}

function hasBrowserHeaders({ headers }: HttpRequest): boolean {
  if (headers.origin !== undefined) return true;
  for (const name in headers) if (name.startsWith("sec-fetch-")) return true;
  return false;
}
