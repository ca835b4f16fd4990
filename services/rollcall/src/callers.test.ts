import { type ClientHttp2Session, connect } from "node:http2";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { Health as GrpcHealth } from "@rollcall/api/grpc/health/v1/health_pb";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { proofText } from "@rollcall/domain";
import { describeError } from "@rollcall/errors";
import { generateKeyPair, signProof } from "@rollcall/identity";
import { createLogger, systemClock } from "@rollcall/process";
import { errorFromGrpc } from "@rollcall/rpc";
import { accessTokenHash, ensureAccessToken, listAudit } from "@rollcall/store";
import { addNode, createTestDatabase, eventually, refusalOf, type TestDatabase, until } from "@rollcall/testkit";
import { loadControlPlaneConfig } from "./config/control-plane-config.ts";
import { openProbes } from "./control-plane/open-probes.ts";
import { planUp } from "./control-plane/process-plan.ts";
import { startControlPlane } from "./control-plane/start-control-plane.ts";

const FREE_PORTS = { port: "0", "agent-port": "0", "probe-port": "0", "internal-port": "0" };
const BEHIND_PROXY = { "trusted-proxies": "127.0.0.1,10.9.0.0/16" };

type Line = Readonly<Record<string, unknown>>;
type Headers = Readonly<Record<string, string>>;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const name of ["greedy", "modest"]) {
    const token = { id: name, name, role: "operator", hash: accessTokenHash(`token-${name}`) };
    await ensureAccessToken(database.store.db, token);
  }
  await addNode(database.store, "n1");
});
afterAll(() => database.drop());

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A whole control plane in this process, with its log. */
async function start(flags: Readonly<Record<string, string>> = {}) {
  const lines: Line[] = [];
  const destination = { write: (line: string) => lines.push(JSON.parse(line)) };
  const log = createLogger({ level: "info", destination });
  const shell = { env: {}, cwd: "/" };
  const all = { ...FREE_PORTS, ...flags };
  const { values } = await loadControlPlaneConfig({ shell, file: undefined, flags: all });
  const shared = { plan: planUp(values), clock: systemClock, log };
  const probes = await openProbes(shared);
  ends.push(() => probes.close());
  const options = { ...shared, config: values, store: database.store, probes, version: "9.9.9" };
  const running = await startControlPlane(options, new AbortController().signal);
  let closing: Promise<void> | null = null;
  const close = () => {
    closing ??= running.close();
    return closing;
  };
  ends.push(close);
  const probesUrl = `http://127.0.0.1:${probes.port}`;
  const agentsUrl = `http://127.0.0.1:${running.agentPort}`;
  return { lines, close, probesUrl, agentsUrl, baseUrl: `http://127.0.0.1:${running.port}` };
}

function clientOf<S extends DescService>(service: S, baseUrl: string, headers: Headers): Client<S> {
  const sessionManager = new Http2SessionManager(baseUrl);
  ends.push(() => sessionManager.abort());
  const withHeaders: Interceptor = (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };
  const interceptors = [withHeaders];
  return createClient(service, createGrpcTransport({ baseUrl, sessionManager, interceptors }));
}

const as = (name: string) => ({ authorization: `Bearer token-${name}` });
const from = (chain: string) => ({ "x-forwarded-for": chain });

/** The results of calls: the number in progress, and the details of refused calls. */
interface Outcome {
  begun: number;
  readonly refused: Buffer[];
}

/** Call ListNodes `count` times without reading any response. */
function callUnread(session: ClientHttp2Session, count: number, outcome: Outcome): void {
  for (let call = 0; call < count; call += 1) {
    const stream = session.request({
      ":method": "POST",
      ":path": "/rollcall.registry.v1.RegistryService/ListNodes",
      "content-type": "application/grpc",
      te: "trailers",
      ...as("greedy"),
    });
    stream.on("error", () => {});
    stream.on("response", (headers) => {
      const details = headers["grpc-status-details-bin"];
      if (details === undefined) outcome.begun += 1;
      else outcome.refused.push(Buffer.from(String(details), "base64"));
    });
    stream.end(Buffer.from([0, 0, 0, 0, 0]));
    stream.pause();
  }
}

