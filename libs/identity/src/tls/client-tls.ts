import { readFileSync } from "node:fs";
import { certificatesIn, unreadable } from "./tls-files.ts";

/** What a client of a TLS port is told. */
export interface ClientTlsFiles {
  /** Authorities to trust, instead of the system's. */
  readonly caFile: string | undefined;
  /** The client's own certificate and its key; both or none. */
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  /** The name that the server's certificate must be for, instead of the address's. */
  readonly serverName: string | undefined;
}

/** The same, read: what Node's TLS takes. */
export interface ClientTls {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly servername?: string;
}

/**
 * Read the files as they are now. A client does so for each connection, and so needs no restart when they change.
 * Throws TlsFileError.
 */
export function readClientTls(files: ClientTlsFiles): ClientTls {
  const { caFile, certFile, keyFile, serverName } = files;
  const ca = caFile === undefined ? undefined : readPem(caFile);
  if (ca !== undefined && caFile !== undefined) certificatesIn(ca, caFile);
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(certFile === undefined ? {} : { cert: readPem(certFile) }),
    ...(keyFile === undefined ? {} : { key: readPem(keyFile) }),
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
}

function readPem(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw unreadable(file, cause);
  }
}
