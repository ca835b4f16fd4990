import { join } from "node:path";

/** Where a server listens, in the words of its clients. */
export interface Place {
  /** The directory of its socket, or 127.0.0.1. */
  readonly host: string;
  /** Of a socket, the end of its name. */
  readonly port: number;
}

/** In the name of every socket: a directory holds one. */
const SOCKET_PORT = 5432;

/** A socket in a directory. */
export function socketIn(directory: string): Place {
  return { host: directory, port: SOCKET_PORT };
}

/** A port of this machine alone. */
export function loopback(port: number): Place {
  return { host: "127.0.0.1", port };
}

/** Whether this is a socket. */
export function isSocket({ host }: Place): boolean {
  return host.startsWith("/");
}

/** The file of a socket. */
export function socketFile({ host, port }: Place): string {
  return join(host, `.s.PGSQL.${port}`);
}

/** The arguments with which a server listens there, and nowhere else. */
export function listenArguments(place: Place): readonly string[] {
  const directory = `"${place.host.replaceAll('"', '""')}"`;
  const settings = isSocket(place)
    ? [
        "listen_addresses=",
        `unix_socket_directories=${directory}`,
        // Its directory is closed to others already.
        "unix_socket_permissions=0700",
      ]
    : [`listen_addresses=${place.host}`, "unix_socket_directories="];
  return ["-p", `${place.port}`, ...settings.flatMap((setting) => ["-c", setting])];
}

/** Whom and what a URL names. */
export interface UrlParts extends Place {
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** The URL of a database, in a form that libpq, the driver and URL itself understand: a socket stands in its query. */
export function databaseUrl(parts: UrlParts): string {
  const { user, password, database, host, port } = parts;
  const account = `postgres://${user}:${password}@`;
  return isSocket(parts)
    ? `${account}localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`
    : `${account}${host}:${port}/${database}`;
}

/** For messages. */
export function describePlace(place: Place): string {
  return isSocket(place) ? `the socket in ${place.host}` : `port ${place.port} on ${place.host}`;
}

/** For a line of the log. */
export function placeFields(place: Place): Readonly<Record<string, string | number>> {
  return isSocket(place) ? { socket: socketFile(place) } : { port: place.port };
}
