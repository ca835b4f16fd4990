import { errorCode } from "@rollcall/process";

/** Why a server cannot listen, keyed by the system's error code. */
const REASONS: Readonly<Record<string, (host: string, port: number) => string>> = {
  EADDRINUSE: (host, port) => `port ${port} of ${host} is in use by another process`,
  EADDRNOTAVAIL: (host) => `${host} is not an address of this machine`,
  EACCES: (_, port) => `this user has no permission to listen on port ${port}`,
};

/** The error of a server that cannot listen at its configured address. */
export class ListeningError extends Error {
  override readonly name = "ListeningError";
  /** The system's error code, such as EADDRINUSE. */
  readonly code: string;
  readonly port: number;

  constructor(reason: string, where: { readonly code: string; readonly port: number; readonly cause: unknown }) {
    super(`${reason} (${where.code})`, { cause: where.cause });
    this.code = where.code;
    this.port = where.port;
  }
}

/** Convert a system error to a ListeningError. Other errors are returned unchanged. */
export function listeningError(error: unknown, host: string, port: number): unknown {
  const code = errorCode(error) ?? "";
  const reason = REASONS[code]?.(host, port);
  return reason === undefined ? error : new ListeningError(reason, { code, port, cause: error });
}
