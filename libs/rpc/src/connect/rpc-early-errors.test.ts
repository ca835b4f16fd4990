import { once } from "node:events";
import net from "node:net";
import { gzipSync } from "node:zlib";
import { createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { describeError } from "@rollcall/errors";
import { renderMetrics } from "@rollcall/process";
import { failureOf, RpcFixture, TRANSPORT_KINDS } from "../../test/rpc-fixture.ts";
import { MESSAGE_LIMIT_BYTES } from "./server-options.ts";

const GET_NODE = "rollcall.registry.v1.RegistryService/GetNode";
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

  it("should refuse an unknown compression and a malformed timeout", async () => {
    expect((await reasonOfPost("{}", { "content-encoding": "br2" }))[2]).toBe("MALFORMED_MESSAGE");
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
    expect(error).toMatchObject({
      code: 12,
      reason: "UNKNOWN_METHOD",
      metadata: { path: "/rollcall.admin.v1.AdminService/ApproveNode" },
    });
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
