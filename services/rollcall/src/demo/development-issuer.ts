import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Failure } from "@rollcall/cli";
import { systemErrorWords } from "@rollcall/process";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

/** A person who can log in. */
export interface DemoPerson {
  readonly name: string;
  readonly email: string;
  readonly groups: readonly string[];
}

/** One person for each role that docs/first-day.md maps. */
export const DEMO_PEOPLE: readonly DemoPerson[] = [
  { name: "ana", email: "ana@example.com", groups: ["sre"] },
  { name: "oscar", email: "oscar@example.com", groups: ["oncall"] },
  { name: "vera", email: "vera@example.com", groups: ["staff"] },
];

/** The audience with which clients of the issuer are configured. */
export const DEMO_AUDIENCE = "rollcall";
export const DEMO_CLIENT_ID = "rollcall-cli";

const ALGORITHM = "ES256";
const KEY_ID = "development";
const TOKEN_LIFE_S = 3_600;
const CODE_LIFE_S = 600;
const USER_CODE_LENGTH = 8;
/** Maximum number of logins in progress, and of refresh tokens. Beyond this number, the oldest are forgotten. */
const MOST_LOGINS = 100;
const MOST_BODY_BYTES = 16_384;

type PrivateKey = Awaited<ReturnType<typeof generateKeyPair>>["privateKey"];

/** A login in progress: of a device, or of a browser. */
interface Login {
  readonly id: string;
  /** The authorization request of a browser; absent for a device. */
  readonly browser?: {
    readonly redirectUri: string;
    readonly challenge: string;
    readonly nonce: string;
    readonly state: string;
  };
  person: DemoPerson | null;
}

/** The response to a request. */
interface Answer {
  readonly status: number;
  readonly type?: "json" | "html";
  readonly body?: unknown;
  readonly location?: string;
}

/**
 * An OpenID Connect issuer for trying out logins: anyone who reaches it can log in as anyone. It listens only on this
 * machine. It supports discovery, the device flow, the authorization code flow with PKCE, and refresh tokens.
 */
export class DevelopmentIssuer {
  readonly #logins = new Map<string, Login>();
  readonly #refreshTokens = new Map<string, DemoPerson>();
  readonly #server: Server;
  readonly #privateKey: PrivateKey;
  readonly #publicKey: JWK;
  #port = 0;

