import { once } from "node:events";
import { type ClientHttp2Stream, connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { credentials, Client as GrpcClient, Metadata } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "@jest/globals";
import {
  GetNodeRequestSchema,
  type GetNodeResponse,
  RegistryService,
  type WatchNodesResponse,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { describeError } from "@rollcall/errors";
import { bareGrpcMethod } from "@rollcall/testkit/grpc-method";
import { until } from "@rollcall/testkit/time";
import { type FixtureOptions, failureOf, RpcFixture } from "../../test/rpc-fixture.ts";
import { sendAsEncoded } from "./grpc-envelope.ts";

// Use grpc-js as the client, because it checks the output of this code independently.
const { getNode, watchNodes } = RegistryService.method;
const GET_NODE = `/${getNode.parent.typeName}/${getNode.name}`;

const watchNodesName = `${watchNodes.parent.typeName}/${watchNodes.name}`;

let fixture: RpcFixture;
let client: GrpcClient;
afterEach(async () => {
  client.close();
  await fixture.stop();
});

async function serve(options: FixtureOptions = {}): Promise<void> {
  fixture = await RpcFixture.start(options);
  client = new GrpcClient(`127.0.0.1:${fixture.server.port}`, credentials.createInsecure());
}

function asViewer(extra: Readonly<Record<string, string>> = {}): Metadata {
  const metadata = new Metadata();
  metadata.set("authorization", "Bearer viewer-token");
  for (const [name, value] of Object.entries(extra)) metadata.set(name, value);
  return metadata;
}

function askForNode(node: string, metadata = asViewer(), deadlineMs = 60_000) {
  const { path, requestSerialize, responseDeserialize } = bareGrpcMethod(getNode);
  const request = create(GetNodeRequestSchema, { node });
  const seen: { header?: Metadata } = {};
  const answer = new Promise<GetNodeResponse>((resolve, reject) => {
    const call = client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize as (bytes: Buffer) => GetNodeResponse,
      request,
      metadata,
      { deadline: Date.now() + deadlineMs },
      (error, value) => (value === undefined ? reject(error) : resolve(value)),
    );
    call.once("metadata", (header: Metadata) => {
      seen.header = header;
    });
  });
  return { answer, seen };
}

function watch() {
  const { path, requestSerialize, responseDeserialize } = bareGrpcMethod(watchNodes);
  const request = create(watchNodes.input, {});
  const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, asViewer());
  const messages: WatchNodesResponse[] = [];
  call.on("data", (message) => messages.push(message));
  const ended = new Promise<Error | null>((resolve) => {
    call.once("error", resolve);
    call.once("end", () => resolve(null));
  });
  return { call, messages, ended };
}

/** Create a handler that sends `count` messages, and then waits until its caller disconnects. */
function ticking(count: number) {
  const seen: { context?: HandlerContext } = {};
  async function* watchNodes(_: unknown, context: HandlerContext) {
    seen.context = context;
    for (let revision = 1; revision <= count; revision += 1) yield { revision: BigInt(revision) };
    if (count > 1_000) return;
    await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
    throw context.signal.reason;
  }
  return { watchNodes, seen };
}

