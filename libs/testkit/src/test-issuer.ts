import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

/** Claims of a token in addition to issuer and audience. Times among these claims replace the default times. */
export type TestClaims = Readonly<Record<string, unknown>>;

/** How a token differs from the issuer's default. */
export interface TestTokenOptions {
  /** Seconds from `nowMs` until the token expires. Default 3600; negative for an expired token. */
  readonly expiresInS?: number;
  /** The token's audience; null for a token without an audience. */
  readonly audience?: string | readonly string[] | null;
  readonly issuer?: string;
  /** The key to sign with: "key-0" is the first key, and so on. Default: the newest key. */
  readonly keyId?: string;
  /** Wall time at which the token is issued. Default: the time of this machine. */
  readonly nowMs?: number;
}

interface SigningKey {
  readonly id: string;
  readonly privateKey: Awaited<ReturnType<typeof generateKeyPair>>["privateKey"];
  readonly publicJwk: JWK;
}

interface Device {
  readonly code: string;
  polls: number;
  state: "pending" | "approved" | "denied";
}

/** The part of an authorization request that the issuer needs when the browser's code is redeemed. */
interface Authorization {
  readonly redirectUri: string;
  readonly challenge: string;
  readonly nonce: string;
}

/**
 * An OpenID Connect issuer on loopback, with real keys. Supports discovery, rotating keys, the device flow, the
 * authorization code flow with PKCE, and refresh tokens. Can simulate an outage.
 */
export class TestIssuer {
  /** The audience of the issuer's tokens. */
  readonly audience = "rollcall";
  readonly clientId = "rollcall-cli";
  /** All requests so far, for example "GET /jwks". */
  readonly requests: string[] = [];
  /** Whether to break every connection. */
  away = false;
  /**
   * Whether the issuer serves keys only to clients that accept their specific media type, as the API servers of
   * Kubernetes do.
   */
  isStrict = true;
  /** The claims of people who log in with the device flow. */
  claims: TestClaims = { sub: "alice", rollcall_role: "operator" };
  /** The lifetime of these people's tokens, in seconds. */
  tokenLifeS = 3_600;
  #keys: SigningKey[] = [];
  #made = 0;
  #devices: Device[] = [];
  #refreshTokens = new Set<string>();
  readonly #authorizations = new Map<string, Authorization>();
  readonly #server = createServer((request, response) => this.#answer(request, response));
  #port = 0;

  /** The issuer's URL, as in its tokens. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    await this.addKey();
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const address = this.#server.address();
    if (typeof address === "object" && address !== null) this.#port = address.port;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Add a key and sign with it from now on. Older keys are still published. Returns the key's id. */
  async addKey(algorithm: "ES256" | "RS256" = "ES256"): Promise<string> {
    const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
    const id = `key-${this.#made}`;
    this.#made += 1;
    const publicJwk = { ...(await exportJWK(publicKey)), kid: id, alg: algorithm, use: "sig" };
    this.#keys = [...this.#keys, { id, privateKey, publicJwk }];
    return id;
  }

  /** Publish only the newest key. */
  forgetOldKeys(): void {
    this.#keys = this.#keys.slice(-1);
  }

  /** Make a token. */
  async token(claims: TestClaims = this.claims, options: TestTokenOptions = {}): Promise<string> {
    const { expiresInS = 3_600, audience = this.audience, issuer = this.url, keyId } = options;
    const key = this.#keys.findLast(({ id }) => keyId === undefined || id === keyId);
    if (key === undefined) throw new Error(`the issuer has no key ${keyId}`);
    const nowS = Math.floor((options.nowMs ?? Date.now()) / 1_000);
    const token = new SignJWT({ iat: nowS, exp: nowS + expiresInS, ...claims })
      .setProtectedHeader({ alg: String(key.publicJwk.alg), kid: key.id, typ: "JWT" })
      .setIssuer(issuer);
    return (audience === null ? token : token.setAudience([audience].flat())).sign(key.privateKey);
  }

  /** The number of requests of a kind, for example "GET /jwks". */
  count(request: string): number {
    return this.requests.filter((it) => it === request).length;
  }

  /** Approve or deny the login that started last. */
  decideLogin(state: "approved" | "denied"): void {
    const device = this.#devices.at(-1);
    if (device === undefined) throw new Error("no login was begun");
    device.state = state;
  }

