import { once } from "node:events";
import net from "node:net";
import { gzipSync } from "node:zlib";
import { createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { describeError } from "@rollcall/errors";
import { renderMetrics } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import { failureOf, RpcFixture, TRANSPORT_KINDS } from "../../test/rpc-fixture.ts";
import { MESSAGE_LIMIT_BYTES } from "../server-options.ts";

const GET_NODE = "rollcall.registry.v1.RegistryService/GetNode";
const WATCH_NODES = "rollcall.registry.v1.RegistryService/WatchNodes";
/** A message without fields, with its header. */
const EMPTY = [0, 0, 0, 0, 0];
const JSON_HEADERS = { authorization: "Bearer viewer-token" };

let fixture: RpcFixture;
beforeEach(async () => {
  fixture = await RpcFixture.start();
});
afterEach(async () => await fixture.stop());

async function reasonOfPost(body: string | Uint8Array, headers: Record<string, string> = {}) {
  const response = await fixture.post(GET_NODE, body, { ...JSON_HEADERS, ...headers });
  const error = (await response.json()) as {
    code: string;
    details: { debug?: { reason?: string } }[];
  };
  return [response.status, error.code, error.details[0]?.debug?.reason];
}

describe("errors before any interceptor", () => {
  it.each(TRANSPORT_KINDS)("should refuse a message beyond the limit over %s", async (kind) => {
    const call = fixture.registry(kind).getNode({ node: "x".repeat(MESSAGE_LIMIT_BYTES + 1) });
    expect(describeError(await failureOf(call))).toMatchObject({
      code: 8,
      reason: "MESSAGE_TOO_LARGE",
    });
    // The connection and the server still work.
    expect((await fixture.registry(kind).getNode({ node: "n" })).node?.id).toBe("n");
  });

  it("should refuse a small message that decompresses to one above the limit", async () => {
    const packed = gzipSync(Buffer.from(`{"node":"${"x".repeat(MESSAGE_LIMIT_BYTES + 1)}"}`));
    expect(packed.length).toBeLessThan(5_000);
    const answer = await reasonOfPost(packed, { "content-encoding": "gzip" });
    expect(answer).toEqual([429, "resource_exhausted", "MESSAGE_TOO_LARGE"]);
  });

  it.each([
    ["malformed JSON", "}{"],
    ["an unknown field", '{"nodes":"n"}'],
    ["a value of another type", '{"node":7}'],
    ["nothing", ""],
  ])("should refuse %s as malformed", async (_, body) => {
    expect(await reasonOfPost(body)).toEqual([400, "invalid_argument", "MALFORMED_MESSAGE"]);
  });

  it("should refuse malformed messages over Connect, gRPC and gRPC-Web", async () => {
    const garbage = new Uint8Array([0x0a, 0xff, 0xff]);
    const answer = await reasonOfPost(garbage, { "content-type": "application/proto" });
    expect(answer).toEqual([400, "invalid_argument", "MALFORMED_MESSAGE"]);
    const framed = new Uint8Array([0, 0, 0, 0, garbage.length, ...garbage]);
    const web = await fixture.post(GET_NODE, framed, {
      ...JSON_HEADERS,
      "content-type": "application/grpc-web+proto",
    });
    expect(await web.text()).toMatch(/grpc-status: 3\r\n/);
    expect(fixture.lines.map((line) => line.reason)).toEqual(["MALFORMED_MESSAGE", "MALFORMED_MESSAGE"]);
  });

  it.each([
    ["Connect", "application/proto", "content-encoding", "accept-encoding", 501],
    ["a stream over Connect", "application/connect+proto", "connect-content-encoding", "connect-accept-encoding", 200],
    ["gRPC-Web", "application/grpc-web", "grpc-encoding", "grpc-accept-encoding", 200],
    ["gRPC", "application/grpc", "grpc-encoding", "grpc-accept-encoding", 200],
  ])(
    "should refuse an unknown compression over %s, and name those it knows",
    async (_, type, given, accepted, status) => {
      const headers = { ...JSON_HEADERS, "content-type": type, [given]: "br2" };
      const answer = await fixture.post(type.includes("+") ? WATCH_NODES : GET_NODE, "", headers);
      expect([answer.status, answer.headers.get(accepted)]).toEqual([status, "gzip,br"]);
      if (given === "grpc-encoding") expect(answer.headers.get("grpc-status")).toBe("12");
      else expect(await answer.text()).toContain('"unimplemented"');
      expect(fixture.lines).toMatchObject([{ code: "unimplemented", reason: "COMPRESSION_NOT_SUPPORTED" }]);
    },
  );

  it.each([
    ["Connect", "application/connect+proto", WATCH_NODES, [], "ONE_MESSAGE_REQUIRED"],
    ["Connect", "application/connect+proto", WATCH_NODES, [...EMPTY, ...EMPTY], "ONE_MESSAGE_REQUIRED"],
    ["Connect", "application/connect+proto", WATCH_NODES, [1, 0, 0, 0, 0], "COMPRESSION_NOT_NAMED"],
    ["gRPC-Web", "application/grpc-web+proto", GET_NODE, [], "ONE_MESSAGE_REQUIRED"],
    ["gRPC-Web", "application/grpc-web+proto", GET_NODE, [...EMPTY, ...EMPTY], "ONE_MESSAGE_REQUIRED"],
    ["gRPC-Web", "application/grpc-web+proto", GET_NODE, [1, 0, 0, 0, 0], "COMPRESSION_NOT_NAMED"],
  ])("should refuse other than one plain message over %s (%s, %s, %j): %s", async (_, type, method, body, reason) => {
    const answer = await fixture.post(method, Buffer.from(body), { ...JSON_HEADERS, "content-type": type });
    const text = await answer.text();
    const code = reason === "COMPRESSION_NOT_NAMED" ? ["internal", "13"] : ["unimplemented", "12"];
    expect(text).toMatch(new RegExp(`"code":"${code[0]}"|grpc-status: ${code[1]}\r`));
    await until("it is logged", () => fixture.lines.some((line) => line.reason === reason));
  });

  it("should refuse an unknown compression in a query, and a malformed timeout", async () => {
    const query = "connect=v1&encoding=json&compression=br2&message=%7B%7D";
    const answer = await fetch(`${fixture.url}/${GET_NODE}?${query}`, { headers: JSON_HEADERS });
    expect([answer.status, answer.headers.get("accept-encoding")]).toEqual([501, "gzip,br"]);
    expect((await reasonOfPost("{}", { "connect-timeout-ms": "soon" }))[2]).toBe("MALFORMED_MESSAGE");
  });

  it("should still log and count them, once", async () => {
    await reasonOfPost("}{");
    expect(fixture.lines).toHaveLength(1);
    expect(fixture.lines[0]).toMatchObject({
      msg: "call finished",
      method: GET_NODE,
      code: "invalid_argument",
      reason: "MALFORMED_MESSAGE",
    });
    expect(await renderMetrics(fixture.metrics)).toContain(
      `rollcall_rpc_duration_seconds_count{method="${GET_NODE}",code="invalid_argument"} 1`,
    );
  });
});

describe("requests that name no host", () => {
  it.each([
    ["an impossible host", "POST /x HTTP/1.1\r\nhost: [::z\r\n", 404],
    ["an impossible host for a method", `POST /${GET_NODE} HTTP/1.1\r\nhost: [::z\r\n`, 400],
    ["no host for a method", `POST /${GET_NODE} HTTP/1.0\r\n`, 400],
  ])("should only affect their sender: %s", async (_, head, status) => {
    const socket = net.connect(fixture.server.port, "127.0.0.1");
    socket.write(`${head}content-type: application/json\r\ncontent-length: 0\r\n\r\n`);
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(new RegExp(`^HTTP/1\\.1 ${status}`));
    socket.destroy();
    expect((await fixture.registry().getNode({ node: "n" })).node?.id).toBe("n");
  });
});

describe("unknown paths", () => {
  it.each(TRANSPORT_KINDS)("should be UNIMPLEMENTED, UNKNOWN_METHOD over %s", async (kind) => {
    const admin = createClient(AdminService, fixture.transport(kind));
    const error = describeError(await failureOf(admin.approveNode({ node: "n" })));
    // Clients of gRPC-Web read no details of an error with another HTTP status than 200.
    const path = "/rollcall.admin.v1.AdminService/ApproveNode";
    const details = kind.startsWith("grpc-web") ? {} : { reason: "UNKNOWN_METHOD", metadata: { path } };
    expect(error).toMatchObject({ code: 12, ...details });
  });

  it.each([
    ["Connect", "application/proto", 404],
    ["a stream over Connect", "application/connect+proto", 404],
    ["gRPC-Web", "application/grpc-web", 404],
    ["gRPC", "application/grpc", 200],
  ])("should have the HTTP status of their protocol: %s", async (_, type, status) => {
    const answer = await fixture.post("rollcall.admin.v1.AdminService/ApproveNode", "", { "content-type": type });
    const grpcStatus = type.startsWith("application/grpc") ? "12" : null;
    expect([answer.status, answer.headers.get("grpc-status")]).toEqual([status, grpcStatus]);
  });

  it("should also be UNKNOWN_METHOD for a method that is declared but not implemented", async () => {
    const call = fixture.registry("grpc", "admin-token").getClusterSummary({});
    expect(describeError(await failureOf(call))).toMatchObject({
      code: 12,
      reason: "UNKNOWN_METHOD",
    });
  });

  it("should be a plain 404 for a browser, or the fallback's response", async () => {
    const plain = await fetch(`${fixture.url}/`, { headers: { connection: "close" } });
    expect([plain.status, await plain.text()]).toEqual([404, "not found\n"]);
    const pages = await RpcFixture.start({
      fallback: (request, response) => {
        if (request.url === "/broken") throw new Error("no such file");
        response.statusCode = 200;
        response.end(`page ${request.url}`);
      },
    });
    const page = await fetch(`${pages.url}/nodes`, { headers: { connection: "close" } });
    expect(await page.text()).toBe("page /nodes");
    const broken = await fetch(`${pages.url}/broken`, { headers: { connection: "close" } });
    expect([broken.status, await broken.text()]).toEqual([500, ""]);
    await pages.stop();
  });
});
