import { once } from "node:events";
import http2 from "node:http2";
import { gzipSync } from "node:zlib";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "@jest/globals";
import { StatusSchema } from "@rollcall/api/google/rpc/status_pb";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { ListNodesResponseSchema, RegisterNodeResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { createMetrics } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import { healthRoute } from "../../test/health-route.ts";
import { RpcFixture, TEST_POLICIES } from "../../test/rpc-fixture.ts";
import { createGrpcServer } from "../grpc/grpc-server.ts";

const METHOD = "rollcall.registry.v1.RegistryService/RegisterNode";

/** The headers of a known caller. For unknown callers, nothing would be decoded. */
const KNOWN = { authorization: "Bearer viewer-token" };

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Half a million empty GPUs. BOMB is a request with these GPUs in its node info. */
const GPUS = Buffer.alloc(1_000_000, Buffer.from([(9 << 3) | 2, 0]));
const BOMB = Buffer.concat([Buffer.from([(4 << 3) | 2, 0xc0, 0x84, 0x3d]), GPUS]);
const JSON_BOMB = Buffer.from(`{"info":{"gpus":[${Array(300_000).fill("{}").join()}]}}`);

function envelope(message: Uint8Array, flags = 0): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt8(flags, 0);
  header.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([header, message]);
}

interface Answer {
  readonly headers: Record<string, unknown>;
  readonly body: Buffer;
}

/** Send an HTTP/2 request exactly as given. */
async function post(
  port: number,
  method: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
): Promise<Answer> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  try {
    const stream = session.request({ ":method": "POST", ":path": `/${method}`, ...KNOWN, ...headers });
    const seen: Record<string, unknown> = {};
    stream.on("response", (it) => Object.assign(seen, it));
    stream.on("trailers", (it) => Object.assign(seen, it));
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.end(body);
    await once(stream, "close");
    return { headers: seen, body: Buffer.concat(chunks) };
  } finally {
    session.destroy();
  }
}

/** Return the whole text of a response in any protocol, including the reason of an error. */
function textOf({ headers, body }: Answer): string {
  const { "grpc-status-details-bin": details } = headers;
  const status = details === undefined ? "" : String(Buffer.from(String(details), "base64"));
  return `${status} ${body.toString("latin1")}`;
}

