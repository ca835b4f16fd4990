import { once } from "node:events";
import net from "node:net";
import { type ClientDuplexStream, credentials, Client as GrpcClient } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "@jest/globals";
import { HealthService } from "@rollcall/api/rollcall/health/v1/health_pb";
import { createMetrics, renderMetrics } from "@rollcall/process";
import { captureLog, type LogLine } from "@rollcall/testkit/log-capture";
import { until } from "@rollcall/testkit/time";
import { connectRaw, PREFACE } from "../../test/raw-http2.ts";
import type { FrameHandler } from "../grpc/frame-call.ts";
import { createGrpcServer, type GrpcServerOptions } from "../grpc/grpc-server.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Stream = ClientDuplexStream<Buffer, Buffer>;
const same = (bytes: Buffer) => bytes;

/** Start an agents' port. Its streams echo, and mark their caller as known at the first message. */
async function start(options: Partial<GrpcServerOptions>) {
  const { log, lines } = captureLog();
  const metrics = createMetrics({ defaults: false });
  let calls = 0;
  const heartbeat: FrameHandler<unknown> = {
    open: (call) => {
      calls += 1;
      const onFrame = (message: unknown) => {
        call.identified();
        call.write(message as Buffer);
      };
      return { onFrame, onHalfClose: () => call.end(), onGone: () => {} };
    },
  };
  const route = { service: HealthService, handlers: { heartbeat }, decoders: { heartbeat: same as never } };
  const server = await createGrpcServer({
    host: "127.0.0.1",
    port: 0,
    log,
    metrics,
    logCalls: false,
    routes: [route],
    closeGraceMs: 100,
    connectionTimes: { tickMs: 20 },
    ...options,
  });
  closers.push(() => server.close());
  const open = (): Stream => {
    const client = new GrpcClient(`127.0.0.1:${server.port}`, credentials.createInsecure(), {
      "grpc.use_local_subchannel_pool": 1,
    });
    closers.push(() => client.close());
    const path = "/rollcall.health.v1.HealthService/Heartbeat";
    return client.makeBidiStreamRequest(path, same, same).on("error", () => {});
  };
  const measured = async (name: string, labels: string): Promise<number> => {
    const text = await renderMetrics(metrics);
    return Number(new RegExp(`^${name}{${labels}} (\\d+)`, "m").exec(text)?.[1] ?? 0);
  };
  return {
    port: server.port,
    lines,
    open,
    calls: () => calls,
    ended: (reason: string) => measured("rollcall_connections_ended_total", `port="agents",reason="${reason}"`),
    connections: (kind: string) => measured("rollcall_connections", `port="agents",kind="${kind}"`),
  };
}

async function echo(stream: Stream): Promise<void> {
  stream.write(Buffer.from("x"));
  await once(stream, "data");
}

async function connect(port: number): Promise<net.Socket> {
  const socket = await connectRaw(port);
  closers.push(() => socket.destroy());
  return socket;
}

function saidOf(lines: readonly LogLine[], reason: string) {
  return lines.filter((line) => line.reason === reason);
}

describe("a crowded agents' port", () => {
  it("should keep every welcomed agent, and admit more, whatever else connects", async () => {
    const { port, lines, open, ended, connections } = await start({
      maxConnections: 20,
      maxAnonymousOfAddress: 5,
    });
    // Open five streams at a time, the limit of anonymous connections.
    const agents: Stream[] = [];
    for (let group = 0; group < 3; group += 1) {
      const more = Array.from({ length: 5 }, open);
      await Promise.all(more.map(echo));
      agents.push(...more);
    }
    await until("all are known", async () => (await connections("known")) === 15);
    const idle: net.Socket[] = [];
    for (let count = 0; count < 60; count += 1) idle.push(await connect(port));
    await until("there are few", () => idle.filter(({ destroyed }) => !destroyed).length <= 5);
    const late = open();
    await echo(late);
    for (const agent of agents) await echo(agent);
    // Count refused connections too: a connection that waits to be read is not closed to make room, and the new
    // connection is refused instead.
    await until("they are counted", async () => (await ended("shed")) + (await ended("refused_address")) >= 55);
    await until("it is reported", () => saidOf(lines, "shed").length === 1);
    expect(saidOf(lines, "shed")).toMatchObject([{ level: "warn", port: "agents", from: ["127.0.0.1"] }]);
  });

  it("should refuse an anonymous connection of an address at its limit, and admit those of others", async () => {
    const { port, open, calls, lines, ended, connections } = await start({
      maxConnections: 20,
      maxAnonymousOfAddress: 3,
      host: "0.0.0.0",
    });
    const holders = [open(), open(), open()];
    await until("all three have a call", () => calls() === 3);
    const refused = await connect(port);
    if (!refused.destroyed) await once(refused, "close");
    expect(await ended("refused_address")).toBe(1);
    const other = net.connect({
      port,
      host: "127.0.0.1",
      localAddress: "127.0.0.2",
    });
    closers.push(() => other.destroy());
    other.write(PREFACE);
    await once(other, "data");
    await until("it is reported", () => saidOf(lines, "refused_address").length === 1);
    for (const holder of holders) await echo(holder);
    await until("all three are known", async () => (await connections("known")) === 3);
    await echo(open());
  });

  it("should treat an agent as anonymous again after its stream, and close its connection in time", async () => {
    const { open, connections, ended } = await start({
      connectionTimes: { tickMs: 20, idleMs: 50 },
    });
    const agent = open();
    await echo(agent);
    expect(await connections("known")).toBe(1);
    agent.end();
    await until("the connection has ended", async () => (await ended("idle")) === 1);
    await until("it is gone", async () => (await connections("anonymous")) === 0);
    expect(await connections("known")).toBe(0);
  });
});
