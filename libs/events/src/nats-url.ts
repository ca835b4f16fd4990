import { readUrl, type UnreadUrl } from "@rollcall/config";

/** Who connects, as a URL can say it. */
export type UrlCredentials =
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "password"; readonly user: string; readonly password: string };

const DEFAULT_PORT = 4222;

/** Where a NATS server is found. Written as text, listed or logged, it never shows its credentials. */
export class NatsUrl {
  readonly host: string;
  readonly port: number;
  /** Whether the server must offer TLS. Without it, TLS is used where the server offers it. */
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

  /** The user and password, or the token, that the URL carries. */
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

/** What is read, or why it cannot be; the reason repeats nothing of the URL. */
export type ReadNatsUrl = { readonly ok: true; readonly url: NatsUrl } | UnreadUrl;

/**
 * Read nats://HOST:PORT or tls://HOST:PORT as the clients of NATS do, with USER:PASSWORD@ or TOKEN@ before the host
 * where it has them. The scheme may be left out, and the port, which is then 4222.
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