describe("many calls of one token with unread answers", () => {
  it("should be refused beyond its share without affecting other callers", async () => {
    const { baseUrl, probesUrl } = await start({ "Listen.CallsPerCaller": "32" });
    const modest = clientOf(RegistryService, baseUrl, as("modest"));
    for (const name of ["modest", "greedy"]) {
      await clientOf(RegistryService, baseUrl, as(name)).getClusterSummary({});
    }
    const outcome: Outcome = { begun: 0, refused: [] };
    for (let connection = 0; connection < 4; connection += 1) {
      // With a window of zero, no byte of a response is ever sent.
      const session = connect(baseUrl, { settings: { initialWindowSize: 0 } });
      session.on("error", () => {});
      ends.push(() => session.destroy());
      await new Promise((resolve) => session.once("remoteSettings", resolve));
      callUnread(session, 200, outcome);
    }
    // Other callers get responses during and after the flood.
    await modest.listNodes({});
    await until("all have been answered", () => outcome.refused.length + outcome.begun === 800);
    await modest.listNodes({});
    expect((await fetch(`${probesUrl}/readyz`)).status).toBe(200);
    // The server accepts the caller's share of calls. Each time it gives up on unread responses, it accepts the same
    // number again; how often that happens depends on the machine's speed. All other calls are refused.
    expect(outcome.refused.length).toBeGreaterThan(400);
    const get = () => outcome.refused.slice(0, 1);
    const error = errorFromGrpc({ code: 8, details: "", metadata: { get } });
    expect(describeError(error)).toMatchObject({
      reason: "TOO_MANY_CALLS",
      metadata: { actor: "token:greedy", limit: "32" },
      retryAfterMs: 1_000,
    });
  });
});

/** Hold a stream that any client can open. Returns "held", or the reason of the refusal. */
async function hold(baseUrl: string, headers: Headers): Promise<string | undefined> {
  const leaving = new AbortController();
  ends.push(() => leaving.abort());
  const watch = clientOf(GrpcHealth, baseUrl, headers).watch({}, { signal: leaving.signal });
  try {
    await watch[Symbol.asyncIterator]().next();
    return "held";
  } catch (error) {
    return describeError(error).reason;
  }
}

const FEW = { "Listen.CallsPerAddress": "2" };

describe("anonymous clients", () => {
  it("should be counted by address, whatever headers say, if no proxy is trusted", async () => {
    const { baseUrl, agentsUrl } = await start(FEW);
    expect(await hold(baseUrl, from("192.0.2.1"))).toBe("held");
    expect(await hold(baseUrl, from("192.0.2.2"))).toBe("held");
    expect(await hold(baseUrl, from("192.0.2.3"))).toBe("TOO_MANY_CALLS");
    // The limit is per process, whichever port is called.
    expect(await hold(agentsUrl, from("192.0.2.3"))).toBe("TOO_MANY_CALLS");
    // Authenticated callers are not counted against their address.
    const known = clientOf(RegistryService, baseUrl, as("modest"));
    await known.getClusterSummary({});
  });

  it("should count separately behind a trusted proxy, whatever headers they send", async () => {
    const { baseUrl, agentsUrl } = await start({ ...FEW, ...BEHIND_PROXY });
    expect(await hold(baseUrl, from("192.0.2.1"))).toBe("held");
    expect(await hold(agentsUrl, from("192.0.2.1, 10.9.8.7"))).toBe("held");
    expect(await hold(baseUrl, from("203.0.113.5, 192.0.2.1"))).toBe("TOO_MANY_CALLS");
    expect(await hold(agentsUrl, from("127.0.0.1, 192.0.2.1"))).toBe("TOO_MANY_CALLS");
    expect(await hold(baseUrl, from("192.0.2.1, 192.0.2.2"))).toBe("held");
    expect(await hold(baseUrl, { forwarded: "for=192.0.2.3" })).toBe("held");
  });

  it("should affect only themselves behind a trusted proxy, and be named in the audit log", async () => {
    const { baseUrl } = await start(BEHIND_PROXY);
    const attempt = async (token: string, address: string) => {
      const client = clientOf(AdminService, baseUrl, { ...as(token), ...from(address) });
      return (await refusalOf(client.approveNode({ node: "nobody" }))).reason;
    };
    for (let guess = 0; guess < 20; guess += 1) {
      expect(await attempt(`guess-${guess}`, "192.0.2.1")).toBe("TOKEN_INVALID");
    }
    await until("they are too many", async () => {
      return (await attempt("one-more", "192.0.2.1")) === "TOO_MANY_FAILURES";
    });
    expect(await attempt("a-typo", "192.0.2.2")).toBe("TOKEN_INVALID");
    expect(await attempt("modest", "192.0.2.3:4711")).toBe("NODE_NOT_FOUND");
    await eventually(async () => {
      const rows = await listAudit(database.store.db, { limit: 10, newestFirst: true });
      expect(rows.map(({ address }) => address)).toContain("192.0.2.3:4711");
    });
  });
});

