/** A login by an OpenID Connect issuer: how to renew its token. */
export interface OidcLogin {
  readonly issuer: string;
  readonly clientId: string;
  readonly audience: string;
  /** Null when the issuer gave none: then the login ends with its token. */
  readonly refreshToken: string | null;
  /** When the present token expires, by the wall clock. */
  readonly expiresAtMs: number;
}

/** One control plane, and the credentials for it. */
export interface Context {
  readonly name: string;
  /** HOST:PORT or URL of all services; null when they are apart. */
  readonly server: string | null;
  readonly registry: string | null;
  readonly health: string | null;
  readonly admin: string | null;
  readonly scheduler: string | null;
  /** The token itself; null when there is none, or it is in a file. */
  readonly token: string | null;
  /** Absolute. */
  readonly tokenFile: string | null;
  /** PEM file of the authority of the server's TLS certificate, absolute. */
  readonly caFile: string | null;
  /** Whether clear text is allowed beyond this machine. */
  readonly insecure: boolean;
  readonly oidc: OidcLogin | null;
}

/** Every context of a user. */
export interface Contexts {
  /** The one that is used when none is named; null for none. */
  readonly current: string | null;
  readonly contexts: readonly Context[];
}

/** The context in use for this call. */
export interface ChosenContext {
  readonly context: Context;
  /** Whether --context named it: then it wins over the environment. */
  readonly isNamed: boolean;
  /** Save another token in it, after the login was renewed. */
  save(changed: Context): Promise<void>;
}

const EMPTY = {
  ...{ server: null, registry: null, health: null, admin: null, scheduler: null },
  ...{ token: null, tokenFile: null, caFile: null, insecure: false, oidc: null },
} as const;

/** A context with nothing but what is given. */
export function newContext(fields: Partial<Context> & Pick<Context, "name">): Context {
  return { ...EMPTY, ...fields };
}

/** Whether a context may be called so. */
export function isContextName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,62}$/.test(name);
}

/** The contexts with one added, or in the place of the one of its name. */
export function withContext({ current, contexts }: Contexts, added: Context): Contexts {
  const isKnown = contexts.some(({ name }) => name === added.name);
  return {
    current,
    contexts: isKnown ? contexts.map((it) => (it.name === added.name ? added : it)) : [...contexts, added],
  };
}

/** The context of a name; null when there is none. */
export function contextNamed({ contexts }: Contexts, wanted: string): Context | null {
  return contexts.find(({ name }) => name === wanted) ?? null;
}
