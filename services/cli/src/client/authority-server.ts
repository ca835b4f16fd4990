import type { AuthorityServer } from "@rollcall/identity";

const HTTPS_PORT = 443;

/** The server at a base URL, to fetch its authority. */
export function authorityServer(baseUrl: string, serverName: string | null): AuthorityServer {
  const { hostname, port } = new URL(baseUrl);
  return {
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port || HTTPS_PORT),
    serverName: serverName ?? undefined,
  };
}
