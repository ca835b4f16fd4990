/** Why a server cannot listen, by the system's code. */
const REASONS: Readonly<Record<string, (host: string, port: number) => string>> = {
  EADDRINUSE: (host, port) => `port ${port} of ${host} is taken by another process`,
  EADDRNOTAVAIL: (host) => `${host} is not an address of this machine`,
  EACCES: (_, port) => `this user may not listen on port ${port}`,
};

/** A server cannot listen where it was told to. */
export class ListeningError extends Error {
  override readonly name = "ListeningError";
  /** The system's code, such as EADDRINUSE. */
  readonly code: string;
  readonly port: number;

  constructor(reason: string, where: { readonly code: string; readonly port: number; readonly cause: unknown }) {
    super(`${reason} (${where.code})`, { cause: where.cause });
    this.code = where.code;
    this.port = where.port;
  }
}

/** The ListeningError of an error of the system; other errors are returned as they are. */
export function listeningError(error: unknown, host: string, port: number): unknown {
  // grpc-js has no code on its error, only the texts of the system's errors within its own.
  const code = /\bE[A-Z]{4,}\b/.exec(String(error))?.[0] ?? "";
  const reason = REASONS[code]?.(host, port);
  return reason === undefined ? error : new ListeningError(reason, { code, port, cause: error });
}
