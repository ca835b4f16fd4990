import { createServer, type Server as TcpServer } from "node:net";
import { create } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "@jest/globals";
import { HeartbeatRequestSchema, type HeartbeatResponse } from "@rollcall/api/rollcall/health/v1/health_pb";
import { eventually, until } from "@rollcall/testkit";
import { FaultProxy } from "@rollcall/testkit/fault-proxy";
import { FakeGrpcServer } from "../testing/fake-grpc-server.ts";
import { createGrpcHeartbeatTransport } from "./grpc-heartbeat-transport.ts";
import type { HeartbeatStream } from "./heartbeat-transport.ts";
import { endOfStatus } from "./session-end.ts";

let server: FakeGrpcServer | undefined;
let tcp: TcpServer | undefined;
afterEach(() => {
  server?.destroy();
  tcp?.close();
  server = undefined;
  tcp = undefined;
});

interface Heard {
  readonly frames: HeartbeatResponse["frame"][];
  readonly ends: unknown[];
  readonly stream: HeartbeatStream;
}

function open(endpoint: string): Heard {
  const frames: HeartbeatResponse["frame"][] = [];
  const ends: unknown[] = [];
  const stream = createGrpcHeartbeatTransport().open(endpoint, {
    onFrame: ({ frame }) => frames.push(frame),
    onEnd: (error) => ends.push(error),
  });
  return { frames, ends, stream };
}

async function connect(): Promise<Heard & { readonly server: FakeGrpcServer }> {
  server = new FakeGrpcServer();
  await server.listen();
  const heard = open(`127.0.0.1:${server.port}`);
  await eventually(() => expect(heard.frames).toHaveLength(1));
  return { ...heard, server };
}

const goodbye = create(HeartbeatRequestSchema, { frame: { case: "goodbye", value: {} } });

describe("createGrpcHeartbeatTransport()", () => {
  it("should end normally when this side has finished", async () => {
    const { stream, ends, server: peer } = await connect();
    stream.send(goodbye);
    stream.finish();
    await eventually(() => expect(ends).toStrictEqual([undefined]));
    expect(peer.kinds()).toEqual(["goodbye"]);
  });

  it("should notify the server when this side cancels, and ignore later frames", async () => {
    const { stream, ends, server: peer } = await connect();
    let cancelled = false;
    peer.streams[0]?.on("cancelled", () => {
      cancelled = true;
    });
    stream.cancel();
    await eventually(() => expect(cancelled).toBe(true));
    await eventually(() => expect(ends).toHaveLength(1));
    stream.send(goodbye);
    stream.finish();
  });

  it.each([
    ["this side finishes", ({ stream }: Heard) => stream.finish()],
    ["this side cancels", ({ stream }: Heard) => stream.cancel()],
    ["the server ends it", (_: Heard, peer: FakeGrpcServer) => peer.streams[0]?.end()],
  ])("should close the connection of a stream when %s", async (_, end) => {
    server = new FakeGrpcServer();
    await server.listen();
    const proxy = await FaultProxy.start(server.port);
    const heard = open(`127.0.0.1:${proxy.port}`);
    await eventually(() => expect(heard.frames).toHaveLength(1));
    expect(proxy.sockets).toBe(2);
    end(heard, server);
    await eventually(() => expect(heard.ends).toHaveLength(1));
    await until("a closed connection", () => proxy.sockets === 0, 10_000).finally(() => proxy.close());
  });

  it("should report a broken connection once", async () => {
    const { ends, server: peer } = await connect();
    peer.destroy();
    await eventually(() => expect(ends).toHaveLength(1));
    expect(endOfStatus(ends[0], true)).toMatchObject({ kind: "refused", reason: undefined });
  });

  it.each([
    ["nothing listens at", async () => "127.0.0.1:1"],
    ["cannot be read as one", async () => "no such host:%%%"],
    ["does not exist", async () => "host.invalid:7701"],
    ["speaks another language", async () => `127.0.0.1:${await serveText("HTTP/1.1 400 No\r\n\r\n")}`],
  ])("should report an address as unreachable that %s", async (_, endpointOf) => {
    const { ends } = open(await endpointOf());
    await eventually(() => expect(ends).toHaveLength(1));
    expect(endOfStatus(ends[0], false).kind).toBe("unreachable");
  });
});

function serveText(text: string): Promise<number> {
  const listening = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(text);
  });
  tcp = listening;
  return new Promise((resolve) => {
    listening.listen(0, "127.0.0.1", () => {
      const address = listening.address();
      resolve(typeof address === "object" && address ? address.port : 0);
    });
  });
}
