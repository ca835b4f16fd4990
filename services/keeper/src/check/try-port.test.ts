import { once } from "node:events";
import { createServer as createHttp } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { afterEach, describe, expect, it } from "@jest/globals";
import { type CheckContext, runCheck } from "./run-check.ts";

const env = { PATH: "/usr/bin:/bin", WORD: "yes" };
const open: Server[] = [];

async function portOf(server: Server): Promise<number> {
  open.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

function contextOf(ports: Readonly<Record<string, number>>, timeoutMs = 30_000): CheckContext {
  return {
    ports,
    timeoutMs,
    cgroups: [],
    prepare: async (argv) => ({ command: { argv, env, directory: "/" }, account: null }),
  };
}

describe("runCheck()", () => {
  afterEach(() => {
    for (const server of open.splice(0)) server.close();
  });

  it("should try a connection", async () => {
    const port = await portOf(createServer((socket) => socket.destroy()));
    const probe = { kind: "tcp", port: "web" } as const;
    expect(await runCheck(probe, contextOf({ web: port }))).toEqual({ passed: true, message: "" });
    expect(await runCheck(probe, contextOf({}))).toEqual({ passed: false, message: "it has no port web" });
    open.pop()?.close();
    expect((await runCheck(probe, contextOf({ web: port }))).message).toContain("ECONNREFUSED");
  });

  it.each([
    [200, true],
    [302, true],
    [400, false],
    [503, false],
  ])("should judge an answer of HTTP by its status: %i", async (status, passed) => {
    const paths: (string | undefined)[] = [];
    const server = createHttp((request, response) => {
      paths.push(request.url);
      response.writeHead(status).end();
    });
    const port = await portOf(server);
    const result = await runCheck({ kind: "http", port: "web", path: "/ready?a=b" }, contextOf({ web: port }));
    expect(result).toEqual({ passed, message: passed ? "" : `answered with status ${status}` });
    expect(paths).toEqual(["/ready?a=b"]);
  });

  it("should not wait for an answer that does not come", async () => {
    const port = await portOf(createServer(() => {}));
    const result = await runCheck({ kind: "http", port: "web", path: "/" }, contextOf({ web: port }, 50));
    expect(result).toEqual({ passed: false, message: "no answer within 50 ms" });
  });

  it.each([
    [["sh", "-c", '[ "$WORD" = yes ]'], 30_000, ""],
    [["sh", "-c", "exit 3"], 30_000, "its command ended with 3"],
    [["sh", "-c", "kill -KILL $$"], 30_000, "its command ended with SIGKILL"],
    [["no-such-program"], 30_000, "its command ended with 127"],
    [["sleep", "1000"], 50, "its command took longer than 50 ms"],
  ])("should run %j", async (argv, timeoutMs, message) => {
    const result = await runCheck({ kind: "command", argv }, contextOf({}, timeoutMs));
    expect(result).toEqual({ passed: message === "", message });
  });

  it("should fail for a path that no request can have", async () => {
    const result = await runCheck({ kind: "http", port: "web", path: "/a b\n" }, contextOf({ web: 1 }));
    expect(result.passed).toBe(false);
  });
});