  private constructor(privateKey: PrivateKey, publicKey: JWK) {
    this.#privateKey = privateKey;
    this.#publicKey = publicKey;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  /** Listen on a port of this machine; 0 for any free port. Rejects with Failure when it cannot. */
  static async listen(port: number): Promise<DevelopmentIssuer> {
    const { privateKey, publicKey } = await generateKeyPair(ALGORITHM);
    const jwk = { ...(await exportJWK(publicKey)), kid: KEY_ID, alg: ALGORITHM, use: "sig" };
    const issuer = new DevelopmentIssuer(privateKey, jwk);
    await new Promise<void>((resolve, reject) => {
      issuer.#server.once("error", (cause) => {
        const text = `cannot listen on 127.0.0.1:${port}: ${systemErrorWords(cause)}; choose another port with --port`;
        reject(new Failure(text, { cause }));
      });
      issuer.#server.listen(port, "127.0.0.1", resolve);
    });
    const address = issuer.#server.address();
    if (typeof address === "object" && address !== null) issuer.#port = address.port;
    return issuer;
  }

  /** The issuer's URL, as in its tokens. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let answer: Answer;
    try {
      const url = new URL(request.url ?? "/", this.url);
      const form = request.method === "POST" ? new URLSearchParams(await readBody(request)) : url.searchParams;
      answer = await this.#route(`${request.method} ${url.pathname}`, form);
    } catch {
      answer = { status: 400, body: { error: "invalid_request" } };
    }
    const { status, type = "json", body = {}, location } = answer;
    const headers = location === undefined ? {} : { location };
    response.writeHead(status, { ...headers, "content-type": type === "json" ? "application/json" : "text/html" });
    response.end(type === "json" ? JSON.stringify(body) : String(body));
  }

  async #route(what: string, form: URLSearchParams): Promise<Answer> {
    switch (what) {
      case "GET /.well-known/openid-configuration":
        return { status: 200, body: this.#configuration() };
      case "GET /jwks":
        return { status: 200, body: { keys: [this.#publicKey] } };
      case "GET /authorize":
        return this.#startBrowser(form);
      case "POST /device":
        return this.#startDevice();
      case "GET /verify":
        return this.#people(form.get("code") ?? "");
      case "POST /verify":
        return this.#choose(form);
      case "POST /token":
        return this.#tokens(form);
      default:
        return { status: 404, body: { error: "not_found" } };
    }
  }

  #configuration() {
    return {
      issuer: this.url,
      jwks_uri: `${this.url}/jwks`,
      authorization_endpoint: `${this.url}/authorize`,
      device_authorization_endpoint: `${this.url}/device`,
      token_endpoint: `${this.url}/token`,
      id_token_signing_alg_values_supported: [ALGORITHM],
    };
  }

  #begin(login: Login): void {
    this.#logins.set(login.id, login);
    forgetOldest(this.#logins);
  }

  #startBrowser(form: URLSearchParams): Answer {
    const text = (name: string) => form.get(name) ?? "";
    const isKnown = text("client_id") === DEMO_CLIENT_ID && text("response_type") === "code";
    if (!isKnown || text("code_challenge_method") !== "S256" || !URL.canParse(text("redirect_uri"))) {
      return { status: 400, body: { error: "invalid_request" } };
    }
    const id = randomUUID();
    const browser = {
      redirectUri: text("redirect_uri"),
      challenge: text("code_challenge"),
      nonce: text("nonce"),
      state: text("state"),
    };
    this.#begin({ id, browser, person: null });
    return this.#people(id);
  }

  #startDevice(): Answer {
    const id = randomUUID();
    this.#begin({ id, person: null });
    const verify = `${this.url}/verify`;
    const body = {
      ...{ device_code: id, user_code: id.slice(0, USER_CODE_LENGTH), verification_uri: verify },
      ...{ verification_uri_complete: `${verify}?code=${id}`, expires_in: CODE_LIFE_S, interval: 1 },
    };
    return { status: 200, body };
  }

  /** Return the page on which the user chooses a person: for one login, or for all logins that wait. */
  #people(code: string): Answer {
    const waiting = [...this.#logins.values()].filter(({ person }) => person === null);
    const login = this.#find(code);
    const logins = code === "" ? waiting : login === undefined ? [] : [login];
    if (logins.length === 0) return { status: 404, type: "html", body: page("<p>No login waits here.</p>") };
    return { status: 200, type: "html", body: page(logins.map(({ id }) => loginForm(id)).join("")) };
  }

  /** Find a login by its whole code, or by the first characters, which a person types. */
  #find(code: string): Login | undefined {
    if (code.length < USER_CODE_LENGTH) return undefined;
    return this.#logins.get(code) ?? [...this.#logins.values()].find(({ id }) => id.startsWith(code));
  }

  #choose(form: URLSearchParams): Answer {
    const login = this.#find(form.get("code") ?? "");
    const person = DEMO_PEOPLE.find(({ name }) => name === form.get("person"));
    if (login === undefined || person === undefined) return { status: 404, body: { error: "not_found" } };
    login.person = person;
    if (login.browser === undefined) {
      return { status: 200, type: "html", body: page(`<p>You are logged in as ${person.email}. Close this page.</p>`) };
    }
    const { redirectUri, state } = login.browser;
    const location = new URL(redirectUri);
    for (const [name, value] of Object.entries({ code: login.id, state, iss: this.url })) {
      location.searchParams.set(name, value);
    }
    return { status: 303, location: location.href };
  }

  async #tokens(form: URLSearchParams): Promise<Answer> {
    const refused = (error: string): Answer => ({ status: 400, body: { error } });
    if (form.get("client_id") !== DEMO_CLIENT_ID) return { status: 401, body: { error: "invalid_client" } };
    if (form.get("grant_type") === "refresh_token") {
      const token = form.get("refresh_token") ?? "";
      const person = this.#refreshTokens.get(token);
      // Delete the refresh token, because it can be used only once.
      this.#refreshTokens.delete(token);
      return person === undefined ? refused("invalid_grant") : this.#issue(person);
    }
    const login = this.#logins.get(form.get("code") ?? form.get("device_code") ?? "");
    if (login === undefined) return refused(form.has("device_code") ? "expired_token" : "invalid_grant");
    if (login.person === null) return refused("authorization_pending");
    this.#logins.delete(login.id);
    if (login.browser === undefined) return this.#issue(login.person);
    const { redirectUri, challenge, nonce } = login.browser;
    const verifier = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (verifier !== challenge || form.get("redirect_uri") !== redirectUri) return refused("invalid_grant");
    return this.#issue(login.person, nonce);
  }

  async #issue(person: DemoPerson, nonce?: string): Promise<Answer> {
    const refresh = randomUUID();
    this.#refreshTokens.set(refresh, person);
    forgetOldest(this.#refreshTokens);
    const claims = { sub: person.name, email: person.email, email_verified: true, groups: person.groups };
    const body = {
      access_token: await this.#sign(claims, DEMO_AUDIENCE),
      id_token: await this.#sign(nonce === undefined ? claims : { ...claims, nonce }, DEMO_CLIENT_ID),
      ...{ refresh_token: refresh, token_type: "Bearer", expires_in: TOKEN_LIFE_S },
    };
    return { status: 200, body };
  }

  #sign(claims: Readonly<Record<string, unknown>>, audience: string): Promise<string> {
    return new SignJWT({ ...claims })
      .setProtectedHeader({ alg: ALGORITHM, kid: KEY_ID, typ: "JWT" })
      .setIssuer(this.url)
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime(`${TOKEN_LIFE_S}s`)
      .sign(this.#privateKey);
  }
}

function forgetOldest(map: Map<string, unknown>): void {
  for (const key of map.keys()) {
    if (map.size <= MOST_LOGINS) return;
    map.delete(key);
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) {
    body += chunk;
    if (body.length > MOST_BODY_BYTES) throw new Error("the body is too long");
  }
  return body;
}

function loginForm(id: string): string {
  const buttons = DEMO_PEOPLE.map(
    ({ name, email, groups }) => `<button name="person" value="${name}">${email} (${groups.join(", ")})</button>`,
  );
  const hidden = `<input type="hidden" name="code" value="${id}">`;
  return `<form method="post" action="/verify">${id.slice(0, USER_CODE_LENGTH)} ${hidden}${buttons.join(" ")}</form>`;
}

function page(content: string): string {
  return `<!doctype html><title>Log in to the demo</title><h1>Log in to the demo as</h1>${content}`;
}
