import { refuse } from "@rollcall/errors";
import type { Clock, Logger } from "@rollcall/process";
import { createLocalJWKSet, type JSONWebKeySet, type JWSHeaderParameters } from "jose";
import { fetchJson } from "./fetch-whole.ts";
import { isSafeUrl } from "./issuer-url.ts";
import type { OidcIssuer } from "./oidc-issuers.ts";

export interface IssuerKeysOptions {
  readonly issuer: Pick<OidcIssuer, "issuer" | "jwksUrl" | "caFile"> & {
    /** See FetchJsonOptions. */
    readonly tokenFile?: string | null;
  };
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Logger;
  /** How to fetch documents. Default: by HTTP. */
  readonly fetch?: typeof fetchJson;
}

type Key = Awaited<ReturnType<ReturnType<typeof createLocalJWKSet>>>;

interface KeySet {
  find(header: JWSHeaderParameters): Promise<Key>;
  readonly fetchedAtMs: number;
}

/** The age in milliseconds from which keys are refreshed. The keys stay in use during the refresh. */
const FRESH_MS = 600_000;
/** The age in milliseconds from which keys are not used, because the issuer may have revoked them in the meantime. */
const USABLE_MS = 86_400_000;
/** Minimum time between two fetches for unknown keys or after a failed fetch, in milliseconds. */
const COOLDOWN_MS = 5_000;
const ATTEMPTS = 2;
const TIMEOUT_MS = 3_000;

/**
 * The keys of one issuer, fetched with the first token and cached. They are fetched again after ten minutes, or when a
 * token names an unknown key. Invented key ids cause at most one fetch in five seconds. While the issuer is
 * unavailable, cached keys stay valid for a day.
 */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  #keys: KeySet | null = null;
  #fetching: Promise<KeySet> | null = null;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #soughtAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
  }

  /**
   * Find the key that a token's header names. Rejects with jose's ERR_JWKS_NO_MATCHING_KEY, or with ISSUER_UNAVAILABLE
   * when the keys cannot be fetched.
   */
  async find(header: JWSHeaderParameters): Promise<Key> {
    const keys = await this.#usable();
    try {
      return await keys.find(header);
    } catch (error) {
      if (!isNoMatch(error)) throw error;
      // Apply the cooldown only if no fetch is running, because callers share a running fetch.
      if (this.#fetching === null && this.#sinceMs(this.#soughtAtMs) < COOLDOWN_MS) {
        if (this.#sinceMs(this.#failedAtMs) < COOLDOWN_MS) throw this.#unavailable();
        throw error;
      }
      this.#soughtAtMs = this.#options.clock.nowMs();
      return await (await this.#fetch()).find(header);
    }
  }

  async #usable(): Promise<KeySet> {
    const keys = this.#keys;
    const ageMs = keys === null ? Number.POSITIVE_INFINITY : this.#sinceMs(keys.fetchedAtMs);
    if (keys !== null && ageMs < FRESH_MS) return keys;
    const mayFetch = this.#sinceMs(this.#failedAtMs) >= COOLDOWN_MS;
    if (keys === null || ageMs >= USABLE_MS) {
      if (!mayFetch) throw this.#unavailable();
      return this.#fetch();
    }
    // Refresh in the background: the keys are still valid, so no call waits. The fetch itself logs failures.
    if (mayFetch) this.#fetch().catch(() => {});
    return keys;
  }

  /** Fetch once for all concurrent callers. */
  #fetch(): Promise<KeySet> {
    this.#fetching ??= this.#fetchOnce().finally(() => {
      this.#fetching = null;
    });
    return this.#fetching;
  }

  async #fetchOnce(): Promise<KeySet> {
    const { issuer, clock, log } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const find = createLocalJWKSet((await this.#fetchKeys()) as JSONWebKeySet);
        this.#keys = { find: (header) => find(header), fetchedAtMs: clock.nowMs() };
        this.#failedAtMs = Number.NEGATIVE_INFINITY;
        return this.#keys;
      } catch (err) {
        log.warn({ err, issuer: issuer.issuer, attempt }, "cannot fetch the issuer's keys");
        if (attempt < ATTEMPTS) continue;
        this.#failedAtMs = clock.nowMs();
        throw this.#unavailable(err);
      }
    }
  }

  async #fetchKeys(): Promise<unknown> {
    const { fetch = fetchJson } = this.#options;
    const { issuer, jwksUrl, caFile, tokenFile = null } = this.#options.issuer;
    const how = { caFile, timeoutMs: TIMEOUT_MS, tokenFile };
    if (jwksUrl !== null) return fetch(new URL(jwksUrl), how);
    const place = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const found = await fetch(new URL(place), how);
    const { issuer: named, jwks_uri: uri } = Object(found) as Record<string, unknown>;
    if (named !== issuer) throw new Error(`${place} names another issuer: ${String(named)}`);
    if (typeof uri !== "string" || !URL.canParse(uri) || !isSafeUrl(new URL(uri))) {
      throw new Error(`${place} has no safe jwks_uri: ${String(uri)}`);
    }
    // Send the token only to the issuer, and not to another host that the issuer names.
    const isIssuers = new URL(uri).host === new URL(issuer).host;
    return fetch(new URL(uri), isIssuers ? how : { ...how, tokenFile: null });
  }

  #unavailable(cause?: unknown): Error {
    const { issuer } = this.#options.issuer;
    const message = `the token cannot be verified: the keys of ${issuer} cannot be fetched now, try again`;
    const retryAfterMs = Math.max(0, COOLDOWN_MS - this.#sinceMs(this.#failedAtMs));
    return refuse("ISSUER_UNAVAILABLE", message, { metadata: { issuer }, retryAfterMs, cause });
  }

  #sinceMs(atMs: number): number {
    return this.#options.clock.nowMs() - atMs;
  }
}

function isNoMatch(error: unknown): boolean {
  return Object(error).code === "ERR_JWKS_NO_MATCHING_KEY";
}
