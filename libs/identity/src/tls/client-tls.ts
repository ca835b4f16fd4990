import { readFileSync } from "node:fs";
import { certificatesIn, checkPair, TlsFileError, tryContext, unreadable } from "./tls-files.ts";

export { TlsFileError };

/** The TLS files of a client. */
export interface ClientTlsFiles {
  /** Authorities to trust, instead of the system's. */
  readonly caFile: string | undefined;
  /** The client certificate and its key; both or neither. */
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  /** The name that the server's certificate must have, instead of the address. */
  readonly serverName: string | undefined;
}

/** The content of the files, as TLS options for Node.js. */
export interface ClientTls {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly servername?: string;
}

/**
 * Read and check the current content of the files. Clients do this for each connection, so they need no restart when
 * files change. Throws TlsFileError, because OpenSSL would name no file, or blame the server.
 */
export function readClientTls(files: ClientTlsFiles): ClientTls {
  const { caFile, certFile, keyFile, serverName } = files;
  const ca = caFile === undefined ? undefined : readPem(caFile);
  if (ca !== undefined && caFile !== undefined) certificatesIn(ca, caFile);
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(certFile === undefined || keyFile === undefined ? {} : readPair(certFile, keyFile)),
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
}

function readPair(certFile: string, keyFile: string): { readonly cert: Buffer; readonly key: Buffer } {
  const pair = { cert: readPem(certFile), key: readPem(keyFile) };
  checkPair(pair, { certFile, keyFile });
  tryContext(pair, certFile);
  return pair;
}

function readPem(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw unreadable(file, cause);
  }
}
