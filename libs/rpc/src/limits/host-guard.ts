import type { ConnectError } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import { counter, type MetricsRegistry } from "@rollcall/process";
import { peerOf } from "../calls/client-address.ts";
import type { HttpRequest } from "../calls/http-handler.ts";
import type { StrangerLog } from "./stranger-log.ts";

/** Whether a request may be answered, by the name that it was sent to. The domain's isRequestForUs() decides so. */
export type HostRule = (request: {
  readonly method: string;
  /** `Host` or `:authority`; "" for none. */
  readonly authority: string;
  /** Whether it has headers that only browsers send. */
  readonly hasBrowserHeaders: boolean;
}) => boolean;

export interface HostGuardOptions {
  /** Absent allows all. */
  readonly hosts?: HostRule | undefined;
  readonly strangers: StrangerLog;
  readonly metrics: MetricsRegistry;
}

/**
 * Refuses what a foreign page has a browser send to this server, under a name that was made to resolve to it.
 */
export class HostGuard {
  readonly #options: HostGuardOptions;

  constructor(options: HostGuardOptions) {
    this.#options = options;
  }

  /** The error for a request that may not be answered; null for others. */
  refusalOf(request: HttpRequest): ConnectError | null {
    const { hosts, strangers, metrics } = this.#options;
    const authority = authorityOf(request);
    const { method = "" } = request;
    const isAllowed = hosts?.({ method, authority, hasBrowserHeaders: hasBrowserHeaders(request) });
    if (isAllowed !== false) return null;
    counter(metrics, {
      name: "rollcall_hosts_refused_total",
      help: "Requests that a browser can have made, refused because they name a host that is not this server's.",
    }).inc();
    const host = authority.slice(0, MOST_SHOWN);
    strangers.write({
      level: "warn",
      peer: peerOf(request.socket),
      what: "HOST_NOT_ALLOWED",
      fields: { host },
      message: "request for another host refused",
      isFault: true,
    });
    return refuse(
      "HOST_NOT_ALLOWED",
      `this server is not known as ${host}; if it should be, set Listen.HostNames to that name, or use an address`,
      { metadata: { host } },
    );
  }
}

/** Longer than any name. */
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
