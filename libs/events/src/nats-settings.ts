import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import {
  type Authenticator,
  type ConnectionOptions,
  credsAuthenticator,
  nkeyAuthenticator,
  type TlsOptions,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from "@nats-io/transport-node";
import type { NatsUrl, UrlCredentials } from "./nats-url.ts";

/** How to connect and authenticate to NATS. Files are read again for each connection, so they can be rotated. */
export interface NatsSettings {
  /**
   * Servers of one cluster, tried in random order; at least one. List all servers, because servers that NATS announces
   * are not used.
   */
  readonly urls: readonly NatsUrl[];
  /**
   * A .creds file with the user's JWT and key. If several kinds of credentials are set, the first kind in the order of
   * these fields is used. Credentials in URLs come last.
   */
  readonly credentialsFile?: string | undefined;
  /** A file with the seed of the user's nkey. */
  readonly nkeyFile?: string | undefined;
  readonly token?: string | undefined;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  readonly tls?: NatsTls | undefined;
  /** Subject prefix for replies. Needed when the user's permissions do not allow _INBOX. */
  readonly inboxPrefix?: string | undefined;
}

/** The PEM files for TLS. If any is set, the server must offer TLS. */
export interface NatsTls {
  /** A file with the authorities to trust instead of the system's authorities. */
  readonly caFile?: string | undefined;
  /** The client certificate; requires its key. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** Start TLS before the NATS protocol, for servers with handshake_first. */
  readonly handshakeFirst?: boolean | undefined;
}

/**
 * The client options for one server. They contain secrets, so pass them only to the client. Rejects when a file cannot
 * be read.
 */
export async function toConnectionOptions(settings: NatsSettings, url: NatsUrl): Promise<ConnectionOptions> {
  const { inboxPrefix } = settings;
  const tls = toTlsOptions(settings, url);
  const authenticator = await toAuthenticator(settings, url);
  return {
    servers: [url.address],
    ...(tls === null ? {} : { tls }),
    ...(authenticator === null ? {} : { authenticator }),
    ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
  };
}

/** The TLS options. With null, the client uses TLS with the system's authorities if the server offers it. */
function toTlsOptions({ tls = {} }: NatsSettings, url: NatsUrl): (TlsOptions & { readonly host?: string }) | null {
  const { caFile, certFile, keyFile, handshakeFirst = false } = tls;
  const isNamed = handshakeFirst || [caFile, certFile, keyFile].some((it) => it !== undefined);
  if (!isNamed && !url.tls) return null;
  const address = url.host.replaceAll(/[[\]]/g, "");
  return {
    ...(caFile === undefined ? {} : { caFile }),
    ...(certFile === undefined ? {} : { certFile }),
    ...(keyFile === undefined ? {} : { keyFile }),
    ...(handshakeFirst ? { handshakeFirst } : {}),
    // Set the host for an IP address. Otherwise the server's certificate would be checked for "localhost".
    ...(isIP(address) === 0 ? {} : { host: address }),
  };
}

async function toAuthenticator(settings: NatsSettings, url: NatsUrl): Promise<Authenticator | null> {
  const { credentialsFile, nkeyFile, token, user, password } = settings;
  if (credentialsFile !== undefined) {
    const text = await readFile(credentialsFile, "utf8");
    // Remove carriage returns, because the client's parser does not handle them.
    return credsAuthenticator(Buffer.from(text.replaceAll("\r\n", "\n")));
  }
  if (nkeyFile !== undefined) {
    return nkeyAuthenticator(Buffer.from(findSeed(await readFile(nkeyFile, "utf8"), nkeyFile)));
  }
  if (token !== undefined) return tokenAuthenticator(token);
  if (user !== undefined) return usernamePasswordAuthenticator(user, password ?? "");
  return url.credentials === null ? null : fromUrl(url.credentials);
}

function fromUrl(credentials: UrlCredentials): Authenticator {
  return credentials.kind === "token"
    ? tokenAuthenticator(credentials.token)
    : usernamePasswordAuthenticator(credentials.user, credentials.password);
}

/** Find the seed in the text of a seed file, which can also contain comments and decoration. */
function findSeed(text: string, file: string): string {
  const seed = /\bSU[A-Z2-7]{56}\b/.exec(text)?.[0];
  if (seed === undefined) throw new Error(`${file} holds no seed of a user's nkey`);
  return seed;
}
