import { EventEmitter } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { silentLogger, systemClock } from "@rollcall/process";
import type { HttpRequest, HttpResponse } from "../calls/http-handler.ts";
import { serveHttpPages } from "./serve-http-pages.ts";

describe("serveHttpPages()", () => {
  it("should make no page for a caller that has gone away while its token was looked up", async () => {
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
});
