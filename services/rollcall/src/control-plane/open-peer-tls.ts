import { readClientTls, type TlsSource } from "@rollcall/identity";
import type { PeerTls } from "@rollcall/rpc";

/**
 * How processes of one cluster recognise each other over TLS: by their authority, and by a name that both certificates
 * are for, or the address.
 */
export function openPeerTls(source: TlsSource, caFile: string | null): PeerTls {
  const files = {
    caFile: caFile ?? undefined,
    certFile: undefined,
    keyFile: undefined,
    serverName: undefined,
  };
  return { read: () => readClientTls(files), ownNames: () => source.names };
}
