import { once } from "node:events";
import { readFileSync } from "node:fs";
import https from "node:https";
import { create, toBinary } from "@bufbuild/protobuf";
import { type ChannelCredentials, credentials, Client as GrpcClient } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  HealthService,
  HeartbeatRequestSchema,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { describeError } from "@rollcall/errors";
import type { TlsSource } from "@rollcall/identity";
import { createMetrics } from "@rollcall/process";
import { bareGrpcMethod, type Encodable } from "@rollcall/testkit/grpc-method";
import { captureLog } from "@rollcall/testkit/log-capture";
import { TlsFixture } from "@rollcall/testkit/tls-fixture";
import { healthRoute } from "../../test/health-route.ts";
import { createProbeServer } from "../builtins/probe-server.ts";
import { errorFromGrpc } from "./grpc-error.ts";
import { createGrpcServer } from "./grpc-server.ts";

let fixture: TlsFixture;
beforeEach(() => {
  fixture = new TlsFixture();
});
afterEach(() => fixture.end());

const beat = create(HeartbeatRequestSchema, { frame: { case: "beat", value: { sequence: 7 } } });
const answer = create(HeartbeatResponseSchema, { frame: { case: "ack", value: { sequence: 7 } } });
const ack = Buffer.from(toBinary(HeartbeatResponseSchema, answer));

async function startAgents(source: TlsSource) {
  const { log, lines } = captureLog();
  const server = await createGrpcServer({
    ...{ host: "127.0.0.1", port: 0, log, tls: source, closeGraceMs: 200 },
    metrics: createMetrics({ defaults: false }),
    routes: [
      healthRoute({
        heartbeat: {
          open: (call) => ({ onFrame: () => call.write(ack), onHalfClose: () => call.end(), onGone: () => {} }),
        },
      }),
    ],
  });
  fixture.atEnd(() => server.close());
  return { server, lines };
}

function openStream(port: number, by: ChannelCredentials) {
  const client = new GrpcClient(`localhost:${port}`, by, { "grpc.use_local_subchannel_pool": 1 });
  fixture.atEnd(() => client.close());
  const { path, requestSerialize, responseDeserialize } = bareGrpcMethod(HealthService.method.heartbeat);
  const decode = responseDeserialize as (bytes: Buffer) => HeartbeatResponse;
  const stream = client.makeBidiStreamRequest<Encodable, HeartbeatResponse>(path, requestSerialize, decode);
  // Ignore the error of a stream that is still open when the test ends and its client is closed.
  return stream.on("error", () => {});
}

type Stream = ReturnType<typeof openStream>;

async function exchange(stream: Stream): Promise<unknown> {
  const answered = once(stream, "data");
  stream.write(beat);
  const [response] = await answered;
  return response.frame.case;
}

async function reasonOf(stream: Stream): Promise<unknown> {
  stream.resume();
  const [error] = await once(stream, "error");
  return describeError(errorFromGrpc(error)).reason;
}

describe("createGrpcServer() with TLS", () => {
  const trusting = () => credentials.createSsl(readFileSync(fixture.authority.caFile));

  it("should keep a stream when certificates change, and accept new ones with the new certificate", async () => {
    const source = await fixture.openSource();
    const { server } = await startAgents(source);
    const stream = openStream(server.port, trusting());
    expect(await exchange(stream)).toBe("ack");
    const before = await fixture.serialOf(server.port);
    fixture.authority.write("server");
    await source.reload();
    expect(await fixture.serialOf(server.port)).not.toBe(before);
    expect(await exchange(stream)).toBe("ack");
    const later = openStream(server.port, trusting());
    expect(await exchange(later)).toBe("ack");
    stream.end();
    later.end();
  });

  it("should explain the problem to clear-text clients and clients without a certificate", async () => {
    const { server, lines } = await startAgents(await fixture.openSource(true));
    const plain = openStream(server.port, credentials.createInsecure());
    expect(await reasonOf(plain)).toBe("TLS_REQUIRED");
    expect(await reasonOf(openStream(server.port, trusting()))).toBe("CLIENT_CERTIFICATE_REQUIRED");
    const { certPem, keyPem } = fixture.authority.issue({ usage: "client" });
    const ca = readFileSync(fixture.authority.caFile);
    const known = credentials.createSsl(ca, Buffer.from(keyPem), Buffer.from(certPem));
    const stream = openStream(server.port, known);
    expect(await exchange(stream)).toBe("ack");
    stream.end();
    expect(lines.map(({ reason }) => reason).filter((it) => it !== undefined)).toEqual([
      "plaintext",
      "client_certificate",
    ]);
  });

  it("should cut remaining connections when it closes", async () => {
    const { server } = await startAgents(await fixture.openSource());
    const stream = openStream(server.port, trusting());
    expect(await exchange(stream)).toBe("ack");
    const ended = once(stream, "error");
    await server.close();
    await ended;
  });
});

describe("createProbeServer() with TLS", () => {
  it("should serve over HTTPS without asking for client certificates", async () => {
    const source = await fixture.openSource(true);
    const { log } = captureLog();
    const server = await createProbeServer({
      ...{ host: "127.0.0.1", port: 0, log, tls: source, ready: () => ({}) },
      metrics: createMetrics({ defaults: false }),
    });
    fixture.atEnd(() => server.close());
    const ask = () =>
      new Promise((resolve, reject) => {
        const url = `https://127.0.0.1:${server.port}/livez`;
        const request = https.get(url, { ...fixture.clientTls(), agent: false }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        request.on("error", reject);
      });
    expect(await ask()).toBe(200);
    const before = await fixture.serialOf(server.port, "http/1.1");
    fixture.authority.write("server");
    await source.reload();
    expect(await ask()).toBe(200);
    expect(await fixture.serialOf(server.port, "http/1.1")).not.toBe(before);
  });
});
