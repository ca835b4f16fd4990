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

/** How to reach NATS and who to be there. Files are read for each connection, so they may be rotated. */
export interface NatsSettings {
  /**
   * Servers of one cluster, tried in random order; at least one. Name each that may be the only one alive: what a
   * server tells of its cluster is not used.
   */
  readonly urls: readonly NatsUrl[];
  /**
   * A .creds file: the user's JWT and key. Of several ways to say who connects, the first one here wins; URLs come
   * last.
   */
  readonly credentialsFile?: string | undefined;
  /** A file with the seed of a user's nkey. */
  readonly nkeyFile?: string | undefined;
  readonly token?: string | undefined;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  readonly tls?: NatsTls | undefined;
  /** First tokens of the subjects on which answers are received, where permissions ask for other ones than _INBOX. */
  readonly inboxPrefix?: string | undefined;
}

/** Files of PEM. Where one is named, the server must offer TLS. */
export interface NatsTls {
  /** The authorities to trust instead of the system's. */
  readonly caFile?: string | undefined;
  /** The client's certificate; together with its key. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** Speak TLS from the first byte on, as the server's handshake_first asks for. */
  readonly handshakeFirst?: boolean | undefined;
}

/**
 * The client's options for one of the servers; they hold secrets, so they are for the client alone. Rejects when a file
 * cannot be read.
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

/** Null leaves TLS to the server: it is used where it is offered, with the system's authorities. */
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
    // Without it the certificate of a server that is named by its address would be checked for "localhost".
    ...(isIP(address) === 0 ? {} : { host: address }),
  };
}

async function toAuthenticator(settings: NatsSettings, url: NatsUrl): Promise<Authenticator | null> {
  const { credentialsFile, nkeyFile, token, user, password } = settings;
  if (credentialsFile !== undefined) {
    const text = await readFile(credentialsFile, "utf8");
    // The client's parser knows no carriage returns.
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

/** Seed files may have comments and decoration around the seed. */
function findSeed(text: string, file: string): string {
  const seed = /\bSU[A-Z2-7]{56}\b/.exec(text)?.[0];
  if (seed === undefined) throw new Error(`${file} holds no seed of a user's nkey`);
  return seed;
}
