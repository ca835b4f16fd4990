// Tests what calls do when a path dies silently, and what ends a stream.
import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { create, toBinary } from "@bufbuild/protobuf";
import { Client, NodeCache, TimedOutError, UnreachableError } from "@rollcall/client";
import { WatchNodesResponseSchema } from "@rollcall/client/rollcall/registry/v1/registry_pb";
import { SilentProxy } from "./silent-proxy.mjs";

const DIST = dirname(fileURLToPath(import.meta.resolve("@rollcall/client")));
/** A file of the package that the package does not export. */
const { untilSilent } = await import(String(pathToFileURL(join(DIST, "stream.js"))));

const LIMIT = { timeout: 120_000 };
const NODE = { node: "n" };
const CHANGES = framed(
  toBinary(
    WatchNodesResponseSchema,
    create(WatchNodesResponseSchema, {
      changes: ["a", "b"].map((id) => ({ change: { case: /** @type {const} */ ("upserted"), value: { id } } })),
    }),
  ),
);

/**
 * Frame a message as gRPC does.
 * @param {Uint8Array} message
 */
function framed(message) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** @type {http2.Http2Server} */
let server;
/** @type {SilentProxy} */
let proxy;
/** @type {Client} */
let client;
/** The number of open watch streams. */
let watches = 0;

/** The shortest timeout in milliseconds for which the registry responds to a call. */
let neededMs = 0;

/** The timeout of a call, in gRPC's format. @param {unknown} written */
function timeoutMsOf(written) {
  const [, count, unit = ""] = /^(\d+)([HMSmun])$/.exec(String(written)) ?? [];
  const unitMs = /** @type {Record<string, number>} */ ({ H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 });
  return Number(count) * (unitMs[unit] ?? Number.NaN);
}

/** Start a registry that responds to calls immediately, and sends two changes to watches. */
beforeEach(async () => {
  watches = 0;
  neededMs = 0;
  server = http2.createServer();
  server.on("session", (session) => session.on("error", () => {}));
  server.on("stream", (/** @type {http2.ServerHttp2Stream} */ stream, headers) => {
    stream.on("error", () => {});
    if (timeoutMsOf(headers["grpc-timeout"]) < neededMs) return;
    stream.respond({ ":status": 200, "content-type": "application/grpc+proto" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    if (!headers[":path"]?.endsWith("/WatchNodes")) return void stream.end(framed(new Uint8Array()));
    watches += 1;
    stream.once("close", () => {
      watches -= 1;
    });
    stream.write(CHANGES);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  proxy = new SilentProxy();
  await proxy.start(/** @type {import("node:net").AddressInfo} */ (server.address()).port);
  client = new Client({ server: proxy.address, token: "rca_unused", timeoutMs: 9_000 });
});

afterEach(() => {
  client.close();
  proxy.close();
  server.close();
});

/** @param {() => boolean} isSo */
async function until(isSo) {
  while (!isSo()) await pause(10);
}

test("calls use a new path when one dies silently", LIMIT, async () => {
  await client.registry.getNode(NODE);
  proxy.fallSilent();
  await Promise.all(Array.from({ length: 8 }, () => client.registry.getNode(NODE)));
  assert.equal(proxy.accepted, 2);
  await until(() => proxy.open === 1);
});

test("a slow server gets the remaining time", LIMIT, async () => {
  // The first attempt gets a third of the 9 s, which is too little; the second attempt gets the rest.
  neededMs = 4_000;
  await client.registry.getNode(NODE);
});

test("a call that is not retried fails, and the next one uses a new path", LIMIT, async (t) => {
  const once = new Client({ server: proxy.address, token: "rca_unused", timeoutMs: 2_000, retry: { attempts: 1 } });
  t.after(() => once.close());
  await once.registry.getNode(NODE);
  proxy.fallSilent();
  await assert.rejects(once.registry.getNode(NODE), TimedOutError);
  await once.registry.getNode(NODE);
  assert.equal(proxy.accepted, 2);
});

test("a call with little time does not end the connection of others", LIMIT, async () => {
  await client.registry.getNode(NODE);
  proxy.fallSilent();
  await assert.rejects(client.registry.getNode(NODE, { timeoutMs: 50 }), TimedOutError);
  assert.equal(proxy.open, 1);
});

test("a stream that falls silent makes later calls use a new path", LIMIT, async () => {
  const { signal } = new AbortController();
  /** @param {AbortSignal} until */
  const open = (until) => client.registry.watchNodes({}, { signal: until });
  const messages = untilSilent(open, signal, 500);
  assert.equal((await messages.next()).value.changes.length, 2);
  proxy.fallSilent();
  await assert.rejects(messages.next(), UnreachableError);
  await client.registry.getNode(NODE);
  assert.equal(proxy.accepted, 2);
  await until(() => proxy.open === 1);
});

test("a stream ends when it is no longer iterated", LIMIT, async () => {
  for await (const { changes } of client.registry.watchNodes()) {
    assert.equal(changes.length, 2);
    assert.equal(watches, 1);
    break;
  }
  await until(() => watches === 0);
});

test("a cache closed in its callback delivers nothing more", LIMIT, async () => {
  /** @type {string[]} */
  const delivered = [];
  const cache = new NodeCache(client, {
    onChange: ({ after }) => {
      delivered.push(after?.id ?? "");
      cache.close();
    },
  });
  await until(() => delivered.length > 0);
  await until(() => watches === 0);
  assert.deepEqual(delivered, ["a"]);
});
