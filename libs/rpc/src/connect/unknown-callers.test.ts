import http2 from "node:http2";
import { gzipSync } from "node:zlib";
import { create, fromBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { StatusSchema } from "@rollcall/api/google/rpc/status_pb";
import {
  CreateChallengeResponseSchema,
  ListNodesResponseSchema,
  RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { RpcFixture } from "../../test/rpc-fixture.ts";
import type { RefusedCall } from "../interceptors/record-refusals.ts";
import { OPEN_MESSAGE_LIMIT_BYTES } from "../server-options.ts";

const REGISTRY = RegistryService.typeName;
const READ = `/${REGISTRY}/GetNode`;
const WATCH = `/${REGISTRY}/WatchNodes`;
const OPEN = `/${REGISTRY}/CreateChallenge`;
/** A body that is malformed in every encoding. An attempt to decode it would cause another error. */
const GARBAGE = Buffer.from("}{");
const BAD_TOKEN = { authorization: "Bearer guessed" };

let fixture: RpcFixture;
let session: http2.ClientHttp2Session;
let refused: RefusedCall[];
beforeEach(async () => {
  refused = [];
  fixture = await RpcFixture.start({
    registry: {
      createChallenge: () => create(CreateChallengeResponseSchema),
      listNodes: () => create(ListNodesResponseSchema),
    },
    recordRefusal: (refusal) => refused.push(refusal),
  });
  session = http2.connect(fixture.url);
});
afterEach(async () => {
  session.destroy();
  await fixture.stop();
});

type Headers = Readonly<Record<string, string>>;

/** Make a call and return its response, even if its request has not ended. */
function ask(path: string, headers: Headers, body: Uint8Array | null, method = "POST"): Promise<string> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":method": method, ":path": path, ...headers }, { endStream: body?.length === 0 });
    const seen: Record<string, unknown> = {};
    const chunks: Buffer[] = [];
    stream.on("response", (it) => Object.assign(seen, it)).on("trailers", (it) => Object.assign(seen, it));
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => resolve(reasonIn(seen, Buffer.concat(chunks)))).on("error", reject);
    // Send one byte of a request. The rest never arrives.
    if (body === null) stream.write("{");
    else if (body.length > 0) stream.end(body);
  });
}

/** Return the reason of an error in any protocol; "ok" for none. */
function reasonIn(headers: Readonly<Record<string, unknown>>, body: Buffer): string {
  const text = body.toString("latin1");
  const details = headers["grpc-status-details-bin"] ?? /grpc-status-details-bin: (\S+)/.exec(text)?.[1];
  if (details !== undefined) {
    const [any] = fromBinary(StatusSchema, Buffer.from(String(details), "base64")).details;
    return any === undefined ? "no reason" : fromBinary(ErrorInfoSchema, any.value).reason;
  }
  return /"reason":"([A-Z_]+)"/.exec(text)?.[1] ?? "ok";
}

