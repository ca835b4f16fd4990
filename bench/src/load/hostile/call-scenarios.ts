import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ListNodesRequestSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { frame, headersFrame, messageFrame } from "../http2-frames.ts";
import { calls, chunkOf, largeCall, PREFACE, PREFACE_WITHOUT_WINDOW, rapidReset } from "./frames.ts";
import { CREATE_CHALLENGE, HEARTBEAT, LIST_NODES } from "./paths.ts";
import type { HostilePort, Scenario } from "./scenario.ts";

const WATCH_NODES = "/rollcall.registry.v1.RegistryService/WatchNodes";
const REGISTER = "/rollcall.registry.v1.RegistryService/RegisterNode";
const HEALTH_CHECK = "/grpc.health.v1.Health/Check";
const HEALTH_WATCH = "/grpc.health.v1.Health/Watch";
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

const EMPTY = Buffer.alloc(0);
const MEBIBYTE = 1_048_576;
/** The number of calls to make on one connection before waiting. */
const CALLS_A_ROUND = 100;
const MANY_CONNECTIONS = 400;
const A_FEW_CONNECTIONS = 8;

/** Complete calls by anonymous clients. */
export function anonymousCalls(): readonly Scenario[] {
  const nothing = Buffer.alloc(0);
  const stream =
    (path: string, message: Uint8Array, headers: Readonly<Record<string, string>> = {}) =>
    (round: number) =>
      calls(path, message, headers, round * CALLS_A_ROUND, CALLS_A_ROUND);
  const one = (name: string, next: (round: number) => Buffer): Scenario => ({
    name,
    port: "api",
    connections: A_FEW_CONNECTIONS,
    open: PREFACE,
    flood: next,
  });
  const bomb = largeCall(CREATE_CHALLENGE, gzipSync(Buffer.alloc(MEBIBYTE - 1_024)), { "grpc-encoding": "gzip" }, true);
  const oversized = largeCall(CREATE_CHALLENGE, Buffer.alloc(2 * MEBIBYTE), {}, false);
  const nested = largeCall(REGISTER, Buffer.alloc(MEBIBYTE - 1_024, 0x0a), {}, false);
  return [
    one("unknown-method", stream("/rollcall.registry.v1.RegistryService/Nothing", nothing)),
    one("bad-token", stream(LIST_NODES, nothing, { authorization: "Bearer nobody" })),
    one("no-token", stream(LIST_NODES, nothing)),
    one("malformed", stream(REGISTER, randomBytes(64))),
    one("challenges", stream(CREATE_CHALLENGE, Buffer.from([0x0a, 0x01, 0x61]))),
    one("health-checks", stream(HEALTH_CHECK, nothing)),
    one("gzip-bombs", (round) => bomb(1 + 2 * round)),
    one("oversized", (round) => oversized(1 + 2 * round)),
    one("large-malformed", (round) => nested(1 + 2 * round)),
    {
      name: "unread-challenges",
      port: "api",
      connections: A_FEW_CONNECTIONS,
      open: Buffer.concat([
        PREFACE_WITHOUT_WINDOW,
        calls(CREATE_CHALLENGE, Buffer.from([0x0a, 0x01, 0x61]), {}, 0, 500),
      ]),
      reads: false,
    },
  ];
}

/** Streams of anonymous clients. */
export function anonymousStreams(): readonly Scenario[] {
  const beat = toBinary(
    HeartbeatRequestSchema,
    create(HeartbeatRequestSchema, { frame: { case: "beat", value: { sequence: 1 } } }),
  );
  const hello = toBinary(
    HeartbeatRequestSchema,
    create(HeartbeatRequestSchema, {
      frame: {
        case: "hello",
        value: { nodeId: "bench-0", signature: new Uint8Array(64), bootId: "b" },
      },
    }),
  );
  const many = (port: HostilePort, name: string, path: string, count: number): Scenario => ({
    name,
    port,
    connections: 32,
    open: Buffer.concat([PREFACE, chunkOf((index) => headersFrame(1 + 2 * index, path), count)]),
  });
  const speaking = (name: string, message: Uint8Array): Scenario => ({
    name,
    port: "agents",
    connections: 32,
    open: PREFACE,
    flood: (round) => calls(HEARTBEAT, message, {}, round * 20, 20),
  });
  return [
    many("agents", "streams-without-hello", HEARTBEAT, 50),
    many("api", "health-watches", HEALTH_WATCH, 100),
    many("api", "open-reflections", REFLECTION, 100),
    many("api", "half-sent-calls", LIST_NODES, 500),
    speaking("beats-without-hello", beat),
    speaking("forged-hellos", hello),
    speaking("malformed-frames", randomBytes(200)),
    {
      name: "slow-hello",
      port: "agents",
      connections: MANY_CONNECTIONS,
      open: Buffer.concat([PREFACE, headersFrame(1, HEARTBEAT), frame(0, 0, 1, Buffer.alloc(3))]),
    },
  ];
}

/** A caller with a valid token that uses more than its share. */
export function identifiedCallers(viewer: Readonly<Record<string, string>>): readonly Scenario[] {
  const page = toBinary(ListNodesRequestSchema, create(ListNodesRequestSchema, { pageSize: 1_000 }));
  return [
    {
      name: "unread-lists",
      port: "api",
      connections: A_FEW_CONNECTIONS,
      open: Buffer.concat([PREFACE_WITHOUT_WINDOW, calls(LIST_NODES, page, viewer, 0, 500)]),
      reads: false,
    },
    {
      name: "lists-at-once",
      port: "api",
      connections: A_FEW_CONNECTIONS,
      open: PREFACE,
      flood: (round) => calls(LIST_NODES, page, viewer, round * 20, 20),
    },
    {
      name: "unread-watches",
      port: "api",
      connections: A_FEW_CONNECTIONS,
      open: Buffer.concat([
        PREFACE_WITHOUT_WINDOW,
        chunkOf(
          (index) =>
            Buffer.concat([headersFrame(1 + 2 * index, WATCH_NODES, viewer), messageFrame(1 + 2 * index, EMPTY, true)]),
          200,
        ),
      ]),
      reads: false,
    },
    {
      name: "resets-of-a-viewer",
      port: "api",
      connections: A_FEW_CONNECTIONS,
      open: PREFACE,
      flood: (round) => rapidReset(LIST_NODES, round * CALLS_A_ROUND, CALLS_A_ROUND, viewer),
    },
  ];
}
