/** A login at an OpenID Connect issuer, with the data to renew its token. */
export interface OidcLogin {
  readonly issuer: string;
  readonly clientId: string;
  readonly audience: string;
  /**
   * The token with which the login is renewed. Null when the issuer sent none; in that case, the login
   * expires with its token.
   */
  readonly refreshToken: string | null;
  /** When the current token expires, by the wall clock. */
  readonly expiresAtMs: number;
}

/** One control plane, and the credentials for it. */
export interface Context {
  readonly name: string;
  /** HOST:PORT or URL of all services; null when each has its own. */
  readonly server: string | null;
  readonly registry: string | null;
  readonly health: string | null;
  readonly admin: string | null;
  readonly scheduler: string | null;
  /** The token itself; null when there is none, or when it is in a file. */
  readonly token: string | null;
  /** Absolute path of the file with the token. */
  readonly tokenFile: string | null;
  /** Absolute path of the PEM file with the authority of the server's TLS certificate. */
  readonly caFile: string | null;
  /** Whether clear text is allowed beyond this machine. */
  readonly insecure: boolean;
  readonly oidc: OidcLogin | null;
}

/** Every context of a user. */
export interface Contexts {
  /** The name of the default context; null for none. */
  readonly current: string | null;
  readonly contexts: readonly Context[];
}

/** The context in use for this call. */
export interface ChosenContext {
  readonly context: Context;
  /** Whether --context named the context, so that the context overrides the environment. */
  readonly isNamed: boolean;
  /** Save the context with its new token after the login was renewed. */
  save(changed: Context): Promise<void>;
}

const EMPTY = {
  ...{ server: null, registry: null, health: null, admin: null, scheduler: null },
  ...{ token: null, tokenFile: null, caFile: null, insecure: false, oidc: null },
} as const;

/** A context with only the given fields set. */
export function newContext(fields: Partial<Context> & Pick<Context, "name">): Context {
  return { ...EMPTY, ...fields };
}

/** Whether the name is valid for a context. */
export function isContextName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,62}$/.test(name);
}

/** Add a context, or replace the one with the same name. */
export function withContext({ current, contexts }: Contexts, added: Context): Contexts {
  const isKnown = contexts.some(({ name }) => name === added.name);
  return {
    current,
    contexts: isKnown ? contexts.map((it) => (it.name === added.name ? added : it)) : [...contexts, added],
  };
}

/** Find a context by its name; null when there is none. */
export function contextNamed({ contexts }: Contexts, wanted: string): Context | null {
  return contexts.find(({ name }) => name === wanted) ?? null;
}