describe("serveDirect(), unary", () => {
  it("should answer, with the request id in the headers", async () => {
    await serve();
    const { answer, seen } = askForNode("n", asViewer({ "x-request-id": "mine" }));
    expect((await answer).node?.id).toBe("n");
    expect(seen.header?.get("x-request-id")).toEqual(["mine"]);
  });

  it("should send a response that is larger than the reader's window completely, with its status", async () => {
    const message = "x".repeat(3_000_000);
    await serve({ registry: { getNode: () => ({ node: { id: "n", health: { message } } }) } });
    const { answer } = askForNode("n");
    expect((await answer).node?.health?.message).toBe(message);
  });

  it("should answer with an error when its handler sets a header that HTTP/2 forbids", async () => {
    await serve({
      registry: {
        getNode: (_, { responseHeader }) => {
          responseHeader.set("upgrade", "h3");
          return {};
        },
      },
    });
    const { answer } = askForNode("n");
    expect((await failureOf(answer)).rawMessage).toContain("INTERNAL");
  });

  it("should refuse with the reason and its details", async () => {
    await serve();
    const error = await failureOf(askForNode("n", new Metadata()).answer);
    expect(error.rawMessage).toContain("UNAUTHENTICATED");
    const details = await failureOf(fixture.registry("grpc", "nobody").getNode({ node: "n" }));
    expect(describeError(details)).toMatchObject({ code: 16, reason: "TOKEN_INVALID" });
  });

  it("should abort a call that exceeds its caller's timeout", async () => {
    const seen: { context?: HandlerContext } = {};
    await serve({
      registry: {
        getNode: (_, context) => {
          seen.context = context;
          return new Promise(() => {});
        },
      },
    });
    const { answer } = askForNode("n", asViewer(), 300);
    expect((await failureOf(answer)).rawMessage).toContain("DEADLINE_EXCEEDED");
    await until("the handler is notified", () => seen.context?.signal.aborted);
    expect(seen.context?.timeoutMs()).toBeLessThanOrEqual(300);
  });

  it("should notify a handler when its caller disconnects", async () => {
    let aborted = false;
    await serve({
      registry: {
        getNode: (_, { signal }) => {
          signal.addEventListener("abort", () => {
            aborted = true;
          });
          stream.close();
          return new Promise(() => {});
        },
      },
    });
    const { session, stream } = open();
    stream.end(enveloped());
    await until("the handler is notified", () => aborted);
    await until("the end is logged", () => fixture.lines.length > 0);
    expect(fixture.lines[0]).toMatchObject({ code: "canceled", reason: "CANCELLED" });
    session.destroy();
  });

  it.each([
    ["nothing", Buffer.alloc(0), "12", "ONE_MESSAGE_REQUIRED"],
    ["less than a message", enveloped().subarray(0, 4), "3", "MALFORMED_MESSAGE"],
    ["a truncated message", enveloped().subarray(0, 6), "3", "MALFORMED_MESSAGE"],
    ["two messages", Buffer.concat([enveloped(), enveloped()]), "12", "ONE_MESSAGE_REQUIRED"],
    ["a compressed message", Buffer.from([1, ...enveloped().subarray(1)]), "13", "COMPRESSION_NOT_NAMED"],
    ["a malformed message", Buffer.from([0, 0, 0, 0, 2, 0xff, 0xff]), "3", "MALFORMED_MESSAGE"],
  ])("should refuse %s, and continue to serve", async (_, body, status, reason) => {
    await serve();
    const { session, stream } = open();
    stream.end(body);
    const trailers = await trailersOf(stream);
    expect(trailers).toMatchObject({ "grpc-status": status });
    session.destroy();
    expect(fixture.lines).toMatchObject([{ reason }]);
    expect((await askForNode("n").answer).node?.id).toBe("n");
  });

  it("should refuse a malformed timeout", async () => {
    await serve();
    const { session, stream } = open({ "grpc-timeout": "soon" });
    stream.end(enveloped());
    expect(await trailersOf(stream)).toMatchObject({ "grpc-status": "3" });
    session.destroy();
  });
});

