/** Who connects, as a URL can say it. */
export type UrlCredentials =
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "password"; readonly user: string; readonly password: string };

const DEFAULT_PORT = 4222;
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])$/;

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

/**
 * Read nats://HOST:PORT or tls://HOST:PORT, with USER:PASSWORD@ or TOKEN@ in front of the host where it has them. The
 * scheme may be left out, and the port, which is then 4222. Answers null for anything else.
 */
export function parseNatsUrl(text: string): NatsUrl | null {
  const url = toUrl(text.trim());
  if (url === null || !HOST.test(url.hostname)) return null;
  if (!["", "/"].includes(url.pathname) || url.search !== "" || url.hash !== "") return null;
  const credentials = credentialsOf(url);
  if (credentials === undefined) return null;
  return new NatsUrl({
    host: url.hostname,
    port: url.port === "" ? DEFAULT_PORT : Number(url.port),
    tls: url.protocol === "tls:",
    credentials,
  });
}

function toUrl(text: string): URL | null {
  const withScheme = text.includes("://") ? text : `nats://${text}`;
  if (!/^(?:nats|tls):\/\//i.test(withScheme) || !URL.canParse(withScheme)) return null;
  return new URL(withScheme);
}

/** Undefined when they cannot be read. */
function credentialsOf(url: URL): UrlCredentials | null | undefined {
  try {
    const user = decodeURIComponent(url.username);
    const password = decodeURIComponent(url.password);
    if (user === "") return password === "" ? null : undefined;
    return password === "" ? { kind: "token", token: user } : { kind: "password", user, password };
  } catch {
    return undefined;
  }
}
