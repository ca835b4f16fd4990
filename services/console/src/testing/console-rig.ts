import { randomBytes, randomUUID } from "node:crypto";
import { request as requestHttp } from "node:http";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Authenticator } from "@rollcall/identity";
import { openOidc } from "@rollcall/identity/oidc";
import { createMetrics, silentLogger, systemClock } from "@rollcall/process";
import { createRpcServer, type FailedAttempts } from "@rollcall/rpc";
import { accessTokenHash, createAuthenticator, ensureAccessToken, type Store } from "@rollcall/store";
import { type ConsoleProcess, createApp, originCheck } from "../index.ts";
import { bearerOfHalves } from "../sign-in/session-secret.ts";

/** The store of a rig. The testkit's TestDatabase satisfies this type. */
export interface RigRecord {
  readonly store: Store;
  drop?(): Promise<void>;
}

/** A console on its own port. */
export interface ConsoleRig {
  readonly store: Store;
  readonly port: number;
  /** For example "http://127.0.0.1:41234". */
  readonly origin: string;
  /** Create a browser that is not signed in. */
  browser(): TestBrowser;
  /** Call a method as a program does, with or without a token. */
  call(method: string, message?: object, token?: string): Promise<CallAnswer>;
  close(): Promise<void>;
}

export interface RigOptions extends Partial<Pick<ConsoleProcess, "issuers" | "pages" | "settings">> {
  readonly failures?: FailedAttempts;
}

const SETTINGS = { idleMs: 1_800_000, longestMs: 43_200_000, isNetworkTrusted: false };

/** Start a console on a real port with a real store, as in a separate process. */
export async function startConsole(record: RigRecord, options: RigOptions = {}): Promise<ConsoleRig> {
  const { store } = record;
  const [clock, log, metrics] = [systemClock, silentLogger, createMetrics({ defaults: false })];
  const { issuers = [] } = options;
  const byToken = createAuthenticator({ store, clock, cacheMs: 0 });
  const byIssuer = await openOidc({ issuers, clock, log });
  const authenticate: Authenticator = async (bearer) => (await byIssuer?.(bearer)) ?? byToken(bearer);
  const common = { store, clock, log, authenticate, issuers, settings: SETTINGS, pages: null, upstream: null };
  const app = createApp({ ...common, ...options });
  const server = await createRpcServer({
    host: "127.0.0.1",
    port: 0,
    routes: app.routes,
    services: app.services,
    policies: app.policies,
    authenticate,
    door: originCheck({ clusterId: store.clusterId(), isNetworkTrusted: SETTINGS.isNetworkTrusted }),
    fallback: app.serve,
    log,
    metrics,
  });
  const origin = `http://127.0.0.1:${server.port}`;
  return {
    store,
    port: server.port,
    origin,
    browser: () => new TestBrowser(server.port, origin),
    call: (method, message = {}, token) =>
      post(server.port, method, message, token === undefined ? {} : { authorization: `Bearer ${token}` }),
    close: async () => {
      await server.close();
      await app.close();
      await record.drop?.();
    },
  };
}

/** The response to a call in Connect's JSON. */
export interface CallAnswer {
  readonly status: number;
  readonly setCookie: readonly string[];
  /** The message, or the error. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The reason of an error; undefined for none. */
  readonly reason: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Sends what a browser sends with a call: its cookies, the page's origin, and the page's headers. */
export class TestBrowser {
  /** The cookies, keyed by name. */
  cookies = new Map<string, string>();
  /** The half of the secret that the page keeps. */
  proof: string | null = null;
  readonly #port: number;
  readonly #origin: string;

  constructor(port: number, origin: string) {
    this.#port = port;
    this.#origin = origin;
  }

  /** Call a method as our page does. `headers` override the page's headers; undefined removes one. */
  async call(
    method: string,
    message: object = {},
    other: Readonly<Record<string, string | undefined>> = {},
  ): Promise<CallAnswer> {
    const own = {
      origin: this.#origin,
      cookie: this.cookies.size === 0 ? undefined : [...this.cookies].map((pair) => pair.join("=")).join("; "),
      "x-rollcall-console": this.proof ?? undefined,
    };
    const answer = await post(this.#port, method, message, { ...own, ...other });
    for (const line of answer.setCookie) {
      const [, name = "", value = "", rest = ""] = /^([^=]+)=([^;]*)(.*)$/.exec(line) ?? [];
      if (rest.includes("Max-Age=0")) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return answer;
  }

  /** Sign in, and keep the cookie and proof of the response. */
  async signIn(message: object): Promise<CallAnswer> {
    const answer = await this.call("SignIn", message);
    if (typeof answer.body.proof === "string") this.proof = answer.body.proof;
    return answer;
  }

  /** The value of the browser's only cookie. */
  get cookie(): string {
    return [...this.cookies.values()][0] ?? "";
  }

  /** Both halves of the session's secret as a bearer token. */
  get bearer(): string {
    return bearerOfHalves(this.cookie, this.proof ?? "") ?? "";
  }
}

/** Store a new access token with a role. */
export async function createToken(store: Store, role: string) {
  const text = `test-${randomBytes(24).toString("base64url")}`;
  const id = randomUUID();
  await ensureAccessToken(store.db, { id, name: `${role}'s`, role, hash: accessTokenHash(text) });
  return { id, text, actor: `token:${id}` };
}

/** Create a client that sends these headers with each call, over HTTP/1.1 like browsers in clear text. */
export function clientWith<S extends DescService>(
  origin: string,
  service: S,
  headers: Readonly<Record<string, string>>,
): Client<S> {
  const carry: Interceptor = (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };
  return createClient(service, createConnectTransport({ baseUrl: origin, httpVersion: "1.1", interceptors: [carry] }));
}

function post(
  port: number,
  method: string,
  message: object,
  headers: Readonly<Record<string, string | undefined>>,
): Promise<CallAnswer> {
  const path = `/rollcall.console.v1.ConsoleService/${method}`;
  const given = Object.entries({ "content-type": "application/json", ...headers });
  const sent = Object.fromEntries(given.filter((pair): pair is [string, string] => pair[1] !== undefined));
  return new Promise((resolve, reject) => {
    const request = requestHttp({ host: "127.0.0.1", port, path, method: "POST", headers: sent, agent: false });
    request.once("error", reject);
    request.once("response", async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString("utf8");
      const body = text.startsWith("{") ? JSON.parse(text) : { text };
      const info = (body.details ?? []).find(({ type }: { type: string }) => type === "google.rpc.ErrorInfo");
      resolve({
        status: response.statusCode ?? 0,
        setCookie: response.headers["set-cookie"] ?? [],
        body,
        reason: info?.debug?.reason,
        metadata: info?.debug?.metadata ?? {},
      });
    });
    request.end(JSON.stringify(message));
  });
}
