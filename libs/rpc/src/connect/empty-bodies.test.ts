import http2 from "node:http2";
import { credentials, Client as GrpcClient, type ServiceError } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "@jest/globals";
import { createMetrics } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import { ending, healthRoute } from "../../test/health-route.ts";
import { RpcFixture } from "../../test/rpc-fixture.ts";
import { createGrpcServer } from "../grpc/grpc-server.ts";

/**
 * More calls than can start in one iteration of the event loop. Most of them wait, and their bodies
 * end while they wait.
 */
const MANY = 60;

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

// A message whose fields all have their defaults has no bytes.
describe("many calls at once with an empty body", () => {
  it("should all be answered by the API", async () => {
    const fixture = await RpcFixture.start({ registry: { createChallenge: () => ({}) } });
    closers.push(() => fixture.stop());
    const session = http2.connect(fixture.url);
    closers.push(() => session.destroy());
    const call = () =>
      new Promise<number>((resolve, reject) => {
        const stream = session.request({
          ":method": "POST",
          ":path": "/rollcall.registry.v1.RegistryService/CreateChallenge",
          "content-type": "application/proto",
        });
        stream.on("response", (headers) => resolve(Number(headers[":status"])));
        stream.on("error", reject);
        stream.end();
      });
    const answers = await Promise.all(Array.from({ length: MANY }, call));
    expect(answers).toEqual(Array.from({ length: MANY }, () => 200));
  });

  it("should all be answered on the agents' port", async () => {
    const server = await createGrpcServer({
      host: "127.0.0.1",
      port: 0,
      log: captureLog().log,
      metrics: createMetrics({ defaults: false }),
      routes: [healthRoute({ heartbeat: ending })],
    });
    closers.push(() => server.close());
    const client = new GrpcClient(`127.0.0.1:${server.port}`, credentials.createInsecure());
    closers.push(() => client.close());
    const same = (bytes: Buffer) => bytes;
    const call = () =>
      new Promise<number>((resolve, reject) => {
        const path = "/rollcall.health.v1.HealthService/Heartbeat";
        const stream = client.makeBidiStreamRequest(path, same, same);
        stream.on("status", ({ code }) => resolve(code));
        stream.on("error", (error: ServiceError) => reject(error));
        stream.resume();
        stream.end();
      });
    const codes = await Promise.all(Array.from({ length: MANY }, call));
    expect(codes).toEqual(Array.from({ length: MANY }, () => 0));
  });
});
