import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { afterEach, expect, it } from "@jest/globals";
import { StoppableRequest } from "./stoppable-request.ts";

const closers: (() => unknown)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/**
 * Send 500 requests in one packet to a server that cuts the connection at the tenth request. Returns how many
 * requests the server saw.
 */
async function pipeline(options: http.ServerOptions): Promise<number> {
  let requests = 0;
  const server = http.createServer(options, ({ socket }) => {
    requests += 1;
    if (requests === 10) socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  closers.push(() => server.close());
  await once(server, "listening");
  const client = net.connect((server.address() as net.AddressInfo).port, "127.0.0.1");
  client.on("error", () => {});
  client.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(500));
  await once(client, "close");
  return requests;
}

it("should be the last parsed one of a packet once its connection was cut", async () => {
  expect(await pipeline({ IncomingMessage: StoppableRequest })).toBe(10);
  // If this fails, Node.js has started to stop the parser itself, and StoppableRequest can be removed.
  expect(await pipeline({})).toBeGreaterThan(10);
});

it("should serve upgrade requests like any others", async () => {
  const server = http.createServer({ IncomingMessage: StoppableRequest }, (_, response) => response.end("served"));
  server.listen(0, "127.0.0.1");
  closers.push(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  const request = http.get({
    port,
    host: "127.0.0.1",
    headers: { connection: "upgrade", upgrade: "h2c" },
  });
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  expect(response.statusCode).toBe(200);
  response.resume();
  await once(response, "end");
});
