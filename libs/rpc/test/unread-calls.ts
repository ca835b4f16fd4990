import { type ClientHttp2Session, connect } from "node:http2";
import net from "node:net";

/** The path of the method that is called. */
export const GET_NODE = "/rollcall.registry.v1.RegistryService/GetNode";
/** Of a viewer. */
export const VIEWER = { authorization: "Bearer viewer-token" };
/** More than a client takes of an answer that it does not read. */
export const LARGE = "x".repeat(200_000);

/** Clients that can be as rude as they like, until they are ended. */
export class RudeClients {
  readonly #sessions: ClientHttp2Session[] = [];
  readonly #sockets: net.Socket[] = [];

  /** A session that takes so many bytes of each answer as long as they are not read. */
  session(url: string, initialWindowSize = 1_000): ClientHttp2Session {
    const session = connect(url, { settings: { initialWindowSize } });
    session.on("error", () => {});
    this.#sessions.push(session);
    return session;
  }

  /** A plain connection that reads nothing. */
  socket(port: number): net.Socket {
    const socket = net.connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.pause();
    this.#sockets.push(socket);
    return socket;
  }

  /** A path to a port on which a client can stop reading: Node.js does not allow that for the socket of a session. */
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

/** Call GetNode by raw gRPC, and read nothing of the answer. */
export function callUnread(session: ClientHttp2Session) {
  const headers = { ":method": "POST", ":path": GET_NODE, "content-type": "application/grpc" };
  const stream = session.request({ ...headers, ...VIEWER, te: "trailers" });
  stream.on("error", () => {});
  stream.end(Buffer.from([0, 0, 0, 0, 3, 0x0a, 1, 0x6e]));
  stream.pause();
  return stream;
}
