import { afterEach, describe, expect, it } from "@jest/globals";
import { renderMetrics } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import { RpcFixture, TEST_POLICIES, TRANSPORT_KINDS } from "../../test/rpc-fixture.ts";
import { callUnread, GET_NODE, LARGE, RudeClients, VIEWER } from "../../test/unread-calls.ts";

let fixture: RpcFixture;
const clients = new RudeClients();
afterEach(async () => {
  clients.end();
  await fixture.stop();
});

/** Whether a response, a request or a connection (`what`) has been aborted so far. */
async function givenUp(what: string): Promise<boolean> {
  const metrics = await renderMetrics(fixture.metrics);
  return metrics.includes(`rollcall_calls_given_up_total{what="${what}"}`);
}

describe("unread answers", () => {
  const large = () => ({ node: { id: "n", health: { message: LARGE } } });

  it("should be aborted without their connection if other data on it is read", async () => {
    fixture = await RpcFixture.start({ registry: { getNode: large }, unreadAnswerMs: 2_000 });
    const session = clients.session(fixture.url);
    const stream = callUnread(session);
    const closed = new Promise((resolve) => stream.once("close", () => resolve(stream.rstCode)));
    await until("it was aborted", () => givenUp("answer"));
    // Read the stream, because it reports its end only when it is read.
    stream.resume();
    expect(fixture.held.size).toBe(0);
    expect(await closed).toBe(11);
    expect(session.closed || session.destroyed).toBe(false);
    const whole = callUnread(session);
    let bytes = 0;
    whole.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    const ended = new Promise((resolve) => whole.once("end", resolve));
    whole.resume();
    await ended;
    expect(bytes).toBeGreaterThan(LARGE.length);
    expect(await renderMetrics(fixture.metrics)).toContain('rollcall_calls_given_up_total{what="answer"} 1');
    expect(fixture.lines.filter(({ msg }) => msg === "response aborted because its caller does not read it")).toEqual([
      expect.objectContaining({ caller: "token:v1", reason: "PEER_TOO_SLOW" }),
    ]);
  });

  it("should be aborted with their connection if nothing on it is read", async () => {
    const getNode = () => ({ node: { id: "n", health: { message: "x".repeat(4_000_000) } } });
    fixture = await RpcFixture.start({ registry: { getNode }, unreadAnswerMs: 200 });
    const path = await clients.pathTo(fixture.server.port);
    const session = clients.session(path.url, 2 ** 31 - 1);
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    session.setLocalWindowSize(2 ** 31 - 1);
    path.block();
    for (let call = 0; call < 10; call += 1) callUnread(session);
    // The port's own check may be the first to find that the connection does not respond, and then closes it. This is
    // fine too.
    const cut = () => fixture.lines.some(({ reason }) => reason === "unresponsive");
    await until("its connection ended", async () => cut() || (await givenUp("connection")));
    await until("nothing is held", () => fixture.held.size === 0);
  });

  it("should be aborted over HTTP/1.1", async () => {
    const getNode = () => ({ node: { id: "n", health: { message: "x".repeat(20_000_000) } } });
    fixture = await RpcFixture.start({ registry: { getNode }, unreadAnswerMs: 200 });
    const socket = clients.socket(fixture.server.port);
    const body = '{"node":"n"}';
    socket.write(
      `POST ${GET_NODE} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer viewer-token\r\ncontent-type: ` +
        `application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await until("it was aborted", () => givenUp("answer"));
    await until("its slot is free", () => fixture.held.size === 0);
  });

  it.each(TRANSPORT_KINDS)("should not be confused with streams that have nothing to send over %s", async (kind) => {
    let more = () => {};
    const resumed = new Promise<void>((resolve) => {
      more = resolve;
    });
    async function* watchNodes() {
      yield { revision: 1n };
      await resumed;
      yield { revision: 2n };
    }
    fixture = await RpcFixture.start({
      registry: { watchNodes, getNode: large },
      unreadAnswerMs: 2_000,
    });
    const stream = fixture.registry(kind).watchNodes({})[Symbol.asyncIterator]();
    expect((await stream.next()).value?.revision).toBe(1n);
    // Wait until another response is aborted. By then, the idle stream would have been aborted too.
    callUnread(clients.session(fixture.url));
    await until("another one was aborted", () => givenUp("answer"));
    more();
    expect((await stream.next()).value?.revision).toBe(2n);
    expect((await stream.next()).done).toBe(true);
  });

  it("should end a stream with unread messages, and its handler", async () => {
    let hasEnded = false;
    async function* watchNodes() {
      try {
        for (;;) yield { resumeToken: LARGE };
      } finally {
        hasEnded = true;
      }
    }
    fixture = await RpcFixture.start({ registry: { watchNodes }, unreadAnswerMs: 200 });
    const session = clients.session(fixture.url);
    const stream = session.request({
      ":method": "POST",
      ":path": "/rollcall.registry.v1.RegistryService/WatchNodes",
      "content-type": "application/grpc",
      te: "trailers",
      ...VIEWER,
    });
    stream.on("error", () => {});
    stream.end(Buffer.from([0, 0, 0, 0, 0]));
    stream.pause();
    await until("its handler has ended", () => hasEnded);
    expect(fixture.held.size).toBe(0);
  });
});

describe("requests that do not arrive completely", () => {
  it("should be aborted, with the reason", async () => {
    fixture = await RpcFixture.start({ requestMs: 100, policies: shortPolicies() });
    const session = clients.session(fixture.url);
    const headers = { ":method": "POST", ":path": GET_NODE, "content-type": "application/grpc" };
    const stream = session.request({ ...headers, ...VIEWER, te: "trailers" });
    stream.on("error", () => {});
    stream.write(Buffer.from([0, 0]));
    const [answer] = await new Promise<Record<string, unknown>[]>((resolve) => {
      stream.once("response", (...all) => resolve(all as unknown as Record<string, unknown>[]));
    });
    expect(answer?.["grpc-status"]).toBe("4");
    await until("its slot is free", () => fixture.held.size === 0);
  });
});

/** Return the usual policies with short deadlines. */
function shortPolicies() {
  const rows = Object.entries(TEST_POLICIES).map(([method, row]) => [
    method,
    { ...row, deadlineMs: Math.min(row.deadlineMs, 100) },
  ]);
  return Object.fromEntries(rows);
}
