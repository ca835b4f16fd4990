import { ConfigurationError } from "./errors.ts";

/** One service's address. */
export interface Address {
  /** For example "https://rollcall.example:7700", always with its port. */
  readonly baseUrl: string;
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

/** Read HOST:PORT or a URL. Throws ConfigurationError, which names the source. */
export function parseAddress(text: string, source: string, isTls: boolean): Address {
  const hasScheme = /^https?:\/\//i.test(text);
  const written = hasScheme ? text : `${isTls ? "https" : "http"}://${text}`;
  const url = URL.canParse(written) ? new URL(written) : null;
  // Without a port, HOST would silently mean port 80, where nothing of ours listens.
  const isComplete = hasScheme || /^[^/@?#]+:\d+$/.test(text);
  if (url === null || !isComplete || url.username || url.password || url.search || url.hash || url.pathname !== "/") {
    throw new ConfigurationError(
      `cannot use ${JSON.stringify(text)} from ${source} as an address: HOST:PORT or a URL is needed`,
    );
  }
  const isSecure = url.protocol === "https:";
  const port = Number(url.port || (isSecure ? 443 : 80));
  return {
    baseUrl: `${url.protocol}//${url.hostname}:${port}`,
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port,
    isTls: isSecure,
  };
}

/** Whether calls to it never leave this machine. */
export function isLoopback({ host }: Address): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}