function envelope(message: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

const PROTOCOLS: readonly (readonly [string, Headers, Uint8Array, string])[] = [
  ["JSON", { "content-type": "application/json" }, GARBAGE, READ],
  ["packed JSON", { "content-type": "application/json", "content-encoding": "gzip" }, gzipSync(GARBAGE), READ],
  ["what is no packed JSON", { "content-type": "application/json", "content-encoding": "gzip" }, GARBAGE, READ],
  ["Connect", { "content-type": "application/proto" }, GARBAGE, READ],
  ["gRPC", { "content-type": "application/grpc" }, envelope(GARBAGE), READ],
  ["packed gRPC", { "content-type": "application/grpc", "grpc-encoding": "gzip" }, envelope(GARBAGE, 1), READ],
  ["gRPC with JSON", { "content-type": "application/grpc+json" }, envelope(GARBAGE), READ],
  ["gRPC-Web", { "content-type": "application/grpc-web+proto" }, envelope(GARBAGE), READ],
  ["a stream of JSON", { "content-type": "application/connect+json" }, envelope(GARBAGE), WATCH],
  ["a stream of gRPC", { "content-type": "application/grpc" }, envelope(GARBAGE), WATCH],
];

describe("a request of an unknown caller", () => {
  it.each(PROTOCOLS)("should be refused without being decoded: %s", async (_, headers, body, path) => {
    expect(await ask(path, headers, body)).toBe("TOKEN_MISSING");
    expect(await ask(path, { ...headers, ...BAD_TOKEN }, body)).toBe("TOKEN_INVALID");
  });

  it.each(PROTOCOLS)("should be refused before it has arrived: %s", async (_, headers, _body, path) => {
    const large = { ...headers, "content-length": "1000000" };
    expect(await ask(path, large, null)).toBe("TOKEN_MISSING");
    expect(await ask(path, { ...large, ...BAD_TOKEN }, null)).toBe("TOKEN_INVALID");
  });

  it("should be refused without being decoded in the URL of a GET request", async () => {
    for (const message of ["%7D%7B", "e30&base64=1&compression=gzip"]) {
      const path = `${READ}?connect=v1&encoding=json&message=${message}`;
      expect(await ask(path, {}, new Uint8Array(), "GET")).toBe("TOKEN_MISSING");
      expect(await ask(path, BAD_TOKEN, new Uint8Array(), "GET")).toBe("TOKEN_INVALID");
      const viewer = { authorization: "Bearer viewer-token" };
      expect(await ask(path, viewer, new Uint8Array(), "GET")).toBe("MALFORMED_MESSAGE");
    }
  });

  it("should leave its connection usable over HTTP/1.1", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const large = "x".repeat(1_000_000);
        const answer = await fetch(`${fixture.url}${READ}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: `{"node":"${large}"}`,
        });
        return [answer.status, (await answer.text()).includes("TOKEN_MISSING")];
      }),
    );
    expect(answers).toEqual(Array.from({ length: 20 }, () => [401, true]));
    expect((await fixture.registry("connect-http1").getNode({ node: "n" })).node?.id).toBe("n");
  });
});

describe("a request of a known caller", () => {
  it.each(PROTOCOLS)("should be decoded: %s", async (_, headers, body, path) => {
    const viewer = { ...headers, authorization: "Bearer viewer-token" };
    expect(await ask(path, viewer, body)).toBe("MALFORMED_MESSAGE");
  });

  it("should be served with an empty body, even many at the same time", async () => {
    const headers = { "content-type": "application/proto", authorization: "Bearer operator-token" };
    const path = `/${REGISTRY}/ListNodes`;
    const answers = await Promise.all(Array.from({ length: 60 }, () => ask(path, headers, new Uint8Array())));
    expect(new Set(answers)).toEqual(new Set(["ok"]));
  });
});

describe("a method that requires no token", () => {
  const json = { "content-type": "application/json" };
  const large = (bytes: number) => Buffer.from(`{"nodeId":"${"x".repeat(bytes)}"}`);

  it.each<[string, Headers, (message: Buffer) => Uint8Array]>([
    ["JSON", json, (message) => message],
    ["packed JSON", { ...json, "content-encoding": "gzip" }, (message) => gzipSync(message)],
    ["Connect", { "content-type": "application/proto" }, (message) => message],
    ["gRPC", { "content-type": "application/grpc" }, envelope],
    ["gRPC-Web with JSON", { "content-type": "application/grpc-web+json" }, envelope],
  ])("should not decode a request that is larger than any valid one: %s", async (_, headers, wrap) => {
    expect(await ask(OPEN, headers, wrap(large(OPEN_MESSAGE_LIMIT_BYTES)))).toBe("MESSAGE_TOO_LARGE");
  });

  it("should accept a request of the maximum size", async () => {
    expect(await ask(OPEN, json, large(OPEN_MESSAGE_LIMIT_BYTES - 13))).not.toBe("MESSAGE_TOO_LARGE");
  });
});