describe("a registering node", () => {
  it("should be stored with the address from the trusted proxy, not with one that the caller sends", async () => {
    const { baseUrl } = await start(BEHIND_PROXY);
    const client = clientOf(RegistryService, baseUrl, from("203.0.113.5, 192.0.2.4:4711"));
    const { publicKey, privateKey } = generateKeyPair();
    const { nonce, clusterId } = await client.createChallenge({});
    const method = "/rollcall.registry.v1.RegistryService/RegisterNode";
    const signature = signProof(privateKey, proofText({ method, clusterId, nodeId: "proxied", nonce }));
    const request = { nodeId: "proxied", publicKey, proof: { nonce, signature }, info: { hostname: "h" } };
    expect((await client.registerNode(request)).node?.joinedFrom).toBe("192.0.2.4");
  });
});

describe("the log", () => {
  it("should log few lines for many anonymous calls, and each change or failed call of a known caller", async () => {
    const { baseUrl, agentsUrl, lines, close } = await start();
    const anonymous = clientOf(RegistryService, baseUrl, {});
    const known = clientOf(RegistryService, baseUrl, as("modest"));
    const nowhere = clientOf(RegistryService, agentsUrl, {});
    for (let call = 0; call < 30; call += 1) {
      expect((await refusalOf(anonymous.listNodes({}))).reason).toBe("TOKEN_MISSING");
      await anonymous.createChallenge({});
      await refusalOf(nowhere.listNodes({}));
      await fetch(`${baseUrl}/no.such.Service/Method`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: "{}",
      });
      await known.getNode({ node: "n1" });
      expect((await refusalOf(known.getNode({ node: "missing" }))).reason).toBe("NODE_NOT_FOUND");
    }
    await close();
    const calls = lines.filter(({ msg }) => msg === "call finished");
    const of = (what: Line) =>
      calls.filter((line) => Object.entries(what).every(([key, value]) => line[key] === value));
    expect(of({ reason: "TOKEN_MISSING" })).toHaveLength(5);
    // A challenge changes nothing, so its successful call is not logged.
    expect(of({ caller: "anonymous", code: "ok" })).toEqual([]);
    expect(of({ reason: "UNKNOWN_METHOD" }).length).toBeLessThanOrEqual(5);
    expect(of({ caller: "token:modest" })).toHaveLength(30);
    const left = lines.filter(({ msg }) => msg === "log lines about anonymous clients omitted");
    const leftOut = (reason: string) =>
      left
        .filter((line) => line.reason === reason && line.address === "127.0.0.1")
        .reduce((sum, line) => sum + Number(line.lines), 0);
    // The refusals are in one summary, or in two if a minute ended in between.
    expect(["TOKEN_MISSING", "UNKNOWN_METHOD"].map(leftOut)).toEqual([25, 25]);
  });
});
