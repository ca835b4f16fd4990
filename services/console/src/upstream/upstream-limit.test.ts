import { createServer, type ServerResponse } from "node:http";
import { connect, constants, createServer as createServer2 } from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { faultsAtLimit, type Use } from "@rollcall/testkit/limits";
import { until } from "@rollcall/testkit/time";
import { createUpstream, type Upstream } from "./upstream.ts";

const LIMIT = 3;
const PATH = "/rollcall.admin.v1.AccessService/WhoAmI";

/** Responses that the service has not sent yet. */
const waiting: ServerResponse[] = [];
const service = createServer((request, response) => {
  request.resume();
  waiting.push(response);
});
let upstream: Upstream;
/** How many calls of pages are open. */
let open = 0;
const front = createServer2((request, response) => {
  open += 1;
  response.once("close", () => {
    open -= 1;
  });
  upstream.passOn({ request, response, path: request.url, peer: "192.0.2.1:5", known: () => {} });
});

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

let page: ReturnType<typeof connect>;
let origin: string;
beforeAll(async () => {
  origin = await listening(service);
  upstream = createUpstream({ urls: { "*": origin }, tls: null, mostCalls: LIMIT });
  page = connect(await listening(front as unknown as Server));
});
afterAll(async () => {
  page.destroy();
  upstream.close();
  service.closeAllConnections();
  await Promise.all([front, service].map((server) => new Promise((resolve) => server.close(resolve))));
});

/** Forward a call until it has arrived at the service. Throws the text of a refusal. */
async function begin(): Promise<Use> {
  const before = open;
  const stream = page.request({ ":method": "POST", ":path": PATH, "content-type": "application/json" });
  let text = "";
  stream
    .on("error", () => {})
    .on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  const closed = new Promise((resolve) => stream.once("close", resolve));
  stream.end("{}");
  await until("the call to arrive, or to be refused", () => waiting.length > 0 || stream.closed);
  const answer = waiting.pop();
  if (answer === undefined) {
    await until("the console to have ended the refused call", () => open === before);
    throw new Error(/"reason":"(\w+)"/.exec(text)?.[1] ?? text);
  }
  /** End the call, and wait until the console has noticed. */
  const ending = (end: () => unknown) => async () => {
    const during = open;
    await end();
    await closed;
    await until("the console to have ended the call", () => open === during - 1);
  };
  return {
    endings: {
      "an answer": ending(() => answer.end("{}")),
      "a service that breaks the connection": ending(() => answer.socket?.destroy()),
      "a service that breaks off its answer": ending(async () => {
        answer.write("{");
        await until("the beginning", () => text !== "");
        answer.socket?.destroy();
      }),
      "a page that has left": ending(() => stream.close(constants.NGHTTP2_CANCEL)),
    },
  };
}

describe("calls that the console forwards", () => {
  it("should be cut if their response does not begin in time, and never after it has begun", async () => {
    const brief = createUpstream({ urls: { "*": origin }, tls: null, answerMs: 200 });
    const front = createServer2((request, response) => {
      brief.passOn({ request, response, path: request.url, peer: "192.0.2.1:5", known: () => {} });
    });
    const page = connect(await listening(front as unknown as Server));
    const call = () => {
      const stream = page.request({ ":method": "POST", ":path": PATH, "content-type": "application/json" });
      const got = { text: "", stream };
      stream
        .on("error", () => {})
        .on("data", (chunk: Buffer) => {
          got.text += chunk.toString();
        });
      stream.end("{}");
      return got;
    };
    try {
      const begun = call();
      const answer = await until("the first call", () => waiting.pop());
      answer.write("one");
      await until("the beginning", () => begun.text === "one");
      // Once a later call is cut, the time has passed for the first one too.
      const silent = call();
      await until("the end of the silent call", () => silent.stream.closed);
      expect(silent.text).toContain("UPSTREAM_UNAVAILABLE");
      waiting.splice(0);
      answer.end(" two");
      await until("the rest", () => begun.stream.closed);
      expect(begun.text).toBe("one two");
    } finally {
      page.destroy();
      brief.close();
      await new Promise((resolve) => front.close(resolve));
    }
  });

  it("should be limited, whichever way they end", async () => {
    expect(await faultsAtLimit({ limit: LIMIT, reason: "OVERLOADED", begin, held: () => open })).toEqual([]);
  });
});
