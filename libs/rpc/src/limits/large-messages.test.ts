import http2 from "node:http2";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "@jest/globals";
import { GetNodeRequestSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { renderMetrics } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import { RpcFixture } from "../../test/rpc-fixture.ts";
import { writeEnvelope } from "../grpc/grpc-envelope.ts";

const GET_NODE = "/rollcall.registry.v1.RegistryService/GetNode";
const MOST = 2;
const LENGTH = 100_000;

interface Protocol {
  readonly type: string;
  /** Encode a request with a name of this length. */
  encode(length: number): Buffer;
}

const request = (length: number) => create(GetNodeRequestSchema, { node: "a".repeat(length) });
const binary = (length: number) => Buffer.from(toBinary(GetNodeRequestSchema, request(length)));
const PROTOCOLS: Readonly<Record<string, Protocol>> = {
  gRPC: { type: "application/grpc", encode: (length) => writeEnvelope(binary(length)) },
  "gRPC-Web": { type: "application/grpc-web+proto", encode: (length) => writeEnvelope(binary(length)) },
  Connect: { type: "application/proto", encode: binary },
  JSON: {
    type: "application/json",
    encode: (length) => Buffer.from(toJsonString(GetNodeRequestSchema, request(length))),
  },
};

/** A call whose request is sent in parts. */
class PartialCall {
  readonly #stream: http2.ClientHttp2Stream;
  #answer = "";
  #hasEnded = false;

  constructor(session: http2.ClientHttp2Session, type: string, length: number, token: string) {
    this.#stream = session.request({
      ...{ ":method": "POST", ":path": GET_NODE, "content-type": type, te: "trailers" },
      ...{ "content-length": String(length), authorization: `Bearer ${token}` },
    });
    const note = (headers: object) => {
      this.#answer += JSON.stringify(headers);
    };
    this.#stream
      .on("response", note)
      .on("trailers", note)
      .on("data", (chunk: Buffer) => {
        this.#answer += chunk.toString("latin1");
      })
      .on("error", () => {})
      .on("close", () => {
        this.#hasEnded = true;
      });
  }

  send(part: Uint8Array): this {
    this.#stream.write(part);
    return this;
  }

  cancel(): void {
    this.#stream.close(http2.constants.NGHTTP2_CANCEL);
  }

  /** Whether the server has answered. */
  get isAnswered(): boolean {
    return this.#answer !== "";
  }

  async answer(): Promise<string> {
    await until("the call to end", () => this.#hasEnded);
    // gRPC encodes the spaces of a status message.
    return this.#answer.replaceAll("%20", " ");
  }

  end(part: Uint8Array): this {
    this.#stream.end(part);
    return this;
  }
}

let fixture: RpcFixture;
const sessions: http2.ClientHttp2Session[] = [];
afterEach(async () => {
  for (const session of sessions.splice(0)) session.destroy();
  await fixture.stop();
});

function open(): http2.ClientHttp2Session {
  const session = http2.connect(fixture.url).on("error", () => {});
  sessions.push(session);
  return session;
}

describe.each(Object.entries(PROTOCOLS))("a large message over %s", (_, { type, encode }) => {
  const call = (length: number, token = "viewer-token") => new PartialCall(open(), type, length, token);

  it("should wait while too many of the same caller are read, and keep no one else waiting", async () => {
    fixture = await RpcFixture.start({ limits: { large: MOST } });
    const small = encode(3);
    // The server knows a token once a call with it has succeeded. Until then, the call counts for its address.
    for (const token of ["viewer-token", "operator-token"]) {
      expect(await call(small.length, token).end(small).answer()).toContain("200");
    }
    const large = encode(LENGTH);
    const first = [1, 2].map(() => call(large.length).send(large.subarray(0, 80_000)));
    await until("the first are in progress", () => [...fixture.held.values()].includes(MOST));
    const waiting = call(large.length).end(large);
    expect(await call(small.length).end(small).answer()).toContain("200");
    // Each caller has a separate queue.
    expect(await call(large.length, "operator-token").end(large).answer()).toContain("node");
    expect(waiting.isAnswered).toBe(false);
    first[0]?.cancel();
    expect(await waiting.answer()).toContain("node");
    expect(await first[1]?.end(large.subarray(80_000)).answer()).toContain("node");
    await until("the slots are free", () => fixture.held.size === 0);
  });

  it("should be refused before it has arrived if it is declared above the limit", async () => {
    fixture = await RpcFixture.start();
    const tooLarge = encode(2_000_000);
    const refused = call(tooLarge.length).send(tooLarge.subarray(0, 100));
    expect(await refused.answer()).toContain("the message is larger than the limit of 1048576 bytes");
    const others = Array.from({ length: 20 }, () => call(tooLarge.length).end(tooLarge));
    for (const other of others) expect(await other.answer()).toContain("larger than the limit");
    expect(await renderMetrics(fixture.metrics)).not.toMatch(/ended_total\{.*reason="flood"/);
  });
});
