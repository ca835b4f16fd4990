import { type ClientHttp2Session, connect } from "node:http2";
import net from "node:net";
import type { HandlerContext } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "@jest/globals";
import { until } from "@rollcall/testkit/time";
import { failureOf, RpcFixture, TRANSPORT_KINDS } from "../../test/rpc-fixture.ts";
import { describeError } from "../errors.ts";
import { renderMetrics } from "../metrics.ts";

const GET_NODE = "/rollcall.registry.v1.RegistryService/GetNode";
const VIEWER = { authorization: "Bearer viewer-token" };
const LARGE = "x".repeat(200_000);

let fixture: RpcFixture;
const sessions: ClientHttp2Session[] = [];
const sockets: net.Socket[] = [];
afterEach(async () => {
  for (const session of sessions.splice(0)) session.destroy();
  for (const socket of sockets.splice(0)) socket.destroy();
  await fixture.stop();
});

/** A handler that works until it is let go. */
function held() {
  const releases: (() => void)[] = [];
  const started: string[] = [];
  const getNode = async ({ node }: { readonly node: string }) => {
    started.push(node);
    await new Promise<void>((resolve) => releases.push(resolve));
    return { node: { id: node } };
  };
  return { getNode, started, release: () => releases.shift()?.() };
}

/** Holds every stream until its caller leaves. */
async function* holdStream(_: unknown, { signal }: HandlerContext) {
  yield {};
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

/** Open a stream; ends it. */
async function open(token: string): Promise<() => void> {
  const leaving = new AbortController();
  const stream = fixture.registry("grpc", token).watchNodes({}, { signal: leaving.signal });
  await stream[Symbol.asyncIterator]().next();
  return () => leaving.abort();
}

/** A session whose windows are so small that answers wait in the server. */
function smallSession(): ClientHttp2Session {
  const session = connect(fixture.url, { settings: { initialWindowSize: 1_000 } });
  session.on("error", () => {});
  sessions.push(session);
  return session;
}

/** Call GetNode by raw gRPC, and read nothing of the answer. */
function callUnread(session: ClientHttp2Session) {
  const headers = { ":method": "POST", ":path": GET_NODE, "content-type": "application/grpc" };
  const stream = session.request({ ...headers, ...VIEWER, te: "trailers" });
  stream.on("error", () => {});
  stream.end(Buffer.from([0, 0, 0, 0, 3, 0x0a, 1, 0x6e]));
  stream.pause();
  return stream;
}

/** Whether something was given up so far. */
async function givenUp(what: string): Promise<boolean> {
  const metrics = await renderMetrics(fixture.metrics);
  return metrics.includes(`rollcall_calls_given_up_total{what="${what}"}`);
}

/** A path to a port on which a client can stop reading: Node.js lets nobody do that to the socket of a session. */
async function pathTo(port: number) {
  let upstream: net.Socket | undefined;
  const proxy = net.createServer((client) => {
    const behind = net.connect(port, "127.0.0.1");
    upstream = behind;
    sockets.push(client, behind);
    for (const socket of [client, behind]) socket.on("error", () => {});
    client.pipe(behind);
    behind.on("data", (bytes) => client.write(bytes)).on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  proxy.unref();
  const { port: own } = proxy.address() as net.AddressInfo;
  return { port: own, block: () => upstream?.pause() };
}

describe("calls under way", () => {
  it.each(TRANSPORT_KINDS)("should be so many for one caller over %s", async (kind) => {
    const { getNode, started, release } = held();
    fixture = await RpcFixture.start({ registry: { getNode }, limits: { caller: 2 } });
    const client = fixture.registry(kind);
    const calls = ["a", "b"].map((node) => client.getNode({ node }));
    await until("both work", () => started.length === 2);
    expect(describeError(await failureOf(client.getNode({ node: "c" })))).toMatchObject({
      code: 8,
      reason: "TOO_MANY_CALLS",
      metadata: { actor: "token:v1", limit: "2" },
      retryAfterMs: 1_000,
    });
    const other = fixture.registry(kind, "operator-token").getNode({ node: "d" });
    await until("another caller's works", () => started.length === 3);
    for (let index = 0; index < 3; index += 1) release();
    for (const call of [...calls, other]) expect((await call).node?.id).toMatch(/[abd]/);
    await until("the places are free", () => fixture.held.size === 0);
  });

  it("should be refused without a look at the message once the token is known", async () => {
    const { getNode, started, release } = held();
    fixture = await RpcFixture.start({ registry: { getNode }, limits: { caller: 1 } });
    const first = fixture.registry().getNode({ node: "a" });
    await until("it works", () => started.length === 1);
    const refused = await fixture.post(GET_NODE.slice(1), "no JSON at all", VIEWER);
    expect(refused.status).toBe(429);
    expect(await refused.text()).toContain("TOO_MANY_CALLS");
    release();
    await first;
    expect(await renderMetrics(fixture.metrics)).toContain(
      'rollcall_calls_refused_total{party="caller"} 1',
    );
  });

  it("should count until the answer was read, not until the handler has returned", async () => {
    let answered = 0;
    const getNode = () => {
      answered += 1;
      return { node: { id: "n", health: { message: LARGE } } };
    };
    fixture = await RpcFixture.start({ registry: { getNode }, limits: { caller: 3 } });
    const session = smallSession();
    const unread = [1, 2, 3].map(() => callUnread(session));
    await until("all have been answered", () => answered === 3);
    expect(fixture.held.get("calls of token:v1")).toBe(3);
    const refused = await failureOf(fixture.registry("connect").getNode({ node: "n" }));
    expect(describeError(refused).reason).toBe("TOO_MANY_CALLS");
    unread[0]?.resume();
    await until("a place is free", () => fixture.held.get("calls of token:v1") === 2);
    const { node } = await fixture.registry("connect-http1").getNode({ node: "n" });
    expect(node?.health?.message).toBe(LARGE);
  });

  it("should wait for each other beyond so many at work, in order, and not for others", async () => {
    const { getNode, started, release } = held();
    fixture = await RpcFixture.start({ registry: { getNode }, limits: { caller: 10, work: 1 } });
    const client = fixture.registry();
    const calls = ["a", "b"].map((node) => client.getNode({ node }));
    await until("all have come", () => fixture.held.get("calls of token:v1") === 2);
    const other = fixture.registry("grpc", "operator-token").getNode({ node: "other" });
    await until("another caller's works", () => started.includes("other"));
    expect(started).toHaveLength(2);
    release();
    await until("the next one works", () => started.length === 3);
    release();
    release();
    await Promise.all([...calls, other]);
  });

  it("should be counted by address for callers who are not known, known callers apart", async () => {
    const { getNode, started, release } = held();
    const waiting: (() => void)[] = [];
    const limits = { arriving: 2, node: 1, stranger: 1 };
    fixture = await RpcFixture.start({
      registry: { getNode },
      limits,
      authenticate: async (bearer) => {
        if (bearer === "good") return { kind: "token", id: "g", role: "viewer" };
        await new Promise<void>((resolve) => waiting.push(resolve));
        return null;
      },
    });
    const good = fixture.registry("grpc", "good").getNode({ node: "a" });
    await until("a known caller's call works", () => started.length === 1);
    const tries = ["x", "y"].map((token) =>
      failureOf(fixture.registry("grpc", token).getNode({ node: "b" })),
    );
    await until("strangers' tokens are looked for", () => waiting.length === 2);
    const refused = await failureOf(fixture.registry("grpc", "z").getNode({ node: "c" }));
    expect(describeError(refused)).toMatchObject({
      reason: "TOO_MANY_CALLS",
      metadata: { limit: "2" },
      retryAfterMs: 1_000,
    });
    const again = fixture.registry("connect", "good").getNode({ node: "d" });
    await until("a known caller is let in beside them", () => started.length === 2);
    for (const resolve of waiting) resolve();
    for (const failed of tries) expect(describeError(await failed).reason).toBe("TOKEN_INVALID");
    release();
    release();
    await Promise.all([good, again]);
  });
});

describe("streams of one caller", () => {
  it("should be so many at a time, and no fewer for others", async () => {
    fixture = await RpcFixture.start({
      registry: { watchNodes: holdStream },
      limits: { streams: 2 },
    });
    await open("viewer-token");
    const leave = await open("viewer-token");
    for (const kind of TRANSPORT_KINDS) {
      const stream = fixture.registry(kind).watchNodes({})[Symbol.asyncIterator]();
      expect(describeError(await failureOf(stream.next()))).toMatchObject({
        code: 8,
        reason: "TOO_MANY_STREAMS",
        metadata: { actor: "token:v1", limit: "2" },
        retryAfterMs: 1_000,
      });
    }
    await open("operator-token");
    leave();
    await until("a place is free again", () =>
      open("viewer-token").then(
        () => true,
        () => false,
      ),
    );
  });
});

describe("answers that nobody reads", () => {
  const large = () => ({ node: { id: "n", health: { message: LARGE } } });

  it("should be given up alone where their connection is read otherwise", async () => {
    fixture = await RpcFixture.start({ registry: { getNode: large }, unreadAnswerMs: 200 });
    const session = smallSession();
    const stream = callUnread(session);
    const closed = new Promise((resolve) => stream.once("close", () => resolve(stream.rstCode)));
    await until("it was given up", () => givenUp("answer"));
    // A stream that is not read at all is not told its end before it is.
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
    expect(await renderMetrics(fixture.metrics)).toContain(
      'rollcall_calls_given_up_total{what="answer"} 1',
    );
    expect(fixture.lines.filter(({ msg }) => msg === "answer given up, nobody reads it")).toEqual([
      expect.objectContaining({ caller: "token:v1", reason: "PEER_TOO_SLOW" }),
    ]);
  });

  it("should be given up with their connection where nothing of that is read", async () => {
    const getNode = () => ({ node: { id: "n", health: { message: "x".repeat(4_000_000) } } });
    fixture = await RpcFixture.start({ registry: { getNode }, unreadAnswerMs: 200 });
    const path = await pathTo(fixture.server.port);
    const session = connect(`http://127.0.0.1:${path.port}`, {
      settings: { initialWindowSize: 2 ** 31 - 1 },
    });
    session.on("error", () => {});
    sessions.push(session);
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    session.setLocalWindowSize(2 ** 31 - 1);
    path.block();
    for (let call = 0; call < 10; call += 1) callUnread(session);
    await until("the connection was given up", () => givenUp("connection"));
    await until("nothing is held", () => fixture.held.size === 0);
  });

  it("should be given up over HTTP/1.1", async () => {
    const getNode = () => ({ node: { id: "n", health: { message: "x".repeat(20_000_000) } } });
    fixture = await RpcFixture.start({ registry: { getNode }, unreadAnswerMs: 200 });
    const socket = net.connect(fixture.server.port, "127.0.0.1");
    sockets.push(socket);
    socket.on("error", () => {});
    socket.pause();
    const body = '{"node":"n"}';
    socket.write(
      `POST ${GET_NODE} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer viewer-token\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await until("it was given up", () => givenUp("answer"));
    await until("its place is free", () => fixture.held.size === 0);
  });

  it.each(TRANSPORT_KINDS)(
    "should not be taken for streams that have nothing to send over %s",
    async (kind) => {
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
        unreadAnswerMs: 100,
      });
      const stream = fixture.registry(kind).watchNodes({})[Symbol.asyncIterator]();
      expect((await stream.next()).value?.revision).toBe(1n);
      // Meanwhile another answer is given up: so long has the stream been idle that it would have been, too.
      callUnread(smallSession());
      await until("another one was given up", () => givenUp("answer"));
      more();
      expect((await stream.next()).value?.revision).toBe(2n);
      expect((await stream.next()).done).toBe(true);
    },
  );

  it("should end a stream whose messages nobody reads, and its handler", async () => {
    let hasEnded = false;
    async function* watchNodes() {
      try {
        for (;;) yield { resumeToken: LARGE };
      } finally {
        hasEnded = true;
      }
    }
    fixture = await RpcFixture.start({ registry: { watchNodes }, unreadAnswerMs: 200 });
    const session = smallSession();
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

describe("requests that do not come whole", () => {
  it("should be given up, with the reason", async () => {
    fixture = await RpcFixture.start({ requestMs: 100, policies: await shortPolicies() });
    const session = smallSession();
    const headers = { ":method": "POST", ":path": GET_NODE, "content-type": "application/grpc" };
    const stream = session.request({ ...headers, ...VIEWER, te: "trailers" });
    stream.on("error", () => {});
    stream.write(Buffer.from([0, 0]));
    const [answer] = await new Promise<Record<string, unknown>[]>((resolve) => {
      stream.once("response", (...all) => resolve(all as unknown as Record<string, unknown>[]));
    });
    expect(answer?.["grpc-status"]).toBe("4");
    await until("its place is free", () => fixture.held.size === 0);
  });
});

/** The usual policies with deadlines that are over soon. */
async function shortPolicies() {
  const { TEST_POLICIES } = await import("../../test/rpc-fixture.ts");
  const rows = Object.entries(TEST_POLICIES).map(([method, row]) => [
    method,
    { ...row, deadlineMs: Math.min(row.deadlineMs, 100) },
  ]);
  return Object.fromEntries(rows);
}
