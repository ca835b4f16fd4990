// Tests against a server that never responds.
import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { test } from "node:test";
import { Client } from "@rollcall/client";

/** @param {(client: Client, signal: AbortSignal) => Promise<unknown>} call */
async function aborted(call) {
  const server = http2.createServer();
  // Ignore errors, because the client resets its stream and its connection.
  server.on("session", (session) => session.on("error", () => {}));
  server.on("stream", (stream) => stream.on("error", () => {}));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const client = new Client({ server: `127.0.0.1:${port}`, token: "rca_unused" });
  try {
    const began = once(server, "stream");
    const ending = new AbortController();
    const calling = call(client, ending.signal);
    await began;
    ending.abort();
    await assert.rejects(calling, { name: "AbortError" });
    const cause = new Error("changed my mind");
    await assert.rejects(call(client, AbortSignal.abort(cause)), cause);
  } finally {
    client.close();
    server.close();
  }
}

test("an aborted call fails with the signal's reason", { timeout: 60_000 }, () =>
  aborted((client, signal) => client.registry.getNode({ node: "n" }, { signal })),
);

test("an aborted stream fails with the signal's reason", { timeout: 60_000 }, () =>
  aborted(async (client, signal) => {
    for await (const _ of client.registry.watchNodes({}, { signal })) assert.fail("a message");
  }),
);
