const REASONS: Readonly<Record<string, (host: string, port: number) => string>> = {
  EADDRINUSE: (host, port) =>
    `port ${port} of ${host} is taken by another process: stop that one, or choose another port`,
  EADDRNOTAVAIL: (host) => `${host} is not an address of this machine`,
  EACCES: (_, port) => `this user may not listen on port ${port}: choose a port above 1023`,
};

/**
 * Why a server cannot listen, in the words of whoever configured it, with the system's code. Other errors are left as
 * they are.
 */
export function listeningError(error: unknown, host: string, port: number): unknown {
  // grpc-js has no code on its error, only the texts of the system's errors within its own.
  const code = /\bE[A-Z]{4,}\b/.exec(String(error))?.[0];
  const reason = code === undefined ? undefined : REASONS[code];
  return reason === undefined ? error : new Error(`${reason(host, port)} (${code})`, { cause: error });
}
