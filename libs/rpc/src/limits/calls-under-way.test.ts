import type { HandlerContext } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "@jest/globals";
import { describeError } from "@rollcall/errors";
import { renderMetrics } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import { failureOf, RpcFixture, TRANSPORT_KINDS } from "../../test/rpc-fixture.ts";
import { callUnread, GET_NODE, LARGE, RudeClients, VIEWER } from "../../test/unread-calls.ts";

let fixture: RpcFixture;
const clients = new RudeClients();
afterEach(async () => {
  clients.end();
  await fixture.stop();
});

/** Create a handler whose calls work until they are released. */
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

/** A handler that holds every stream until its caller disconnects. */
async function* holdStream(_: unknown, { signal }: HandlerContext) {
  yield {};
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

/** Open a stream. Returns a function that ends it. */
async function open(token: string): Promise<() => void> {
  const leaving = new AbortController();
  const stream = fixture.registry("grpc", token).watchNodes({}, { signal: leaving.signal });
  await stream[Symbol.asyncIterator]().next();
  return () => leaving.abort();
}

describe("calls in progress", () => {
  it.each(TRANSPORT_KINDS)("should be limited per caller over %s", async (kind) => {
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
    await until("the slots are free", () => fixture.held.size === 0);
  });

  it("should be refused without decoding the message once the token is known", async () => {
    const { getNode, started, release } = held();
    fixture = await RpcFixture.start({ registry: { getNode }, limits: { caller: 1 } });
    const first = fixture.registry().getNode({ node: "a" });
    await until("it works", () => started.length === 1);
    const refused = await fixture.post(GET_NODE.slice(1), "no JSON at all", VIEWER);
    expect(refused.status).toBe(429);
    expect(await refused.text()).toContain("TOO_MANY_CALLS");
    release();
    await first;
    expect(await renderMetrics(fixture.metrics)).toContain('rollcall_calls_refused_total{party="caller"} 1');
  });

  it("should count until the response was read, not until the handler has returned", async () => {
    let answered = 0;
    const getNode = () => {
      answered += 1;
      return { node: { id: "n", health: { message: LARGE } } };
    };
    fixture = await RpcFixture.start({ registry: { getNode }, limits: { caller: 3 } });
    const session = clients.session(fixture.url);
    const unread = [1, 2, 3].map(() => callUnread(session));
    await until("all have been answered", () => answered === 3);
    expect(fixture.held.get("calls of token:v1")).toBe(3);
    const refused = await failureOf(fixture.registry("connect").getNode({ node: "n" }));
    expect(describeError(refused).reason).toBe("TOO_MANY_CALLS");
    unread[0]?.resume();
    await until("a slot is free", () => fixture.held.get("calls of token:v1") === 2);
    const { node } = await fixture.registry("connect-http1").getNode({ node: "n" });
    expect(node?.health?.message).toBe(LARGE);
  });

  it("should wait in order for calls of their own party beyond the limit at work, and not for others", async () => {
    const { getNode, started, release } = held();
    fixture = await RpcFixture.start({ registry: { getNode }, limits: { caller: 10, work: 1 } });
    const client = fixture.registry();
    const calls = ["a", "b"].map((node) => client.getNode({ node }));
    await until("all have arrived", () => fixture.held.get("calls of token:v1") === 2);
    const other = fixture.registry("grpc", "operator-token").getNode({ node: "other" });
    await until("another caller's works", () => started.includes("other"));
    expect(started).toHaveLength(2);
    release();
    await until("the next one works", () => started.length === 3);
    release();
    release();
    await Promise.all([...calls, other]);
  });

  it("should be counted by address for anonymous clients, separately from known callers", async () => {
    const { getNode, started, release } = held();
    const waiting: (() => void)[] = [];
    const limits = { arriving: 2, node: 1, anonymous: 1 };
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
    const tries = ["x", "y"].map((token) => failureOf(fixture.registry("grpc", token).getNode({ node: "b" })));
    await until("tokens of anonymous clients are looked up", () => waiting.length === 2);
    const refused = await failureOf(fixture.registry("grpc", "z").getNode({ node: "c" }));
    expect(describeError(refused)).toMatchObject({
      reason: "TOO_MANY_CALLS",
      metadata: { limit: "2" },
      retryAfterMs: 1_000,
    });
    const again = fixture.registry("connect", "good").getNode({ node: "d" });
    await until("a known caller is admitted too", () => started.length === 2);
    for (const resolve of waiting) resolve();
    for (const failed of tries) expect(describeError(await failed).reason).toBe("TOKEN_INVALID");
    release();
    release();
    await Promise.all([good, again]);
  });
});

describe("streams of one caller", () => {
  it("should be limited, without reducing the limit of others", async () => {
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
    await until("a slot is free again", () =>
      open("viewer-token").then(
        () => true,
        () => false,
      ),
    );
  });
});
