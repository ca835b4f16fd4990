import { Agent as HttpAgent, type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from "node:http";
import { constants } from "node:http2";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import tls from "node:tls";
import type { ConnectError } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import type { ForeignCall, HttpResponse, PassOn, PeerTls } from "@rollcall/rpc";
import { MESSAGE_LIMIT_BYTES, refuseCall, writeHead } from "@rollcall/rpc";

/** Where the services are whose calls are passed on. */
export interface UpstreamOptions {
  /** The URL by a service's name, such as "WebhookService", or by its package, such as "admin"; "*" for all others. */
  readonly urls: Readonly<Record<string, string>>;
  /** How processes of this cluster are recognised over TLS; the system's authorities alone when null. */
  readonly tls: PeerTls | null;
  /** Calls under way at most; further ones are refused with OVERLOADED. Default 1,000. */
  readonly mostCalls?: number;
  /** How long a service may take to begin to answer. Default 65 s, which no call may take. */
  readonly answerMs?: number;
}

/** Passes calls on to other services. */
export interface Upstream {
  readonly passOn: PassOn;
  /** End connections that no call is on. */
  close(): void;
}

const METHOD = /^\/rollcall\.([a-z]+)\.v\d+\.(\w+)\/\w+$/;
/** What a page can send by fetch. A request has one message; gRPC itself needs trailers, which fetch cannot read. */
const BY_FETCH = /^application\/(?:json|proto|connect\+(?:json|proto)|grpc-web(?:\+\w+)?)(?:;|$)/;
const ASKED =
  /^(?:authorization|content-type|content-encoding|accept-encoding|connect-[\w-]+|grpc-[\w-]+|x-grpc-web|x-user-agent|x-request-id|rollcall-min-revision|traceparent|tracestate)$/;
const ANSWERED =
  /^(?:content-type|content-encoding|content-length|connect-[\w-]+|grpc-[\w-]+|trailer-[\w-]+|x-request-id|rollcall-revision)$/;
const LARGEST_REQUEST_BYTES = MESSAGE_LIMIT_BYTES + 1_024;
const RETRY_AFTER_MS = 2_000;
const IDLE_MS = 30_000;

/**
 * Pass calls of pages on to the services that have the methods, as they are: who calls is for the service to find out,
 * by the same token. Headers that mean nothing to it stay here, the cookie above all.
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
      const message = `${mostCalls} calls are passed on already, try again`;
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
  // The page has gone, or has been refused: what the connection to the service still says concerns no caller.
  let isOver = false;
  const refuseWith = (error: ConnectError) => {
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
    const message = `the service at ${url.host} cannot be reached by the console, try again`;
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
    refuseWith(refuse("MESSAGE_TOO_LARGE", `a message has ${MESSAGE_LIMIT_BYTES} bytes at most`));
  });
  request.pipe(out);
}

function answerWith(answer: IncomingMessage, response: HttpResponse): void {
  writeHead(response, answer.statusCode ?? 502, chosen(answer.headers, ANSWERED));
  // A stream begins when it was opened, and not with its first message.
  if (!("stream" in response)) response.flushHeaders();
  answer.once("aborted", () => cut(response));
  answer.once("error", () => cut(response));
  answer.pipe(response as NodeJS.WritableStream);
}

/** An answer that breaks off must not look whole. */
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

/** Processes of one cluster may share a certificate: the peer's is for the address, or for a name that ours has. */
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
