import { readUrl, type UnreadUrl } from "@rollcall/config";

/** Credentials in a URL. */
export type UrlCredentials =
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "password"; readonly user: string; readonly password: string };

const DEFAULT_PORT = 4222;

/** The address of a NATS server. Formatting, listing or logging it never shows its credentials. */
export class NatsUrl {
  readonly host: string;
  readonly port: number;
  /** Whether the server must offer TLS. If not, TLS is still used when the server offers it. */
  readonly tls: boolean;
  readonly #credentials: UrlCredentials | null;

  constructor(parts: {
    readonly host: string;
    readonly port: number;
    readonly tls: boolean;
    readonly credentials: UrlCredentials | null;
  }) {
    this.host = parts.host;
    this.port = parts.port;
    this.tls = parts.tls;
    this.#credentials = parts.credentials;
  }

  /** The user and password, or the token, from the URL. */
  get credentials(): UrlCredentials | null {
    return this.#credentials;
  }

  /** HOST:PORT. */
  get address(): string {
    return `${this.host}:${this.port}`;
  }

  toString(): string {
    return `${this.tls ? "tls" : "nats"}://${this.address}`;
  }

  toJSON(): string {
    return this.toString();
  }
}

/** The URL, or the reason why it is invalid. The reason quotes nothing from the URL. */
export type ReadNatsUrl = { readonly ok: true; readonly url: NatsUrl } | UnreadUrl;

/**
 * Parse nats://HOST:PORT or tls://HOST:PORT as NATS clients do, with optional USER:PASSWORD@ or TOKEN@ before the
 * host. The scheme is optional, and so is the port (default 4222).
 */
export function readNatsUrl(text: string): ReadNatsUrl {
  const read = readUrl(text, { schemes: ["nats", "tls"], users: true });
  if (!read.ok) return read;
  const { scheme, user, password, host, port } = read;
  if (user === "") return { ok: false, reason: "its user is empty" };
  const credentials: UrlCredentials | null =
    user === null ? null : password ? { kind: "password", user, password } : { kind: "token", token: user };
  const url = new NatsUrl({
    host: host.includes(":") ? `[${host}]` : host,
    port: port ?? DEFAULT_PORT,
    tls: scheme === "tls",
    credentials,
  });
  return { ok: true, url };
}
