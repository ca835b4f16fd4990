import type { HandlerContext } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "@jest/globals";
import type { NodeStatus } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { describeError, refuse, StoreUnavailableError, toConnectError } from "@rollcall/errors";
import { renderMetrics } from "@rollcall/process";
import {
  echoNode,
  type FixtureOptions,
  failureOf,
  RpcFixture,
  TEST_POLICIES,
  TRANSPORT_KINDS,
} from "../../test/rpc-fixture.ts";
import { callerOf, requestIdOf } from "../calls/call-context.ts";

const GET_NODE = "rollcall.registry.v1.RegistryService/GetNode";

let fixture: RpcFixture;
afterEach(async () => await fixture.stop());

async function start(options?: FixtureOptions): Promise<RpcFixture> {
  fixture = await RpcFixture.start(options);
  return fixture;
}

describe("createRpcServer()", () => {
  it.each(TRANSPORT_KINDS)("should answer over %s", async (kind) => {
    const { node } = await (await start()).registry(kind).getNode({ node: "n1" });
    expect(node?.id).toBe("n1");
  });

  it("should answer JSON over HTTP/1.1 POST, and reads by plain GET", async () => {
    const { url } = await start();
    const authorization = "Bearer viewer-token";
    const posted = await fixture.post(GET_NODE, '{"node":"n1"}', { authorization });
    expect([posted.status, await posted.json()]).toEqual([200, { node: { id: "n1" } }]);
    const message = encodeURIComponent('{"node":"n2"}');
    const got = await fetch(`${url}/${GET_NODE}?encoding=json&message=${message}`, {
      headers: { authorization, connection: "close" },
    });
    expect([got.status, await got.json()]).toEqual([200, { node: { id: "n2" } }]);
  });

  it("should list the status of every service", async () => {
    await start();
    const listed = await fixture.post("grpc.health.v1.Health/List", "{}");
    const serves = { status: "SERVING" };
    const [registry, health] = ["rollcall.registry.v1.RegistryService", "rollcall.health.v1.HealthService"];
    expect(await listed.json()).toEqual({ statuses: { "": serves, [registry]: serves, [health]: serves } });
  });

  it("should refuse GET for a method with side effects", async () => {
    const { url } = await start();
    const path = "rollcall.registry.v1.RegistryService/CreateChallenge";
    const response = await fetch(`${url}/${path}?encoding=json&message={}`, {
      headers: { connection: "close" },
    });
    expect(response.status).toBe(405);
  });

  it("should not start if a method has no policy row, or an invalid one", async () => {
    await start();
    const { [GET_NODE]: row, ...rest } = TEST_POLICIES;
    await expect(RpcFixture.start({ policies: rest })).rejects.toThrow(`${GET_NODE} has no policy row`);
    const endless = {
      ...rest,
      [GET_NODE]: { caller: "viewer", deadlineMs: 0, idempotent: true },
    } as const;
    await expect(RpcFixture.start({ policies: endless })).rejects.toThrow("needs a deadline");
    expect(row).toBeDefined();
  });

  it("should reject when the port is taken", async () => {
    const { server } = await start();
    await expect(RpcFixture.start({ port: server.port })).rejects.toThrow("EADDRINUSE");
  });
});

describe("long tokens", () => {
  const asked = { node: "n1" };

  it.each(TRANSPORT_KINDS)("should be accepted up to 16 KiB over %s, and refused with a reason above", async (kind) => {
    const longest = "t".repeat(16_384);
    const authenticate = async (bearer: string) =>
      bearer === longest ? ({ kind: "token", id: "long", role: "viewer" } as const) : null;
    await start({ authenticate });
    const { node } = await fixture.registry(kind, longest).getNode(asked);
    expect(node?.id).toBe("n1");
    for (const length of [16_385, 50_000]) {
      const refusal = await failureOf(fixture.registry(kind, "t".repeat(length)).getNode(asked));
      expect(describeError(refusal)).toMatchObject({ reason: "TOKEN_INVALID", metadata: { longest: "16384" } });
      expect(String(refusal)).toMatch(/longer than the limit of 16384 characters/);
    }
  });

  it("should be refused with a reason over HTTP/1.1", async () => {
    await start();
    const answer = await fixture.post(GET_NODE, '{"node":"n1"}', { authorization: `Bearer ${"t".repeat(40_000)}` });
    expect(answer.status).toBe(401);
    expect(await answer.text()).toMatch(/longer than the limit/);
  });
});

