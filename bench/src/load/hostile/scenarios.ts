import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ListNodesRequestSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { frame, headersFrame, messageFrame } from "../http2-frames.ts";
import {
  CHEAP_FRAMES,
  calls,
  chunkOf,
  continuationFlood,
  emptyDataFlood,
  FATAL_FRAMES,
  hpackBomb,
  largeCall,
  madeReset,
  PREFACE,
  PREFACE_WITHOUT_WINDOW,
  rapidReset,
} from "./frames.ts";
import type { HostileKnowledge, HostilePort, Scenario } from "./scenario.ts";

const LIST_NODES = "/rollcall.registry.v1.RegistryService/ListNodes";
const WATCH_NODES = "/rollcall.registry.v1.RegistryService/WatchNodes";
const CREATE_CHALLENGE = "/rollcall.registry.v1.RegistryService/CreateChallenge";
const REGISTER = "/rollcall.registry.v1.RegistryService/RegisterNode";
const HEALTH_CHECK = "/grpc.health.v1.Health/Check";
const HEALTH_WATCH = "/grpc.health.v1.Health/Watch";
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const HEARTBEAT = "/rollcall.health.v1.HealthService/Heartbeat";

const EMPTY = Buffer.alloc(0);
const MEBIBYTE = 1_048_576;
/** What one connection asks for before it waits. */
const CALLS_A_ROUND = 100;
const MANY_CONNECTIONS = 400;
const A_FEW_CONNECTIONS = 8;

/** Every way to misbehave that is tried, each on the ports where it makes sense. */
export function hostileScenarios({ viewerToken }: HostileKnowledge): readonly Scenario[] {
  const viewer = { authorization: `Bearer ${viewerToken}` };
  return [
    ...silence(),
    ...brokenFrames("api"),
    ...brokenFrames("agents"),
    ...floods("api", LIST_NODES),
    ...floods("agents", HEARTBEAT),
    ...strangersCalls(),
    ...strangersStreams(),
    ...knownCallers(viewer),
    ...plainHttp(),
  ];
}

/** Connections that say nothing, little, or the wrong thing. */
function silence(): readonly Scenario[] {
  const ports: readonly HostilePort[] = ["api", "agents", "probes"];
  const clientHello = Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc]);
  return [
    ...ports.map((port) => idle(`idle-${port}`, port, EMPTY)),
    idle("preface-api", "api", PREFACE.subarray(0, 24)),
    idle("preface-agents", "agents", PREFACE.subarray(0, 24)),
    idle("settings-api", "api", PREFACE),
    idle("settings-agents", "agents", PREFACE),
    leaving("connect-close-api", "api", EMPTY, "closes"),
    leaving("connect-reset-agents", "agents", PREFACE, "resets"),
    leaving("half-close-api", "api", PREFACE, "half-closes"),
    leaving("garbage-api", "api", randomBytes(4_096), "closes"),
    leaving("garbage-agents", "agents", randomBytes(4_096), "closes"),
    leaving("tls-hello-api", "api", clientHello, "closes"),
  ];
}

function idle(name: string, port: HostilePort, open: Buffer): Scenario {
  return { name, port, connections: MANY_CONNECTIONS, open };
}

function leaving(
  name: string,
  port: HostilePort,
  open: Buffer,
  then: NonNullable<Scenario["then"]>,
): Scenario {
  return { name, port, connections: 32, open, then };
}

/** What makes HTTP/2 end a connection: the client is gone before the server has said so. */
function brokenFrames(port: HostilePort): readonly Scenario[] {
  return Object.entries(FATAL_FRAMES).map(([name, bytes]) =>
    leaving(`${name}-${port}`, port, Buffer.concat([PREFACE, bytes]), "closes"),
  );
}