describe("a message of half a million parts", () => {
  it.each([
    ["gRPC", { "content-type": "application/grpc" }, envelope(BOMB)],
    ["gRPC, compressed", { "content-type": "application/grpc", "grpc-encoding": "gzip" }, envelope(gzipSync(BOMB), 1)],
    ["gRPC-Web", { "content-type": "application/grpc-web+proto" }, envelope(BOMB)],
    ["Connect", { "content-type": "application/proto" }, BOMB],
    ["Connect, packed", { "content-type": "application/proto", "content-encoding": "gzip" }, gzipSync(BOMB)],
    ["JSON", { "content-type": "application/json" }, JSON_BOMB],
    ["JSON, packed", { "content-type": "application/json", "content-encoding": "gzip" }, gzipSync(JSON_BOMB)],
  ] as const)("should be refused before it is decoded: %s", async (_, headers, body) => {
    let calls = 0;
    const registerNode = () => {
      calls += 1;
      return create(RegisterNodeResponseSchema);
    };
    const policies = {
      [METHOD]: { caller: "viewer", deadlineMs: 60_000, idempotent: true },
    } as const;
    const fixture = await RpcFixture.start({
      registry: { registerNode },
      policies: { ...TEST_POLICIES, ...policies },
    });
    closers.push(() => fixture.stop());
    const answer = await post(fixture.server.port, METHOD, headers, body);
    const text = textOf(answer);
    // Look for the message too: Connect and gRPC-Web encode the details with the reason in base64.
    const isNamed = text.includes("MESSAGE_TOO_LARGE") || /more(%20| )fields(%20| )than(%20| )any/.test(text);
    expect([isNamed ? "named" : text, calls]).toEqual(["named", 0]);
    const small = await post(
      fixture.server.port,
      METHOD,
      { "content-type": "application/json" },
      Buffer.from('{"nodeId":"n1"}'),
    );
    expect(textOf(small)).not.toContain("more fields than any");
    expect(small.headers[":status"]).toBe(400);
  });

  it("should be refused in the URL of a GET request", async () => {
    let calls = 0;
    const listNodes = () => {
      calls += 1;
      return create(ListNodesResponseSchema);
    };
    const method = "rollcall.registry.v1.RegistryService/ListNodes";
    const policies = { [method]: { caller: "viewer", deadlineMs: 60_000, idempotent: true } } as const;
    const fixture = await RpcFixture.start({
      registry: { listNodes },
      policies: { ...TEST_POLICIES, ...policies },
    });
    closers.push(() => fixture.stop());
    const get = async (message: Uint8Array, encoding: string) => {
      const packed = gzipSync(message).toString("base64url");
      const query = `connect=v1&base64=1&compression=gzip&encoding=${encoding}&message=${packed}`;
      const url = `http://127.0.0.1:${fixture.server.port}/${method}?${query}`;
      const answer = await fetch(url, { headers: KNOWN });
      return answer.text();
    };
    // The message has half a million statuses.
    expect(await get(Buffer.alloc(1_000_000, Buffer.from([6 << 3, 1])), "proto")).toContain("MESSAGE_TOO_LARGE");
    expect(await get(Buffer.from(`{"statuses":[${Array(400_000).fill("1").join()}]}`), "json")).toContain(
      "MESSAGE_TOO_LARGE",
    );
    expect(await get(Buffer.from("no gzip at all"), "avro")).not.toContain("MESSAGE_TOO_LARGE");
    expect(calls).toBe(0);
    expect(await get(Buffer.from('{"pageSize":7}'), "json")).toBe("{}");
    expect(calls).toBe(1);
  });

  it.each([
    ["gRPC", { "content-type": "application/grpc" }, envelope],
    ["Connect", { "content-type": "application/proto" }, (message: Uint8Array) => message],
    [
      "Connect, packed",
      { "content-type": "application/proto", "content-encoding": "gzip" },
      (message: Uint8Array) => gzipSync(message),
    ],
  ] as const)("should not be taken for JSON, nor what is no bomb: %s", async (_, headers, wrap) => {
    const policies = {
      [METHOD]: { caller: "viewer", deadlineMs: 60_000, idempotent: true },
    } as const;
    const fixture = await RpcFixture.start({
      registry: { registerNode: () => create(RegisterNodeResponseSchema) },
      policies: { ...TEST_POLICIES, ...policies },
    });
    closers.push(() => fixture.stop());
    // Choose a name whose tag and length are the bytes of a line break and "[", which could also start JSON.
    const name = Buffer.concat([Buffer.from([10, 91]), Buffer.alloc(91, "x")]);
    const bomb = await post(fixture.server.port, METHOD, headers, wrap(Buffer.concat([name, BOMB])));
    expect(textOf(bomb)).toMatch(/MESSAGE_TOO_LARGE|more(%20| )fields(%20| )than(%20| )any/);
    const commas = Buffer.from(",".repeat(60_000));
    const info = toBinary(NodeInfoSchema, create(NodeInfoSchema, { hostname: String(commas) }));
    const request = Buffer.concat([name, Buffer.from([(4 << 3) | 2, 0xe4, 0xd4, 0x03]), info]);
    const harmless = await post(fixture.server.port, METHOD, headers, wrap(request));
    expect(textOf(harmless)).not.toMatch(/MESSAGE_TOO_LARGE|more(%20| )fields(%20| )than(%20| )any/);
  });

  it("should be refused by a method with several request messages", async () => {
    const fixture = await RpcFixture.start();
    closers.push(() => fixture.stop());
    const reflection = "grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    const unknown = Buffer.alloc(1_000_000, Buffer.from([0xf8, 0x7f, 0]));
    const { port } = fixture.server;
    const answer = await post(port, reflection, { "content-type": "application/grpc" }, envelope(unknown));
    expect(textOf(answer)).toContain("MESSAGE_TOO_LARGE");
  });
});

describe("a compressed message on the agents' port", () => {
  it("should be refused with the supported encodings, without being decompressed", async () => {
    let calls = 0;
    const server = await createGrpcServer({
      host: "127.0.0.1",
      port: 0,
      log: captureLog().log,
      metrics: createMetrics({ defaults: false }),
      closeGraceMs: 100,
      routes: [
        healthRoute({
          heartbeat: {
            open: (call) => {
              calls += 1;
              return { onFrame: () => {}, onHalfClose: () => call.end(), onGone: () => {} };
            },
          },
        }),
      ],
    });
    closers.push(() => server.close());
    const method = "rollcall.health.v1.HealthService/Heartbeat";
    const headers = { "content-type": "application/grpc", te: "trailers" };
    const packed = { ...headers, "grpc-encoding": "gzip" };
    const bomb = envelope(gzipSync(Buffer.alloc(1_000_000)), 1);
    const refused = await post(server.port, method, packed, bomb);
    expect(refused.headers).toMatchObject({
      ":status": 200,
      "grpc-status": "12",
      "grpc-accept-encoding": "identity",
    });
    expect(textOf(refused)).toContain("COMPRESSION_NOT_SUPPORTED");
    const details = Buffer.from(String(refused.headers["grpc-status-details-bin"]), "base64");
    expect(fromBinary(StatusSchema, details).code).toBe(12);
    expect(calls).toBe(0);
    const plain = await post(server.port, method, { ...headers, "grpc-encoding": "identity" }, Buffer.alloc(0));
    expect([plain.headers["grpc-status"], calls]).toEqual(["0", 1]);
  });
});
