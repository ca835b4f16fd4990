import { Agent as HttpAgent, type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from "node:http";
import { constants } from "node:http2";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import tls from "node:tls";
import { type RefusalError, refuse } from "@rollcall/errors";
import type { ForeignCall, HttpResponse, PassOn, PeerTls } from "@rollcall/rpc";
import { MESSAGE_LIMIT_BYTES, refuseCall, writeHead } from "@rollcall/rpc";

/** Where to forward the calls of other services. */
export interface UpstreamOptions {
  /** Keyed by a service such as "WebhookService", or by a package such as "admin"; "*" is for all others. */
  readonly urls: Readonly<Record<string, string>>;
  /** How to verify other processes of this cluster over TLS; null to trust only the system's authorities. */
  readonly tls: PeerTls | null;
  /** Maximum number of concurrent calls; further ones are refused with OVERLOADED. Default 1,000. */
  readonly mostCalls?: number;
  /** How long a service can take to start its response. Default 65 s, longer than any call's deadline. */
  readonly answerMs?: number;
}

/** Forwards calls to other services. */
export interface Upstream {
  readonly passOn: PassOn;
  /** Close idle connections. */
  close(): void;
}

const METHOD = /^\/rollcall\.([a-z]+)\.v\d+\.(\w+)\/\w+$/;
/**
 * Content types of the requests that a page can send with fetch, each with one message. Plain gRPC is missing, because
 * it needs trailers, which fetch cannot read.
 */
const BY_FETCH = /^application\/(?:json|proto|connect\+(?:json|proto)|grpc-web(?:\+\w+)?)(?:;|$)/;
const ASKED =
  /^(?:authorization|content-type|content-encoding|accept-encoding|connect-[\w-]+|grpc-[\w-]+|x-grpc-web|x-user-agent|x-request-id|rollcall-min-revision|traceparent|tracestate)$/;
const ANSWERED =
  /^(?:content-type|content-encoding|content-length|connect-[\w-]+|grpc-[\w-]+|trailer-[\w-]+|x-request-id|rollcall-revision)$/;
const LARGEST_REQUEST_BYTES = MESSAGE_LIMIT_BYTES + 1_024;
const RETRY_AFTER_MS = 2_000;
const IDLE_MS = 30_000;

/**
 * Forward calls of pages unchanged to the services that have the methods. The service authenticates the same token.
 * Headers that mean nothing to the service are removed, above all the cookie.
 */
export function createUpstream({ urls, tls: peers, mostCalls = 1_000, answerMs = 65_000 }: UpstreamOptions): Upstream {
  const kept = { keepAlive: true, timeout: IDLE_MS, maxSockets: mostCalls };
  const agents = { http: new HttpAgent(kept), https: new HttpsAgent(kept) };
  let underWay = 0;
  const passOn: PassOn = (call) => {
    const { request, response, path } = call;
    const [, area = "", service = ""] = METHOD.exec(path) ?? [];
    const base = urls[[service, area].find((key) => Object.hasOwn(urls, key)) ?? "*"];
    const type = request.headers["content-type"] ?? "";
    if (area === "" || base === undefined || request.method !== "POST" || !BY_FETCH.test(type)) return false;
    if (underWay >= mostCalls) {
      const message = `${mostCalls} calls are already in progress; try again`;
      refuseCall(request, response, refuse("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS }));
      return true;
    }
    underWay += 1;
    response.once("close", () => {
      underWay -= 1;
    });
    forward(call, new URL(path, base), { agents, peers, answerMs });
    return true;
  };
  return {
    passOn,
    close: () => {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

interface Forwarding {
  readonly agents: { readonly http: HttpAgent; readonly https: HttpsAgent };
  readonly peers: PeerTls | null;
  readonly answerMs: number;
}

function forward({ request, response, peer }: ForeignCall, url: URL, { agents, peers, answerMs }: Forwarding): void {
  const headers = { ...chosen(request.headers, ASKED), "x-forwarded-for": peer.replace(/:\d+$/, "") };
  const out =
    url.protocol === "https:"
      ? requestHttps(url, { method: "POST", headers, agent: agents.https, ...securely(peers) })
      : requestHttp(url, { method: "POST", headers, agent: agents.http });
  let isAnswered = false;
  // Whether the page has left or its call was refused. If so, everything that the service still sends is ignored.
  let isOver = false;
  const refuseWith = (error: RefusalError) => {
    isOver = true;
    request.unpipe(out);
    out.destroy();
    refuseCall(request, response, error);
  };
  const fail = (cause: unknown) => {
    if (isOver) return;
    if (isAnswered) {
      cut(response);
      return;
    }
    const message = `the service at ${url.host} is unreachable from the console; try again`;
    const metadata = { upstream: url.host };
    refuseWith(refuse("UPSTREAM_UNAVAILABLE", message, { metadata, retryAfterMs: RETRY_AFTER_MS, cause }));
  };
  const timer = setTimeout(() => fail(new Error("no answer in time")), answerMs);
  out.once("response", (answer) => {
    clearTimeout(timer);
    if (isOver) return;
    isAnswered = true;
    answerWith(answer, response);
  });
  out.on("error", fail);
  response.once("close", () => {
    isOver = true;
    clearTimeout(timer);
    out.destroy();
  });
  let size = 0;
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= LARGEST_REQUEST_BYTES || isOver || isAnswered) return;
    refuseWith(refuse("MESSAGE_TOO_LARGE", `a message can have at most ${MESSAGE_LIMIT_BYTES} bytes`));
  });
  request.pipe(out);
}

function answerWith(answer: IncomingMessage, response: HttpResponse): void {
  writeHead(response, answer.statusCode ?? 502, chosen(answer.headers, ANSWERED));
  // Send the headers now, because a page considers a stream open once it has them, and the first message may come late.
  if (!("stream" in response)) response.flushHeaders();
  answer.once("aborted", () => cut(response));
  answer.once("error", () => cut(response));
  answer.pipe(response as NodeJS.WritableStream);
}

/** Abort a response that the service did not complete, so that it does not look complete. */
function cut(response: HttpResponse): void {
  if ("stream" in response) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else response.destroy();
}

function chosen(headers: IncomingHttpHeaders | NodeJS.Dict<string | string[]>, names: RegExp) {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && names.test(name)) kept[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return kept;
}

/**
 * Create an agent that verifies other processes. Processes of one cluster may share a certificate, so the agent accepts
 * a certificate for the address, or for a name that our own certificate has.
 */
function securely(peers: PeerTls | null) {
  if (peers === null) return {};
  return {
    ...peers.read(),
    checkServerIdentity: (name: string, certificate: tls.PeerCertificate) => {
      const problem = tls.checkServerIdentity(name, certificate);
      const isOurs = peers.ownNames().some((own) => tls.checkServerIdentity(own, certificate) === undefined);
      return isOurs ? undefined : problem;
    },
  };
}