/** What is allowed once and ruinous without an end. */
function floods(port: HostilePort, path: string): readonly Scenario[] {
  const flood = (name: string, open: Buffer, next: (round: number) => Buffer): Scenario => ({
    name: `${name}-${port}`,
    port,
    connections: A_FEW_CONNECTIONS,
    open,
    flood: next,
  });
  const cheap = Object.entries(CHEAP_FRAMES).map(([name, bytes]) => {
    const chunk = chunkOf(() => bytes);
    return flood(`${name}-flood`, PREFACE, () => chunk);
  });
  const empty = emptyDataFlood(path);
  const endless = continuationFlood();
  const pings = chunkOf(() => CHEAP_FRAMES.ping ?? EMPTY);
  return [
    ...cheap,
    { ...flood("unread-pings", PREFACE, () => pings), reads: false },
    flood("empty-data", empty.open, () => empty.chunk),
    flood("continuation", endless.open, () => endless.chunk),
    flood("rapid-reset", PREFACE, (round) =>
      rapidReset(path, round * CALLS_A_ROUND, CALLS_A_ROUND),
    ),
    flood("made-reset", PREFACE, (round) => madeReset(path, round * CALLS_A_ROUND, CALLS_A_ROUND)),
    flood("hpack-bomb", PREFACE, (round) => hpackBomb(round * 4)),
  ];
}

/** Whole calls of people who have shown nothing. */
function strangersCalls(): readonly Scenario[] {
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
  const bomb = largeCall(
    CREATE_CHALLENGE,
    gzipSync(Buffer.alloc(MEBIBYTE - 1_024)),
    { "grpc-encoding": "gzip" },
    true,
  );
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

/** Streams of people who have shown nothing. */
function strangersStreams(): readonly Scenario[] {
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

/** Somebody with a good token who takes more than a share. */
function knownCallers(viewer: Readonly<Record<string, string>>): readonly Scenario[] {
  const page = toBinary(
    ListNodesRequestSchema,
    create(ListNodesRequestSchema, { pageSize: 1_000 }),
  );
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
            Buffer.concat([
              headersFrame(1 + 2 * index, WATCH_NODES, viewer),
              messageFrame(1 + 2 * index, EMPTY, true),
            ]),
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
      flood: (round) => rapidReset(LIST_NODES, round * CALLS_A_ROUND, CALLS_A_ROUND),
    },
  ];
}

/** HTTP/1.1, as browsers, curl and scanners speak it. */
function plainHttp(): readonly Scenario[] {
  const post = (path: string, more: string): Buffer =>
    Buffer.from(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${more}`,
    );
  const get = Buffer.from("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const gets = chunkOf(() => get, CALLS_A_ROUND);
  const deep = `${"[".repeat(100_000)}`;
  return [
    idle("http1-slow-headers-api", "api", Buffer.from("GET / HTTP/1.1\r\nHost: local")),
    idle("http1-slow-headers-probes", "probes", Buffer.from("GET / HTTP/1.1\r\nHost: local")),
    idle("http1-slow-body", "api", post(CREATE_CHALLENGE, "Content-Length: 1000\r\n\r\n{")),
    leaving(
      "http1-huge-headers",
      "api",
      Buffer.concat([Buffer.from("GET / HTTP/1.1\r\nX: "), Buffer.alloc(MEBIBYTE, 0x61)]),
      "closes",
    ),
    leaving(
      "http1-deep-json",
      "api",
      post(CREATE_CHALLENGE, `Content-Length: ${deep.length}\r\n\r\n${deep}`),
      "stays",
    ),
    { name: "http1-pipelined", port: "api", connections: 8, open: EMPTY, flood: () => gets },
    {
      name: "http1-pipelined-unread",
      port: "api",
      connections: 8,
      open: EMPTY,
      flood: () => gets,
      reads: false,
    },
    {
      name: "http1-pipelined-probes",
      port: "probes",
      connections: 8,
      open: EMPTY,
      flood: () =>
        chunkOf(() => Buffer.from("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), 20),
    },
  ];
}