  /**
   * Act as a browser that was sent to this URL and whose user consents. Returns the URL that the browser is
   * redirected to.
   */
  authorize(url: string): string {
    const asked = new URL(url).searchParams;
    const text = (name: string) => asked.get(name) ?? "";
    if (text("client_id") !== this.clientId || text("response_type") !== "code")
      throw new Error(`not a client: ${url}`);
    if (text("code_challenge_method") !== "S256") throw new Error(`without PKCE: ${url}`);
    const code = randomUUID();
    const redirectUri = text("redirect_uri");
    this.#authorizations.set(code, { redirectUri, challenge: text("code_challenge"), nonce: text("nonce") });
    return `${redirectUri}?${new URLSearchParams({ code, state: text("state"), iss: this.url })}`;
  }

  /** Invalidate all refresh tokens. */
  forgetLogins(): void {
    this.#refreshTokens.clear();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const what = `${request.method} ${request.url}`;
    this.requests.push(what);
    if (this.away) {
      request.socket.destroy();
      return;
    }
    if (what.startsWith("GET /authorize?")) {
      response.writeHead(302, { location: this.authorize(`${this.url}${request.url}`) }).end();
      return;
    }
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", async () => {
      const takesKeys = /jwk-set\+json|\*\/\*/.test(request.headers.accept ?? "*/*");
      const isRefused = this.isStrict && what === "GET /jwks" && !takesKeys;
      const [status, answer] = isRefused ? [406, {}] : await this.#answerTo(what, new URLSearchParams(body));
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(answer));
    });
  }

  async #answerTo(what: string, form: URLSearchParams): Promise<readonly [number, unknown]> {
    switch (what) {
      case "GET /.well-known/openid-configuration":
        return [200, this.#configuration()];
      case "GET /jwks":
        return [200, { keys: this.#keys.map(({ publicJwk }) => publicJwk) }];
      case "POST /device":
        return [200, this.#beginLogin()];
      case "POST /token":
        return this.#giveTokens(form);
      default:
        return [404, { error: "not_found" }];
    }
  }

  #configuration() {
    return {
      issuer: this.url,
      jwks_uri: `${this.url}/jwks`,
      authorization_endpoint: `${this.url}/authorize`,
      device_authorization_endpoint: `${this.url}/device`,
      token_endpoint: `${this.url}/token`,
      id_token_signing_alg_values_supported: ["ES256", "RS256"],
    };
  }

  #beginLogin() {
    const code = `device-${this.#devices.length}`;
    this.#devices.push({ code, polls: 0, state: "pending" });
    return {
      device_code: code,
      user_code: "WDJB-MJHT",
      verification_uri: `${this.url}/verify`,
      verification_uri_complete: `${this.url}/verify?code=WDJB-MJHT`,
      expires_in: 600,
      interval: 0.01,
    };
  }

  async #giveTokens(form: URLSearchParams): Promise<readonly [number, unknown]> {
    if (form.get("client_id") !== this.clientId) return [401, { error: "invalid_client" }];
    if (form.get("grant_type") === "refresh_token") {
      // Delete the refresh token, because it can be used only once, as with issuers that rotate refresh tokens.
      const isGood = this.#refreshTokens.delete(form.get("refresh_token") ?? "");
      return isGood ? [200, await this.#tokens()] : [400, { error: "invalid_grant" }];
    }
    if (form.get("grant_type") === "authorization_code") return this.#giveFor(form);
    const device = this.#devices.find(({ code }) => code === form.get("device_code"));
    if (device === undefined) return [400, { error: "expired_token" }];
    device.polls += 1;
    if (device.state === "denied") return [400, { error: "access_denied" }];
    if (device.state === "pending") return [400, { error: "authorization_pending" }];
    return [200, await this.#tokens()];
  }

  async #giveFor(form: URLSearchParams): Promise<readonly [number, unknown]> {
    const code = form.get("code") ?? "";
    const begun = this.#authorizations.get(code);
    // Delete the code, because it can be used only once.
    this.#authorizations.delete(code);
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    const isGood = begun?.redirectUri === form.get("redirect_uri") && begun?.challenge === challenge;
    if (!isGood) return [400, { error: "invalid_grant", error_description: "the code is not good" }];
    const id_token = await this.token({ ...this.claims, nonce: begun.nonce }, { audience: this.clientId });
    // Give the access token an audience, as some issuers do.
    const access_token = await this.token(this.claims, { expiresInS: this.tokenLifeS });
    return [200, { ...(await this.#tokens()), id_token, access_token }];
  }

  async #tokens() {
    const refreshToken = `refresh-${this.requests.length}`;
    this.#refreshTokens.add(refreshToken);
    // Name the client as well, because each ID token has its client as an audience.
    const claims = { ...this.claims, azp: this.clientId };
    const options = { expiresInS: this.tokenLifeS, audience: [this.audience, this.clientId] };
    return {
      access_token: "opaque",
      id_token: await this.token(claims, options),
      refresh_token: refreshToken,
      token_type: "Bearer",
      expires_in: this.tokenLifeS,
    };
  }
}
