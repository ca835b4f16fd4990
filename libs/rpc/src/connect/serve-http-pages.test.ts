import { EventEmitter, once } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { refuse } from "@rollcall/errors";
import { type Clock, createMetrics, silentLogger, systemClock } from "@rollcall/process";
import { ManualClock, settle, until } from "@rollcall/testkit/time";
import type { HttpRequest, HttpResponse } from "../calls/http-handler.ts";
import { FailedAttempts } from "../limits/failed-attempts.ts";
import { createRpcServer } from "./rpc-server.ts";
import { serveHttpPages } from "./serve-http-pages.ts";

describe("serveHttpPages()", () => {
  it("should create no page for a caller that disconnected while its token was looked up", async () => {
    let isMade = false;
    const page = {
      ...({ path: "/page", caller: "viewer", deadlineMs: 60_000 } as const),
      answer: async () => {
        isMade = true;
        return { contentType: "text/plain", bytes: 0, pieces: [] };
      },
    };
    const socket = { remoteAddress: "127.0.0.1", remotePort: 1 };
    const request = { url: "/page", method: "GET", headers: { authorization: "Bearer t" }, socket, resume() {} };
    const response = Object.assign(new EventEmitter(), { headersSent: true, writableEnded: false, destroy() {} });
    const ended = new Promise<string>((resolve) => {
      const authenticate = async () => {
        response.emit("close");
        return { id: "t", role: "admin" } as never;
      };
      const observe = (_: string, code: string) => resolve(code);
      const serve = serveHttpPages([page], { authenticate, clock: systemClock, log: silentLogger, observe }, () => {});
      serve(request as unknown as HttpRequest, response as unknown as HttpResponse);
    });
    expect(await ended).not.toBe("ok");
    expect(isMade).toBe(false);
    expect(response.listenerCount("close")).toBe(0);
  });

  it("should not let one caller block the pages of others", async () => {
    const gate = new EventEmitter();
    let begun = 0;
    const page = {
      ...({ path: "/page", caller: "viewer", deadlineMs: 60_000 } as const),
      answer: async () => {
        begun += 1;
        if (begun === 1) await once(gate, "open");
        return { contentType: "text/plain", bytes: 4, pieces: [Buffer.from("made")] };
      },
    };
    const server = await createRpcServer({
      ...{ host: "127.0.0.1", port: 0, routes: () => {}, services: [], policies: {}, pages: [page] },
      ...{ log: silentLogger, metrics: createMetrics({ defaults: false }) },
      authenticate: async (token) => ({ kind: "token", id: token, role: "viewer" }),
    });
    const read = (token: string) =>
      fetch(`http://127.0.0.1:${server.port}/page`, { headers: { authorization: `Bearer ${token}` } });
    try {
      const first = read("greedy");
      await until("its first page is created", () => begun === 1);
      const further = Array.from({ length: 9 }, () => read("greedy").then((answer) => answer.text()));
      expect(await Promise.race(further)).toContain("TOO_MANY_CALLS");
      expect(await (await read("other")).text()).toBe("made");
      gate.emit("open");
      expect(await (await first).text()).toBe("made");
      expect((await Promise.all(further)).filter((text) => text === "made")).toHaveLength(8);
    } finally {
      await server.close();
    }
  });

  /** Serve one page to a caller whose connection is replaced by `out`. Returns the code that is observed. */
  function serveTo(out: { write(): boolean }, bytes: number, clock: Clock = systemClock) {
    const response = Object.assign(new EventEmitter(), {
      ...out,
      ...{ headersSent: true, writableEnded: false, isCut: false, isEnded: false },
      writeHead() {},
      end() {
        this.isEnded = true;
      },
      destroy() {
        this.isCut = true;
      },
    });
    const socket = { remoteAddress: "127.0.0.1", remotePort: 1 };
    const request = { url: "/page", method: "GET", headers: {}, socket, resume() {} };
    let isClosed = false;
    async function* pieces() {
      try {
        for (let at = 0; at < 3; at += 1) yield Buffer.from("ab");
      } finally {
        isClosed = true;
      }
    }
    const page = {
      ...{ path: "/page", caller: async () => {}, deadlineMs: 600_000 },
      answer: async () => ({ contentType: "text/plain", bytes, pieces: pieces() }),
    };
    const observed = new Promise<string>((resolve) => {
      const observe = (_: string, code: string) => resolve(code);
      const serving = { authenticate: async () => null, clock, log: silentLogger, observe };
      serveHttpPages([page], serving, () => {})(request as unknown as HttpRequest, response as unknown as HttpResponse);
    });
    return { observed, response, isClosed: () => isClosed };
  }

  it("should cut the response of a caller that reads nothing, and close its source", async () => {
    const clock = new ManualClock();
    let written = 0;
    const write = () => {
      written += 1;
      return false;
    };
    const { observed, response, isClosed } = serveTo({ write }, 6, clock);
    await until("the first piece", () => written === 1);
    response.emit("drain");
    await until("the second piece", () => written === 2);
    await settle();
    await clock.advance(30_000);
    expect(await observed).toBe("deadline_exceeded");
    expect([response.isCut, response.isEnded, isClosed(), written]).toEqual([true, false, true, 2]);
  });

  it.each([
    ["shorter", 7],
    ["longer", 5],
  ])("should cut a response whose content is %s than its header says", async (_, bytes) => {
    const { observed, response, isClosed } = serveTo({ write: () => true }, bytes);
    expect(await observed).toBe("internal");
    expect([response.isCut, response.isEnded, isClosed()]).toEqual([true, false, true]);
  });

  it("should count refused credentials that are not access tokens, by their address", async () => {
    const attempts: string[] = [];
    let isAllowed = true;
    const limits = {
      msUntilAllowed: () => (isAllowed ? 0 : 5_000),
      failed: (peer: string) => attempts.push(`failed ${peer.replace(/:\d+$/, "")}`),
      passed: () => attempts.push("passed"),
    };
    const never = { msUntilAllowed: () => 1, failed() {}, passed() {} };
    const page = {
      ...{ path: "/page", deadlineMs: 60_000 },
      caller: async ({ authorization }: { readonly authorization: string | null }) => {
        if (authorization !== "Bearer right") throw refuse("JOIN_TOKEN_INVALID", "wrong");
      },
      answer: async () => ({ contentType: "text/plain", bytes: 4, pieces: [Buffer.from("made")] }),
    };
    const server = await createRpcServer({
      ...{ host: "127.0.0.1", port: 0, routes: () => {}, services: [], policies: {}, pages: [page] },
      ...{ log: silentLogger, metrics: createMetrics({ defaults: false }), authenticate: async () => null },
      failures: new FailedAttempts({ node: limits, token: never }, systemClock),
    });
    const read = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      return (await fetch(`http://127.0.0.1:${server.port}/page`, { headers })).text();
    };
    try {
      expect(await read("wrong")).toContain("JOIN_TOKEN_INVALID");
      expect(await read("right")).toBe("made");
      isAllowed = false;
      expect(await read("wrong")).toContain("TOO_MANY_FAILURES");
      expect(attempts).toEqual(["failed 127.0.0.1", "passed"]);
    } finally {
      await server.close();
    }
  });
});
