import { type ClientHttp2Session, connect } from "node:http2";
import net from "node:net";

/** The path of the method that tests call. */
export const GET_NODE = "/rollcall.registry.v1.RegistryService/GetNode";
/** The headers of a caller with the role viewer. */
export const VIEWER = { authorization: "Bearer viewer-token" };
/** A string that is larger than the part of a response that a client receives without reading it. */
export const LARGE = "x".repeat(200_000);

/** Clients that misbehave, and are closed at the end of a test. */
export class RudeClients {
  readonly #sessions: ClientHttp2Session[] = [];
  readonly #sockets: net.Socket[] = [];

  /** Open a session that accepts this many bytes of each response without reading them. */
  session(url: string, initialWindowSize = 1_000): ClientHttp2Session {
    const session = connect(url, { settings: { initialWindowSize } });
    session.on("error", () => {});
    this.#sessions.push(session);
    return session;
  }

  /** Open a plain connection that reads nothing. */
  socket(port: number): net.Socket {
    const socket = net.connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.pause();
    this.#sockets.push(socket);
    return socket;
  }

  /**
   * Start a proxy to a port. block() stops reading from the port, which Node.js does not allow for the socket of a
   * session.
   */
  async pathTo(port: number): Promise<{ readonly url: string; block(): void }> {
    let upstream: net.Socket | undefined;
    const proxy = net.createServer((client) => {
      const behind = net.connect(port, "127.0.0.1");
      upstream = behind;
      this.#sockets.push(client, behind);
      for (const socket of [client, behind]) socket.on("error", () => {});
      client.pipe(behind);
      behind.on("data", (bytes) => client.write(bytes)).on("close", () => client.destroy());
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    proxy.unref();
    const { port: own } = proxy.address() as net.AddressInfo;
    return { url: `http://127.0.0.1:${own}`, block: () => upstream?.pause() };
  }

  end(): void {
    for (const session of this.#sessions.splice(0)) session.destroy();
    for (const socket of this.#sockets.splice(0)) socket.destroy();
  }
}

/** Call GetNode with raw gRPC frames, and read nothing of the response. */
export function callUnread(session: ClientHttp2Session) {
  const headers = { ":method": "POST", ":path": GET_NODE, "content-type": "application/grpc" };
  const stream = session.request({ ...headers, ...VIEWER, te: "trailers" });
  stream.on("error", () => {});
  stream.end(Buffer.from([0, 0, 0, 0, 3, 0x0a, 1, 0x6e]));
  stream.pause();
  return stream;
}
