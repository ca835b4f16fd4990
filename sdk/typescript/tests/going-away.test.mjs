// Tests against a server that goes away after a call.
import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { syncBuiltinESMExports } from "node:module";
import { test } from "node:test";
import { Client } from "@rollcall/client";

/** An empty message in gRPC's framing. */
const EMPTY = Buffer.alloc(5);

/**
 * The connections of this program, which the client does not expose.
 * @type {import("node:http2").ClientHttp2Session[]}
 */
const connections = [];
const { connect } = http2;
http2.connect = (...words) => {
  const connection = Reflect.apply(connect, http2, words);
  connections.push(connection);
  return connection;
};
syncBuiltinESMExports();

test("does not end its program if it is closed while its server goes away", { timeout: 60_000 }, async (t) => {
  const server = http2.createServer();
  t.after(() => server.close());
  server.on("stream", (/** @type {http2.ServerHttp2Stream} */ stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc+proto" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(EMPTY);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "session");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const client = new Client({ server: `127.0.0.1:${port}`, token: "rca_unused" });
  assert.equal((await client.registry.getNode({ node: "n" })).node, undefined);
  assert.equal(connections.length, 1);
  const [connection] = connections;
  const ended = new Promise((resolve) => connection.once("close", resolve));
  connection.once("goaway", () => client.close());
  const [session] = await accepted;
  session.goaway();
  // Wait until the connection has ended. If the client does not handle the connection's error, the test fails.
  await ended;
  session.destroy();
});
