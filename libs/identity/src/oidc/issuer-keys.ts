import { refuse } from "@rollcall/errors";
import type { Clock, Logger } from "@rollcall/process";
import { createLocalJWKSet, type JSONWebKeySet, type JWSHeaderParameters } from "jose";
import { fetchJson } from "./fetch-whole.ts";
import { isSafeUrl } from "./issuer-url.ts";
import type { OidcIssuer } from "./oidc-issuers.ts";

/** What keys are looked up with. */
export interface IssuerKeysOptions {
  readonly issuer: Pick<OidcIssuer, "issuer" | "jwksUrl" | "caFile"> & {
    /** See FetchJsonOptions. */
    readonly tokenFile?: string | null;
  };
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Logger;
}

type Key = Awaited<ReturnType<ReturnType<typeof createLocalJWKSet>>>;

interface KeySet {
  find(header: JWSHeaderParameters): Promise<Key>;
  readonly fetchedAtMs: number;
}

/** Older keys are fetched again, and stay in use meanwhile. */
const FRESH_MS = 600_000;
/** Older keys are not used any more: the issuer may have withdrawn one of them long ago. */
const USABLE_MS = 86_400_000;
/** Least time between two fetches because of a key that is not known, or because the one before failed. */
const COOLDOWN_MS = 5_000;
const ATTEMPTS = 2;
const TIMEOUT_MS = 3_000;

/**
 * The keys of one issuer: fetched when the first token comes, kept, and fetched again when they are ten minutes old or
 * a token names one that is not among them. Invented key ids cannot make it fetch more than once in five
 * seconds. While the issuer is away, keys that are known go on working for a day.
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
   * The key that a token's header names. Rejects with jose's ERR_JWKS_NO_MATCHING_KEY, or with ISSUER_UNAVAILABLE when
   * it cannot be known.
   */
  async find(header: JWSHeaderParameters): Promise<Key> {
    const keys = await this.#usable();
    try {
      return await keys.find(header);
    } catch (error) {
      if (!isNoMatch(error)) throw error;
      // Those who wait for the same fetch are no further ones.
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
    // In the background: the keys are good, so no call waits. A failure is in the log.
    if (mayFetch) this.#fetch().catch(() => {});
    return keys;
  }

  /** One fetch at a time, for all who want one. */
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
        log.warn({ err, issuer: issuer.issuer, attempt }, "keys of the issuer not fetched");
        if (attempt < ATTEMPTS) continue;
        this.#failedAtMs = clock.nowMs();
        throw this.#unavailable(err);
      }
    }
  }

  async #fetchKeys(): Promise<unknown> {
    const { issuer, jwksUrl, caFile, tokenFile = null } = this.#options.issuer;
    const how = { caFile, timeoutMs: TIMEOUT_MS, tokenFile };
    if (jwksUrl !== null) return fetchJson(new URL(jwksUrl), how);
    const place = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const found = await fetchJson(new URL(place), how);
    const { issuer: named, jwks_uri: uri } = Object(found) as Record<string, unknown>;
    if (named !== issuer) throw new Error(`${place} is of another issuer: ${String(named)}`);
    if (typeof uri !== "string" || !URL.canParse(uri) || !isSafeUrl(new URL(uri))) {
      throw new Error(`${place} names no safe place of its keys: ${String(uri)}`);
    }
    // The token is for the issuer, and for no other host that it names.
    const isIssuers = new URL(uri).host === new URL(issuer).host;
    return fetchJson(new URL(uri), isIssuers ? how : { ...how, tokenFile: null });
  }

  #unavailable(cause?: unknown): Error {
    const { issuer } = this.#options.issuer;
    const message = `the token cannot be checked: the keys of ${issuer} cannot be fetched just now, try again`;
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