describe("request ids", () => {
  it("should return the caller's id, or a new one, with responses and errors", async () => {
    const seen: string[] = [];
    await start({
      registry: {
        getNode: (request, context: HandlerContext) => {
          seen.push(requestIdOf(context));
          if (request.node === "bad") throw refuse("NODE_NOT_FOUND", "no node bad");
          return echoNode(request);
        },
      },
    });
    const authorization = "Bearer viewer-token";
    const given = await fixture.post(GET_NODE, '{"node":"a"}', {
      authorization,
      "x-request-id": "r-1",
    });
    expect(given.headers.get("x-request-id")).toBe("r-1");
    const refused = await fixture.post(GET_NODE, '{"node":"bad"}', {
      authorization,
      "x-request-id": "r-2",
    });
    expect([refused.status, refused.headers.get("x-request-id")]).toEqual([404, "r-2"]);
    const made = await fixture.post(GET_NODE, '{"node":"a"}', {
      authorization,
      "x-request-id": "has space",
    });
    expect(made.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    expect(seen).toEqual(["r-1", "r-2", made.headers.get("x-request-id")]);
  });
});

describe("errors that end several calls", () => {
  it("should carry the id of each call, not of the last one", async () => {
    const shared = toConnectError(refuse("OVERLOADED", "too many requests are waiting"));
    await start({ registry: { getNode: () => Promise.reject(shared) } });
    const authorization = "Bearer viewer-token";
    const ids = ["a", "b", "c"];
    const answers = await Promise.all(
      ids.map((id) => fixture.post(GET_NODE, '{"node":"n"}', { authorization, "x-request-id": id })),
    );
    expect(answers.map((answer) => answer.headers.get("x-request-id"))).toEqual(ids);
    expect([...shared.metadata]).toEqual([]);
  });
});

describe("log and metrics", () => {
  it("should write one line for a unary call, with code, reason, duration, caller and peer", async () => {
    await start({
      registry: {
        getNode: (request) => {
          if (request.node === "gone") throw refuse("NODE_NOT_FOUND", "no node gone");
          return echoNode(request);
        },
      },
    });
    await fixture.registry().getNode({ node: "n1" });
    await failureOf(fixture.registry().getNode({ node: "gone" }));
    expect(fixture.lines).toHaveLength(2);
    expect(fixture.lines[0]).toMatchObject({
      // Successful reads are logged at debug level.
      level: "debug",
      msg: "call finished",
      method: GET_NODE,
      code: "ok",
      caller: "token:v1",
      peer: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      duration_ms: expect.any(Number),
      request_id: expect.any(String),
    });
    expect(fixture.lines[1]).toMatchObject({ level: "info", code: "not_found", reason: "NODE_NOT_FOUND" });
  });

  it("should count calls by method and code", async () => {
    await start();
    await fixture.registry().getNode({ node: "n1" });
    await failureOf(fixture.registry("grpc", "nobody").getNode({ node: "n1" }));
    const text = await renderMetrics(fixture.metrics);
    const count = (code: string) => `rollcall_rpc_duration_seconds_count{method="${GET_NODE}",code="${code}"} 1`;
    expect(text).toContain(count("ok"));
    expect(text).toContain(count("unauthenticated"));
  });

  it("should hide the text of an internal error from the caller and log it once", async () => {
    await start({
      registry: {
        getNode: () => {
          throw new Error("password=hunter2 at table nodes");
        },
      },
    });
    const error = await failureOf(fixture.registry().getNode({ node: "n1" }));
    expect(describeError(error)).toMatchObject({ message: "internal error", reason: "INTERNAL" });
    expect(JSON.stringify([error.rawMessage, ...error.metadata])).not.toContain("hunter2");
    const told = fixture.lines.filter((line) => JSON.stringify(line).includes("hunter2"));
    expect(told).toHaveLength(1);
    expect(told[0]).toMatchObject({ level: "error", code: "internal", reason: "INTERNAL" });
  });
});

describe("authorisation", () => {
  it.each([
    ["getNode", "viewer-token", null],
    ["getNode", "admin-token", null],
    ["listNodes", "operator-token", null],
    ["getNode", undefined, "TOKEN_MISSING"],
    ["getNode", "unknown", "TOKEN_INVALID"],
    ["getNode", "not a token", "TOKEN_INVALID"],
    ["listNodes", "viewer-token", "ROLE_TOO_LOW"],
    ["getClusterSummary", "operator-token", "ROLE_TOO_LOW"],
  ] as const)("should decide on %s with %s: %s", async (method, token, reason) => {
    await start({
      registry: { getNode: echoNode, listNodes: () => ({}), getClusterSummary: () => ({}) },
    });
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const path = `rollcall.registry.v1.RegistryService/${method[0]?.toUpperCase()}${method.slice(1)}`;
    const response = await fixture.post(path, method === "getNode" ? '{"node":"n"}' : "{}", headers);
    const body = await response.text();
    expect(response.status).toBe(reason === null ? 200 : reason === "ROLE_TOO_LOW" ? 403 : 401);
    if (reason !== null) expect(body).toContain("google.rpc.ErrorInfo");
    expect(fixture.lines.at(-1)?.reason ?? null).toBe(reason);
  });

  it("should ignore tokens of methods that need none, so that they answer without a store", async () => {
    await start({
      authenticate: () => Promise.reject(new Error("no store")),
      registry: { createChallenge: (_, context) => ({ clusterId: callerOf(context).kind }) },
    });
    const { clusterId } = await fixture.registry("grpc", "any").createChallenge({});
    expect(clusterId).toBe("anonymous");
  });

  it("should distinguish an unavailable store from an invalid token", async () => {
    const away = new StoreUnavailableError("connect ECONNREFUSED");
    await start({ authenticate: () => Promise.reject(away) });
    const error = describeError(await failureOf(fixture.registry().getNode({ node: "n" })));
    expect(error).toMatchObject({ reason: "STORE_UNAVAILABLE", retryAfterMs: 1_000 });
  });
});

describe("deadlines and validation", () => {
  it("should end a unary call at its deadline even if its handler ignores the signal", async () => {
    let aborted = false;
    await start({
      policies: {
        ...TEST_POLICIES,
        [GET_NODE]: { caller: "viewer", deadlineMs: 50, idempotent: true },
      },
      registry: {
        getNode: (_, { signal }) => {
          signal.addEventListener("abort", () => {
            aborted = true;
          });
          return new Promise(() => {});
        },
      },
    });
    const error = describeError(await failureOf(fixture.registry().getNode({ node: "n" })));
    expect(error).toMatchObject({ reason: "DEADLINE_EXCEEDED", metadata: { deadline_ms: "50" } });
    expect(aborted).toBe(true);
  });

  it("should obey the caller's own deadline if it is sooner", async () => {
    await start({ registry: { getNode: () => new Promise(() => {}) } });
    // Do not use our own client, which would also cancel the call at its deadline.
    const response = await fixture.post(GET_NODE, '{"node":"n"}', {
      authorization: "Bearer viewer-token",
      "connect-timeout-ms": "50",
    });
    expect([response.status, await response.text()]).toEqual([504, expect.stringContaining("DEADLINE_EXCEEDED")]);
    expect(fixture.lines).toMatchObject([{ code: "deadline_exceeded", reason: "DEADLINE_EXCEEDED" }]);
  });

  it("should report all violations together", async () => {
    await start({ registry: { listNodes: () => ({}) } });
    const call = fixture
      .registry("connect", "admin-token")
      .listNodes({ pageSize: -1, statuses: [0, 99 as NodeStatus] });
    const error = describeError(await failureOf(call));
    expect(error).toMatchObject({ code: 3, reason: "INVALID_REQUEST" });
    expect(error.violations.map((violation) => violation.field)).toEqual(["page_size", "statuses[0]", "statuses[1]"]);
  });
});
