import { randomBytes } from "node:crypto";
import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { afterEach, describe, expect, it } from "@jest/globals";
import { createMetrics, systemClock } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import { until } from "@rollcall/testkit/time";
import { AnonymousLog } from "../limits/anonymous-log.ts";
import { PolyglotListener, type PolyglotOptions } from "./polyglot-listener.ts";

let listener: PolyglotListener;
afterEach(() => listener.destroy());

async function listen(options: Partial<PolyglotOptions> = {}): Promise<number> {
  listener = await PolyglotListener.listen({
    host: "127.0.0.1",
    port: 0,
    firstByteMs: 5_000,
    maxConnections: 100,
    name: "api",
    log: captureLog().log,
    anonymousClients: new AnonymousLog({ log: captureLog().log }),
    metrics: createMetrics({ defaults: false }),
    clock: systemClock,
    handler: (request, response) => {
      response.statusCode = 200;
      response.end(`served ${request.httpVersion}`);
    },
    ...options,
  });
  return listener.port;
}

async function connect(port: number): Promise<net.Socket> {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

async function overHttp1(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } });
  return await response.text();
}

async function overHttp2(port: number, socket?: net.Socket): Promise<string> {
  const options = socket === undefined ? {} : { createConnection: () => socket };
  const session = http2.connect(`http://127.0.0.1:${port}`, options);
  const stream = session.request({ ":path": "/" });
  let text = "";
  stream.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  await once(stream, "end");
  session.close();
  return text;
}

describe("PolyglotListener", () => {
  it("should serve both protocols on one port", async () => {
    const port = await listen();
    expect(await overHttp1(port)).toBe("served 1.1");
    expect(await overHttp2(port)).toBe("served 2.0");
  });

  it("should distinguish them when their first bytes arrive one at a time", async () => {
    const port = await listen();
    const posting = await connect(port);
    for (const byte of "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\nconnection: close\r\n\r\n") {
      posting.write(byte);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const [answer] = await once(posting, "data");
    expect(String(answer)).toMatch(/^HTTP\/1.1 200/);
    const slow = await connect(port);
    const write = slow.write.bind(slow);
    slow.write = ((data: Uint8Array, ...rest: []) => {
      for (const byte of data) write(Buffer.from([byte]));
      return write(Buffer.alloc(0), ...rest);
    }) as typeof slow.write;
    expect(await overHttp2(port, slow)).toBe("served 2.0");
  });

  it("should close a connection that sends nothing, or too little, for too long", async () => {
    const port = await listen({ firstByteMs: 50 });
    const silent = await connect(port);
    const short = await connect(port);
    short.write("PR");
    const preface = await connect(port);
    preface.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    await Promise.all([silent, short, preface].map((socket) => once(socket.resume(), "close")));
    expect(await overHttp1(port)).toBe("served 1.1");
  });

  it("should enforce HTTP/1.1's own timeouts on slow requests", async () => {
    const port = await listen({ http1HeadersMs: 100 });
    const slow = await connect(port);
    slow.write("GET / HTTP/1.1\r\nhost:");
    const [answer] = await once(slow, "data");
    expect(String(answer)).toMatch(/^HTTP\/1.1 408/);
  });

  it.each([
    ["nothing but noise", () => randomBytes(4_096)],
    [
      "noise after an HTTP/2 preface",
      () => Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), randomBytes(4_096)]),
    ],
    ["half a preface and noise", () => Buffer.concat([Buffer.from("PRI * HT"), randomBytes(64)])],
    ["an endless HTTP/1.1 request", () => Buffer.from(`GET /${"a".repeat(100_000)}`)],
    ["a request without a host", () => Buffer.from("GET / HTTP/1.0\r\n\r\n")],
    ["a request with an impossible host", () => Buffer.from("GET / HTTP/1.1\r\nhost: [::z\r\n\r\n")],
    ["a TLS hello", () => Buffer.from("16030100c8010000c40303", "hex")],
  ])("should not be disturbed by %s", async (_, bytes) => {
    const port = await listen();
    const session = http2.connect(`http://127.0.0.1:${port}`);
    const bystander = session.request({ ":path": "/" }, { endStream: false });
    await once(bystander, "response");
    for (let round = 0; round < 5; round += 1) {
      const socket = await connect(port);
      // Wait for the close: a connection that is closed before everything was read ends either with a reset or cleanly.
      const closed = new Promise((resolve) => socket.resume().once("close", resolve));
      socket.end(bytes());
      await closed;
    }
    expect(session.destroyed).toBe(false);
    expect(await overHttp1(port)).toBe("served 1.1");
    expect(await overHttp2(port)).toBe("served 2.0");
    session.destroy();
  });

  it("should close connections without a call for new ones at its limit, and refuse new ones if all have calls", async () => {
    const held: http2.Http2ServerResponse[] = [];
    const port = await listen({
      maxConnections: 2,
      handler: (request, response) => {
        if (request.url === "/hold" && "stream" in response) held.push(response);
        else response.end(`served ${request.httpVersion}`);
      },
    });
    const idle = await connect(port);
    const madeRoom = once(idle.resume(), "close");
    const session = http2.connect(`http://127.0.0.1:${port}`);
    session.request({ ":path": "/hold" }).on("error", () => {});
    await until("one has a call", () => held.length === 1);
    expect(await overHttp1(port)).toBe("served 1.1");
    await madeRoom;
    const other = http2.connect(`http://127.0.0.1:${port}`);
    other.request({ ":path": "/hold" }).on("error", () => {});
    await until("both have a call", () => held.length === 2);
    const refused = await connect(port);
    await once(refused.resume(), "close");
    expect([session, other].map(({ destroyed }) => destroyed)).toEqual([false, false]);
    for (const it of [session, other]) it.destroy();
    await until("the connections are gone", () => listener.connections === 0);
    expect(await overHttp1(port)).toBe("served 1.1");
  });

  it("should drain: idle connections end, nothing more is accepted", async () => {
    const port = await listen();
    const silent = await connect(port);
    const session = http2.connect(`http://127.0.0.1:${port}`);
    await once(session, "remoteSettings");
    const goneAway = once(session, "goaway");
    const ended = once(silent.resume(), "close");
    await listener.drain();
    await Promise.all([goneAway, ended]);
    await expect(overHttp1(port)).rejects.toThrow("fetch failed");
  });

  it("should close a connection that pipelines too many requests, and all of these requests", async () => {
    let begun = 0;
    let closed = 0;
    const port = await listen({
      handler: (request, response) => {
        if (request.url !== "/hold") {
          response.end("served 1.1");
          return;
        }
        begun += 1;
        response.on("close", () => {
          closed += 1;
        });
      },
    });
    const socket = await connect(port);
    socket.write("GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(500));
    await once(socket.resume(), "close");
    await until("all that began have closed", () => begun > 0 && closed === begun);
    expect(await overHttp1(port)).toBe("served 1.1");
  });
});
