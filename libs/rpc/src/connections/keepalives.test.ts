import { once } from "node:events";
import { readFile } from "node:fs/promises";
import net from "node:net";
import { afterEach, describe, it } from "@jest/globals";
import type { HeartbeatRequest } from "@rollcall/api/rollcall/health/v1/health_pb";
import { createMetrics, silentLogger, systemClock } from "@rollcall/process";
import { needs } from "@rollcall/testkit/needs";
import { ManualClock, until } from "@rollcall/testkit/time";
import { healthRoute } from "../../test/health-route.ts";
import { connectRaw, frame, POST_HEADERS, PREFACE } from "../../test/raw-http2.ts";
import type { FrameHandler } from "../grpc/frame-call.ts";
import { createGrpcServer } from "../grpc/grpc-server.ts";
import { AnonymousLog } from "../limits/anonymous-log.ts";
import type { ConnectionTimes, GuardedServer } from "../server-options.ts";
import { PolyglotListener } from "./polyglot-listener.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function openAgents(): Promise<number> {
  return (await openServer({}, new ManualClock())).port;
}

/** Start a server. The clock moves only when the test advances it, so that no other limit ends a connection. */
async function openServer(
  connectionTimes: ConnectionTimes,
  clock: ManualClock,
  onCall: () => void = () => {},
): Promise<GuardedServer> {
  const heartbeat: FrameHandler<HeartbeatRequest> = {
    open: (call) => {
      call.identified();
      onCall();
      return { onFrame: () => {}, onHalfClose: () => {}, onGone: () => {} };
    },
  };
  const server = await createGrpcServer({
    host: "127.0.0.1",
    port: 0,
    connectionTimes,
    clock,
    log: silentLogger,
    metrics: createMetrics({ defaults: false }),
    closeGraceMs: 100,
    routes: [healthRoute({ heartbeat })],
  });
  closers.push(() => server.close());
  return server;
}

/** Encode an HPACK literal whose name is in the static table. */
function header(name: readonly number[], value: string): Buffer {
  return Buffer.concat([Buffer.from([...name, value.length]), Buffer.from(value)]);
}

const HEARTBEAT_HEADERS = Buffer.concat([
  POST_HEADERS.subarray(0, 2),
  header([0x04], "/rollcall.health.v1.HealthService/Heartbeat"),
  header([0x01], "a"),
  header([0x0f, 0x10], "application/grpc"),
]);

async function openApi(): Promise<number> {
  const listener = await PolyglotListener.listen({
    name: "api",
    host: "127.0.0.1",
    port: 0,
    firstByteMs: 60_000,
    maxConnections: 10,
    log: silentLogger,
    anonymousClients: new AnonymousLog({ log: silentLogger }),
    metrics: createMetrics({ defaults: false }),
    clock: systemClock,
    handler: () => {},
  });
  closers.push(() => listener.destroy());
  return listener.port;
}

/**
 * Read the number of seconds until the server's kernel sends a keepalive probe to the peer of a connection; null for
 * never.
 */
async function probesAfterSeconds(port: number, clientPort: number): Promise<number | null> {
  const hex = (value: number) => value.toString(16).toUpperCase().padStart(4, "0");
  const table = await readFile("/proc/net/tcp", "utf8");
  const row = table
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .find(([, local = "", remote = ""]) => local.endsWith(`:${hex(port)}`) && remote.endsWith(`:${hex(clientPort)}`));
  // Return the time of timer 2, the keepalive timer, which is in hundredths of a second.
  const [timer, when = "0"] = row?.[5]?.split(":") ?? [];
  return timer === "02" ? Number.parseInt(when, 16) / 100 : null;
}

const onLinux = needs("Linux", process.platform === "linux");

describe("keepalives", () => {
  onLinux.it.each([
    ["the agents' port", openAgents, 30],
    ["the API's port", openApi, 60],
  ] as const)("should have the kernel ask after silent peers of %s", async (_, open, afterSeconds) => {
    const port = await open();
    const socket = net.connect(port, "127.0.0.1");
    closers.push(() => socket.destroy());
    await once(socket, "connect");
    await until("the kernel keeps a timer", async () => {
      const seconds = await probesAfterSeconds(port, socket.localPort ?? 0);
      return seconds !== null && seconds <= afterSeconds && seconds > afterSeconds / 2;
    });
  });

  it("should probe identified agents, and close the connections of those that do not answer", async () => {
    const clock = new ManualClock();
    const times = { tickMs: 5, answerMs: 10_000, knownEveryMs: 300_000 };
    let isKnown = false;
    const server = await openServer(times, clock, () => {
      isKnown = true;
    });
    const socket = await connectRaw(server.port);
    closers.push(() => socket.destroy());
    // Acknowledge settings but not pings, like a proxy whose machine is gone.
    socket.write(Buffer.concat([PREFACE, frame("SETTINGS", { flags: 1 })]));
    socket.write(frame("HEADERS", { flags: 4, stream: 1, payload: HEARTBEAT_HEADERS }));
    await until("the agent is known", () => isKnown);
    let hasClosed = false;
    socket.on("close", () => {
      hasClosed = true;
    });
    clock.advance(times.knownEveryMs);
    await until("it was asked, and is left", () => {
      clock.advance(times.answerMs);
      return hasClosed;
    });
  });
});
