import { createServer as createHttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { describeError, refuse } from "@rollcall/errors";
import { generateKeyPair } from "@rollcall/identity";
import { toNodeInfo } from "../convert.ts";
import { SMALL_FACTS } from "../testing/agent-harness.ts";
import { FakeGrpcServer } from "../testing/fake-grpc-server.ts";
import { createRegistrar, resolveEndpoints } from "./registrar.ts";

const REGISTRATION = {
  nodeId: "node-1",
  keyPair: generateKeyPair(),
  info: toNodeInfo(SMALL_FACTS, { agentVersion: "0.1.0", advertiseUrl: "", labels: {} }),
  joinToken: "rcj_token",
};

describe("createRegistrar()", () => {
  let server: FakeGrpcServer;
  let silent: Server | undefined;
  beforeEach(async () => {
    server = new FakeGrpcServer();
    await server.listen();
  });
  afterEach(() => {
    server.destroy();
    silent?.close();
  });

  const register = (port: number, signal = new AbortController().signal) =>
    createRegistrar({ host: "127.0.0.1", port }).register(REGISTRATION, signal);

  it("should prove its key and complete the returned endpoints", async () => {
    expect(await register(server.port)).toEqual({
      clusterId: "cluster-wire",
      healthEndpoints: [`127.0.0.1:${server.port}`],
      membership: "APPROVED",
      created: false,
    });
    expect(server.registrations[0]?.joinToken).toBe("rcj_token");
  });

  it("should pass on the reason of a refusal, and the retry delay", async () => {
    server.refusal = refuse("NODE_REJECTED", "node has been rejected: no", {
      retryAfterMs: 30_000,
    });
    const error = await register(server.port).catch((it: unknown) => it);
    expect(describeError(error)).toMatchObject({
      reason: "NODE_REJECTED",
      message: "node has been rejected: no",
      retryAfterMs: 30_000,
    });
  });

  it("should return no reason if the registry does not exist", async () => {
    const error = await register(1).catch((it: unknown) => it);
    expect(describeError(error).reason).toBeUndefined();
  });

  it("should survive a server that does not speak HTTP/2", async () => {
    const uncaught: unknown[] = [];
    const other = createHttpServer((_, response) => response.writeHead(404).end("not found"));
    silent = other;
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const address = other.address();
    const port = typeof address === "object" && address ? address.port : 0;
    const note = (error: unknown) => uncaught.push(error);
    process.on("uncaughtException", note);
    try {
      for (let attempt = 0; attempt < 5; attempt += 1) {
        await expect(register(port)).rejects.toThrow();
      }
      // Close the sockets, because the session reports its own error only after its socket
      // was closed.
      other.closeAllConnections();
      await new Promise((resolve) => other.close(resolve));
      await new Promise(setImmediate);
    } finally {
      process.off("uncaughtException", note);
    }
    expect(uncaught).toEqual([]);
  });

  it("should stop when aborted, whatever the registry does", async () => {
    silent = createServer();
    const listening = silent;
    const port = await new Promise<number>((resolve) => {
      listening.listen(0, "127.0.0.1", () => {
        const address = listening.address();
        resolve(typeof address === "object" && address ? address.port : 0);
      });
    });
    const leaving = new AbortController();
    const pending = register(port, leaving.signal);
    leaving.abort(new Error("stop"));
    await expect(pending).rejects.toThrow();
  });
});

const SERVER = { host: "10.1.2.3", port: 7700 };

describe("resolveEndpoints()", () => {
  it.each([
    [[":7701"], SERVER, ["10.1.2.3:7701"]],
    [[":7701"], { host: "fd00::1", port: 7700 }, ["[fd00::1]:7701"]],
    [["health-1:7701", "[::1]:7702"], SERVER, ["health-1:7701", "[::1]:7702"]],
    [[":7701", "10.1.2.3:7701"], SERVER, ["10.1.2.3:7701"]],
    [["", "nonsense", ":0", ":99999", "a:b"], SERVER, []],
    [[], SERVER, []],
  ])("should resolve %j against %j", (endpoints, server, resolved) => {
    expect(resolveEndpoints(endpoints, server)).toEqual(resolved);
  });
});
