import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer as createServer2,
  type Http2Server,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { until } from "@rollcall/testkit/time";
import { createUpstream, type Upstream } from "./upstream.ts";

const PATH = "/rollcall.admin.v1.AccessService/WhoAmI";
const TYPES = ["application/json", "application/connect+proto", "application/grpc-web+proto"];

let service: Server;
let arrived: IncomingMessage[];
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let upstream: Upstream;
let front: Http2Server;
let page: ClientHttp2Session;

async function listening(server: Server | Http2Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

beforeEach(async () => {
  arrived = [];
  answer = () => {};
  service = createServer((request, response) => {
    arrived.push(request);
    answer(request, response);
  });
  const url = `http://127.0.0.1:${await listening(service)}`;
  upstream = createUpstream({ urls: { "*": url }, tls: null, answerMs: 30_000 });
  front = createServer2((request, response) => {
    const call = { request, response, path: request.url, peer: "192.0.2.1:5", known: () => {} };
    if (upstream.passOn(call)) return;
    response.writeHead(404);
    response.end();
  });
  page = connect(`http://127.0.0.1:${await listening(front)}`);
});

afterEach(async () => {
  page.destroy();
  upstream.close();
  service.closeAllConnections();
  await Promise.all([front, service].map((server) => new Promise((resolve) => server.close(resolve))));
});

function open(path: string, type: string, more: Readonly<Record<string, string>> = {}) {
  const headers = { ":method": "POST", ":path": path, "content-type": type, ...more };
  return page.request(headers, { endStream: false });
}

/** Returns the status and the whole body of a call. */
async function call(path: string, type: string, body: string | Buffer = "{}") {
  const stream = open(path, type);
  let status = 0;
  const chunks: Buffer[] = [];
  stream.on("response", (headers) => {
    status = Number(headers[":status"]);
  });
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise((resolve) => stream.once("close", resolve));
  stream.end(body);
  await ended;
  return { status, body: Buffer.concat(chunks).toString() };
}

describe("createUpstream()", () => {
  it("should forward a call and its answer", async () => {
    answer = (request, response) => request.resume().once("end", () => response.end('{"actor":"a"}'));
    expect(await call(PATH, "application/json")).toEqual({ status: 200, body: '{"actor":"a"}' });
    expect(arrived[0]?.headers["x-forwarded-for"]).toBe("192.0.2.1");
  });

  it("should forward the revision that a page has seen, and that of the answer", async () => {
    answer = (request, response) => {
      response.setHeader("rollcall-revision", "8");
      request.resume().once("end", () => response.end("{}"));
    };
    const stream = open(PATH, "application/json", { "rollcall-min-revision": "7" });
    stream.resume().end("{}");
    const revision = await new Promise((resolve) => {
      stream.on("response", (headers) => resolve(headers["rollcall-revision"]));
    });
    expect(revision).toBe("8");
    expect(arrived[0]?.headers["rollcall-min-revision"]).toBe("7");
  });

  it.each(TYPES)("should cancel a half-sent call of %s when the page leaves, and continue", async (type) => {
    const stream = open(PATH, type);
    stream.on("error", () => {});
    stream.write("{");
    const [asked] = await until("the call to arrive", () => (arrived.length > 0 ? arrived : null));
    stream.close(constants.NGHTTP2_CANCEL);
    await until("the service to be left", () => (asked?.destroyed === true ? true : null));
    answer = (request, response) => request.resume().once("end", () => response.end("{}"));
    expect((await call(PATH, type)).status).toBe(200);
  });

  it("should refuse a message that is too large, with the complete error", async () => {
    const { status, body } = await call(PATH, "application/json", Buffer.alloc(1_100_000, "x"));
    expect([status, body]).toEqual([429, expect.stringContaining("MESSAGE_TOO_LARGE")]);
  });

  it("should report an unreachable service", async () => {
    const away = createUpstream({ urls: { "*": "http://127.0.0.1:1" }, tls: null });
    const before = upstream;
    upstream = away;
    const { status, body } = await call(PATH, "application/json");
    before.close();
    expect([status, body]).toEqual([503, expect.stringContaining("UPSTREAM_UNAVAILABLE")]);
  });

  it.each(["/rollcall.constructor.v1.A/B", "/rollcall.toString.v1.A/B", "/other.admin.v1.A/B"])(
    "should not forward %s, which names no service",
    async (path) => {
      upstream.close();
      upstream = createUpstream({ urls: { admin: "http://127.0.0.1:1" }, tls: null });
      expect((await call(path, "application/json")).status).toBe(404);
    },
  );
});
