import { EventEmitter, once } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { createMetrics, silentLogger, systemClock } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import type { HttpRequest, HttpResponse } from "../calls/http-handler.ts";
import { createRpcServer } from "./rpc-server.ts";
import { serveHttpPages } from "./serve-http-pages.ts";

describe("serveHttpPages()", () => {
  it("should create no page for a caller that disconnected while its token was looked up", async () => {
    let isMade = false;
    const page = {
      ...({ path: "/page", caller: "viewer", deadlineMs: 60_000 } as const),
      answer: async () => {
        isMade = true;
        return { contentType: "text/plain", pieces: [] };
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
        return { contentType: "text/plain", pieces: [Buffer.from("made")] };
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
});
