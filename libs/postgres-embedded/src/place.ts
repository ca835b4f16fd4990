import { join } from "node:path";

/** Where a server listens, in the form that clients specify. */
export interface ServerLocation {
  /** The directory of the server's socket, or 127.0.0.1. */
  readonly host: string;
  /** The port; for a socket, the suffix of its file name. */
  readonly port: number;
}

/**
 * The port of every socket, which is part of its file name. All directories can use the same number, because each
 * contains only one socket.
 */
const SOCKET_PORT = 5432;

/** A socket in a directory. */
export function socketIn(directory: string): ServerLocation {
  return { host: directory, port: SOCKET_PORT };
}

/** A port on the loopback interface. */
export function loopback(port: number): ServerLocation {
  return { host: "127.0.0.1", port };
}

export function isSocket({ host }: ServerLocation): boolean {
  return host.startsWith("/");
}

/** The path of the socket file. */
export function socketFile({ host, port }: ServerLocation): string {
  return join(host, `.s.PGSQL.${port}`);
}

/** Server arguments to listen only at this location. */
export function listenArguments(place: ServerLocation): readonly string[] {
  const directory = `"${place.host.replaceAll('"', '""')}"`;
  const settings = isSocket(place)
    ? [
        "listen_addresses=",
        `unix_socket_directories=${directory}`,
        // Allow only the owner to connect. Others cannot enter the socket's directory either.
        "unix_socket_permissions=0700",
      ]
    : [`listen_addresses=${place.host}`, "unix_socket_directories="];
  return ["-p", `${place.port}`, ...settings.flatMap((setting) => ["-c", setting])];
}

/** The variable parts of a database URL. */
export interface UrlParts extends ServerLocation {
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/**
 * The URL of a database, in a form that libpq, the driver and the URL class can all parse: the query contains the
 * directory of a socket.
 */
export function databaseUrl(parts: UrlParts): string {
  const { user, password, database, host, port } = parts;
  const account = `postgres://${user}:${password}@`;
  return isSocket(parts)
    ? `${account}localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`
    : `${account}${host}:${port}/${database}`;
}

/** Describe a location for messages. */
export function describePlace(place: ServerLocation): string {
  return isSocket(place) ? `the socket in ${place.host}` : `port ${place.port} on ${place.host}`;
}

/** The log fields that describe a location. */
export function placeFields(place: ServerLocation): Readonly<Record<string, string | number>> {
  return isSocket(place) ? { socket: socketFile(place) } : { port: place.port };
}