describe("serveDirect(), streams", () => {
  it("should send every message, and end", async () => {
    const { watchNodes } = ticking(1_500);
    await serve({ registry: { watchNodes } });
    const { messages, ended } = watch();
    expect(await ended).toBeNull();
    expect(messages.map(({ revision }) => Number(revision))).toEqual(
      Array.from({ length: 1_500 }, (_, index) => index + 1),
    );
  });

  it("should send the given bytes of a shared message every time", async () => {
    const { output } = watchNodes;
    const shared = create(output);
    sendAsEncoded(shared, toBinary(output, create(output, { revision: 7n, resumeToken: "t" })));
    const sending = async function* () {
      yield shared;
      yield { revision: 8n };
      yield shared;
    };
    await serve({ registry: { watchNodes: sending } });
    const { messages, ended } = watch();
    expect(await ended).toBeNull();
    expect(messages.map(({ revision, resumeToken }) => [revision, resumeToken])).toEqual([
      [7n, "t"],
      [8n, ""],
      [7n, "t"],
    ]);
  });

  it("should send the headers that its handler sets before the first message", async () => {
    await serve({
      registry: {
        async *watchNodes(_, { responseHeader, responseTrailer }) {
          responseHeader.set("x-first", "1");
          yield { revision: 1n };
          responseTrailer.set("x-last", "2");
        },
      },
    });
    const { call, ended } = watch();
    const seen: Metadata[] = [];
    call.on("metadata", (header: Metadata) => seen.push(header));
    call.on("status", ({ metadata }) => seen.push(metadata));
    expect(await ended).toBeNull();
    expect(seen.map((metadata) => metadata.getMap())).toMatchObject([{ "x-first": "1" }, { "x-last": "2" }]);
  });

  it.each([
    ["nothing", Buffer.alloc(0)],
    ["two messages", Buffer.alloc(10)],
  ])("should refuse %s, because its method takes one message", async (_, body) => {
    const { watchNodes } = ticking(1);
    await serve({ registry: { watchNodes } });
    const { session, stream } = open({ ":path": `/${watchNodesName}` });
    stream.end(body);
    expect(await trailersOf(stream)).toMatchObject({ "grpc-status": "12" });
    session.destroy();
  });

  it("should wait for a reader that is slow", async () => {
    let sent = 0;
    const padding = "x".repeat(60_000);
    await serve({
      registry: {
        async *watchNodes() {
          for (; sent < 200; sent += 1) yield { resumeToken: padding };
        },
      },
    });
    const { call, messages, ended } = watch();
    call.pause();
    await until("it has begun", () => sent > 0);
    // Read the call. HTTP/2 windows and socket buffers hold only part of these 12 MB, so the handler has had to
    // wait.
    call.resume();
    expect(await ended).toBeNull();
    expect(messages).toHaveLength(200);
  });

  it("should end when its caller cancels it", async () => {
    const { watchNodes, seen } = ticking(1);
    await serve({ registry: { watchNodes } });
    const { call, messages, ended } = watch();
    await until("it has begun", () => messages.length === 1);
    call.cancel();
    await ended;
    await until("the handler is notified", () => seen.context?.signal.aborted);
    await until("the end is logged", () => fixture.lines.length === 2);
    expect(fixture.lines).toMatchObject([{ msg: "stream opened" }, { msg: "stream closed", code: "canceled" }]);
  });

  it("should end when its connection breaks", async () => {
    const { watchNodes, seen } = ticking(1);
    await serve({ registry: { watchNodes } });
    const { session, stream } = open({ ":path": `/${watchNodesName}` });
    stream.end(Buffer.alloc(5));
    await once(stream, "data");
    session.destroy();
    await until("the handler is notified", () => seen.context?.signal.aborted);
    await until("the end is logged", () => fixture.lines.length === 2);
    expect(fixture.lines[1]).toMatchObject({ code: "canceled", reason: "CANCELLED" });
  });

  it("should end with a reason when the server shuts down", async () => {
    const { watchNodes } = ticking(1);
    await serve({ registry: { watchNodes } });
    const { messages, ended } = watch();
    await until("it has begun", () => messages.length === 1);
    await fixture.server.close();
    expect((await ended)?.message).toContain("the server is shutting down");
  });

  it("should end with its handler's error, after the messages sent before", async () => {
    await serve({
      registry: {
        async *watchNodes() {
          yield { revision: 1n };
          throw new Error("a defect");
        },
      },
    });
    const { messages, ended } = watch();
    expect((await ended)?.message).toContain("internal error");
    expect(messages).toHaveLength(1);
  });
});

function open(headers: Readonly<Record<string, string>> = {}) {
  const session = connect(fixture.url);
  session.on("error", () => {});
  const stream = session.request({
    ":method": "POST",
    ":path": GET_NODE,
    "content-type": "application/grpc",
    authorization: "Bearer viewer-token",
    te: "trailers",
    ...headers,
  });
  stream.on("error", () => {});
  return { session, stream };
}

async function trailersOf(stream: ClientHttp2Stream) {
  stream.resume();
  const [trailers] = await once(stream, "trailers");
  return trailers;
}

function enveloped(): Buffer {
  const message = toBinary(GetNodeRequestSchema, create(GetNodeRequestSchema, { node: "n" }));
  return Buffer.from([0, 0, 0, 0, message.length, ...message]);
}
