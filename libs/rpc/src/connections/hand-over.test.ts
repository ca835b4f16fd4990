import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { afterEach, describe, expect, it } from "@jest/globals";
import { until } from "@rollcall/testkit/time";
import { connectRaw, frame, POST_HEADERS, PREFACE } from "../../test/raw-http2.ts";
import { handToHttp2 } from "./hand-over.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/**
 * Calls that are reset immediately. There are more than Node.js accepts from one connection, and more than it reads
 * ahead.
 */
const RESETS = Buffer.concat(
  Array.from({ length: 40_000 }, (_, index) => index * 2 + 1).flatMap((stream) => [
    frame("HEADERS", { flags: 5, stream, payload: POST_HEADERS }),
    frame("RST_STREAM", { stream, payload: Buffer.from([0, 0, 0, 8]) }),
  ]),
);

interface Port {
  readonly port: number;
  readonly sessions: http2.ServerHttp2Session[];
}

/**
 * Start a server that reads `enough` bytes of each connection, puts them back, and hands the connection over. Each
 * call is answered with 200.
 */
async function listen(
  enough: number,
  onSession: (session: http2.ServerHttp2Session) => void = () => {},
): Promise<Port> {
  const sessions: http2.ServerHttp2Session[] = [];
  const server = http2.createServer((_, response) => void response.end());
  server.on("session", (session) => {
    sessions.push(session);
    session.on("error", () => {});
    onSession(session);
  });
  const listener = net.createServer(async (socket) => {
    socket.on("error", () => {});
    const pieces: Buffer[] = [];
    socket.on("data", (piece: Buffer) => void pieces.push(piece));
    await until("enough was read", () => Buffer.concat(pieces).length >= enough);
    socket.removeAllListeners("data");
    socket.pause();
    socket.unshift(Buffer.concat(pieces));
    handToHttp2(server, socket, () => server.emit("connection", socket));
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  closers.push(() => {
    for (const session of sessions) session.destroy();
    listener.close();
  });
  return { port: (listener.address() as net.AddressInfo).port, sessions };
}

async function get(port: number): Promise<unknown> {
  const client = http2.connect(`http://127.0.0.1:${port}`);
  closers.push(() => client.destroy());
  const request = client.request({ ":path": "/" });
  const [headers] = await once(request, "response");
  return (headers as http2.IncomingHttpHeaders)[":status"];
}

describe("handToHttp2()", () => {
  it("should serve a connection with the bytes that were put back", async () => {
    const { port } = await listen(PREFACE.length);
    expect(await get(port)).toBe(200);
  });

  it("should drop the rest of a flood that ends its session while being read, and serve others", async () => {
    const { port, sessions } = await listen(RESETS.length / 2);
    const socket = await connectRaw(port);
    socket.write(Buffer.concat([PREFACE, RESETS]));
    await until("the session of the flood has ended", () => sessions[0]?.destroyed === true);
    const other = await listen(PREFACE.length);
    expect(await get(other.port)).toBe(200);
    socket.destroy();
  });

  it("should drop all of it when the session is destroyed as soon as it begins", async () => {
    const { port, sessions } = await listen(PREFACE.length, (session) => session.destroy());
    const socket = await connectRaw(port);
    socket.write(PREFACE);
    await until("the session has ended", () => sessions[0]?.destroyed === true);
    await once(socket, "close");
  });

  it("should not begin a session on a closed socket", () => {
    const server = http2.createServer();
    const socket = new net.Socket();
    socket.destroy();
    handToHttp2(server, socket, () => {
      throw new Error("a destroyed socket was handed over");
    });
  });
});
