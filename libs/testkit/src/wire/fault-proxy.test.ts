import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { eventually } from "../time.ts";
import { FaultProxy } from "./fault-proxy.ts";

let server: Server;
let proxy: FaultProxy;
let client: Socket;
let received: string;

/** Start an echo server, and a client that connects to it through the proxy. */
beforeEach(async () => {
  server = createServer((socket) => socket.on("error", () => {}).pipe(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  proxy = await FaultProxy.start(typeof address === "object" ? (address?.port ?? 0) : 0);
  received = "";
  client = connect(proxy.port, "127.0.0.1");
  client.on("data", (chunk) => {
    received += chunk.toString();
  });
  await once(client, "connect");
});

afterEach(async () => {
  client.destroy();
  await proxy.close();
  server.close();
});

const expectReceived = (text: string) => eventually(() => expect(received).toBe(text));

describe("FaultProxy", () => {
  it("should pass on data in both directions", async () => {
    client.write("hello");
    await expectReceived("hello");
  });

  it("should hold back all data while it is silent, and lose nothing", async () => {
    client.write("before ");
    await expectReceived("before ");
    proxy.silence(true);
    const megabyte = "x".repeat(1_000_000);
    client.write(megabyte);
    // Connect through another proxy. In this time, the silent connection could have passed data.
    const other = await FaultProxy.start(proxy.port);
    const late = connect(other.port, "127.0.0.1");
    await once(late, "connect");
    expect(received).toBe("before ");
    proxy.silence(false);
    await expectReceived(`before ${megabyte}`);
    late.destroy();
    await other.close();
  });

  it("should accept connections while it is silent, and serve them afterwards", async () => {
    proxy.silence(true);
    const late = connect(proxy.port, "127.0.0.1");
    await once(late, "connect");
    late.write("late");
    proxy.silence(false);
    const [chunk] = (await once(late, "data")) as [Buffer];
    expect(chunk.toString()).toBe("late");
    late.destroy();
  });

  it("should notify each side of the other's end", async () => {
    await eventually(() => expect(proxy.sockets).toBe(2));
    client.destroy();
    await eventually(() => expect(proxy.sockets).toBe(0));
  });

  it("should break connections", async () => {
    await eventually(() => expect(proxy.sockets).toBe(2));
    const broken = once(client, "error");
    proxy.reset();
    const [error] = (await broken) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNRESET");
  });
});
