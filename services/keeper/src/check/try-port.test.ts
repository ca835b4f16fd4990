import { once } from "node:events";
import { createServer as createHttp } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { afterEach, describe, expect, it } from "@jest/globals";
import type { PortOwner } from "./port-owner.ts";
import { type PortContext, tryPort } from "./try-port.ts";

const open: Server[] = [];

async function portOf(server: Server): Promise<number> {
  open.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

function contextOf(
  ports: Readonly<Record<string, number>>,
  { timeoutMs = 30_000, owner = { kind: "own" } }: { readonly timeoutMs?: number; readonly owner?: PortOwner } = {},
): PortContext {
  return { host: "127.0.0.1", ownerOf: async () => owner, ports, timeoutMs };
}

describe("tryPort()", () => {
  afterEach(() => {
    for (const server of open.splice(0)) server.close();
  });

  it("should connect to the port", async () => {
    const port = await portOf(createServer((socket) => socket.destroy()));
    const probe = { kind: "tcp", port: "web" } as const;
    expect(await tryPort(probe, contextOf({ web: port }))).toEqual({ passed: true, message: "" });
    expect(await tryPort(probe, contextOf({}))).toEqual({ passed: false, message: "the execution has no port web" });
    open.pop()?.close();
    expect((await tryPort(probe, contextOf({ web: port }))).message).toContain("ECONNREFUSED");
  });

  it.each([
    [200, true],
    [302, true],
    [400, false],
    [503, false],
  ])("should pass or fail by the HTTP status: %i", async (status, passed) => {
    const paths: (string | undefined)[] = [];
    const server = createHttp((request, response) => {
      paths.push(request.url);
      response.writeHead(status).end();
    });
    const port = await portOf(server);
    const result = await tryPort({ kind: "http", port: "web", path: "/ready?a=b" }, contextOf({ web: port }));
    expect(result).toEqual({ passed, message: passed ? "" : `answered with status ${status}` });
    expect(paths).toEqual(["/ready?a=b"]);
  });

  it.each<[PortOwner, boolean | null]>([
    [{ kind: "own" }, true],
    [{ kind: "other" }, false],
    [{ kind: "unknown", why: "no permission" }, null],
  ])("should pass only if the execution itself listens: %j", async (owner, passed) => {
    const port = await portOf(createHttp((_, response) => response.end()));
    for (const probe of [{ kind: "tcp", port: "web" } as const, { kind: "http", port: "web", path: "/" } as const]) {
      const result = await tryPort(probe, contextOf({ web: port }, { owner }));
      expect(result.passed).toBe(passed);
      expect(result.message === "").toBe(passed === true);
    }
  });

  it("should not wait forever for an answer", async () => {
    const port = await portOf(createServer(() => {}));
    const result = await tryPort({ kind: "http", port: "web", path: "/" }, contextOf({ web: port }, { timeoutMs: 50 }));
    expect(result).toEqual({ passed: false, message: "no answer within 50 ms" });
  });

  it("should fail for an invalid path", async () => {
    const result = await tryPort({ kind: "http", port: "web", path: "/a b\n" }, contextOf({ web: 1 }));
    expect(result.passed).toBe(false);
  });
});
