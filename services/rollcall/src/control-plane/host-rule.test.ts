import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { hostname } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { silentLogger, systemClock } from "@rollcall/process";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { loadControlPlaneConfig } from "../config/control-plane-config.ts";
import { hostRule } from "./host-rule.ts";
import { openProbes, type Probes } from "./open-probes.ts";
import { planUp } from "./process-plan.ts";
import { type ControlPlane, startControlPlane } from "./start-control-plane.ts";

const FLAGS = {
  ...{ port: "0", "agent-port": "0", "probe-port": "0", "internal-port": "0" },
  "Listen.HostNames": "rollcall.example.org,*.fleet.test",
  "Health.AdvertiseAddress": "agents.example.org:443",
};
const CHALLENGE = `/${RegistryService.typeName}/${RegistryService.method.createChallenge.name}`;

let database: TestDatabase;
let probes: Probes;
let running: ControlPlane;
beforeAll(async () => {
  database = await createTestDatabase();
  const shell = { env: {}, cwd: "/" };
  const { values } = await loadControlPlaneConfig({ shell, file: undefined, flags: FLAGS });
  const plan = planUp(values);
  const shared = { plan, clock: systemClock, log: silentLogger };
  probes = await openProbes({ ...shared, hosts: hostRule(values, null) });
  const { store } = database;
  const { signal } = new AbortController();
  const options = { ...shared, config: values, store, probes, version: "9.9.9" };
  running = await startControlPlane(options, signal);
});
afterAll(async () => {
  await running.close();
  await probes.close();
  await database.drop();
});

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

const JSON_CALL: Sent = { headers: { "content-type": "application/json" }, body: "{}" };
/** An empty message in its envelope. */
const GRPC_BODY = "\0\0\0\0\0";
const GRPC_CALL: Sent = {
  headers: { "content-type": "application/grpc", te: "trailers" },
  body: GRPC_BODY,
};

async function over1(port: number, host: string, sent: Sent): Promise<Got> {
  const { method = "POST", path = CHALLENGE, headers = {}, body = "" } = sent;
  const request = http.request({
    ...{ host: "127.0.0.1", port, method, path, agent: false },
    headers: { ...headers, host },
  });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return { status: response.statusCode ?? 0, headers: response.headers, text };
}

async function over2(port: number, host: string, sent: Sent): Promise<Got> {
  const { method = "POST", path = CHALLENGE, headers = {}, body = "" } = sent;
  const session = http2.connect(`http://127.0.0.1:${port}`);
  try {
    const pseudo = { ":method": method, ":path": path, ":authority": host };
    const stream = session.request({ ...headers, ...pseudo }, { endStream: body === "" });
    let trailers = {};
    stream.on("trailers", (given) => {
      trailers = given;
    });
    if (body !== "") stream.end(body);
    const [answered] = await once(stream, "response");
    let text = "";
    for await (const chunk of stream.setEncoding("utf8")) text += chunk;
    const { ":status": status, ...more } = answered;
    return { status, headers: { ...more, ...trailers }, text };
  } finally {
    session.destroy();
  }
}

const BOTH = [
  ["HTTP/1.1", over1],
  ["HTTP/2", over2],
] as const;
const EVIL = "evil.example:7700";
const PAGE = { origin: "http://evil.example:7700" };

describe.each(BOTH)("the API over %s", (_, send) => {
  const call = (host: string, sent: Sent) => send(running.port, host, sent);

  it.each([
    ["a POST with an origin", { ...JSON_CALL, headers: { ...JSON_CALL.headers, ...PAGE } }],
    ["a GET", { method: "GET", path: `${CHALLENGE}?connect=v1&encoding=json&message=%7B%7D` }],
    ["a page", { method: "GET", path: "/" }],
    ["a preflight", { method: "OPTIONS", headers: { ...PAGE } }],
    [
      "a POST with Sec-Fetch-Site",
      { ...JSON_CALL, headers: { ...JSON_CALL.headers, "sec-fetch-site": "same-origin" } },
    ],
  ])("should refuse %s under a name that is not this server's, and say what to configure", async (__, sent) => {
    const { status, text } = await call(EVIL, sent);
    expect(status).toBe(403);
    const error = JSON.parse(text);
    expect(error.code).toBe("permission_denied");
    expect(error.message).toContain("Listen.HostNames");
    expect(JSON.stringify(error.details)).toContain("google.rpc.ErrorInfo");
  });

  it("should refuse a page's gRPC-Web with an error in that protocol", async () => {
    const headers = { "content-type": "application/grpc-web+proto", ...PAGE };
    const answer = await call(EVIL, { headers, body: GRPC_BODY });
    expect(answer).toMatchObject({ status: 200, headers: { "grpc-status": "7" } });
    const details = Buffer.from(String(answer.headers["grpc-status-details-bin"]), "base64");
    expect(details.toString("latin1")).toContain("HOST_NOT_ALLOWED");
  });

  it.each([
    "localhost:7700",
    "127.0.0.1",
    "[::1]:7700",
    "192.168.1.9:7700",
    hostname(),
    "rollcall.example.org",
    "a.b.fleet.test:7700",
    "agents.example.org",
  ])("should answer a page under %s", async (host) => {
    const headers = { ...JSON_CALL.headers, ...PAGE };
    expect((await call(host, { ...JSON_CALL, headers })).status).toBe(200);
    expect((await call(host, { method: "GET", path: "/" })).status).toBe(200);
  });

  it("should answer programs under any name", async () => {
    expect((await call("anything.example", JSON_CALL)).status).toBe(200);
  });
});

it("should answer gRPC under any name", async () => {
  for (const host of ["anything.example:1", "10.0.0.9:7700"]) {
    const answer = await over2(running.port, host, GRPC_CALL);
    expect(answer).toMatchObject({ status: 200, headers: { "grpc-status": "0" } });
  }
});

it("should show metrics under its own names alone, and be alive and ready under any", async () => {
  const ask = (host: string, path: string) =>
    over1(probes.port, host, { method: "GET", path }).then(({ status }) => status);
  expect(await ask("evil.example:7790", "/metrics")).toBe(403);
  expect(await ask("evil.example:7790", "/metrics?x")).toBe(403);
  expect(await ask("evil.example:7790", "/livez")).toBe(200);
  expect(await ask("evil.example:7790", "/readyz")).toBe(200);
  for (const host of ["localhost:7790", "10.0.0.9:7790", "rollcall.example.org", hostname()]) {
    expect(await ask(host, "/metrics")).toBe(200);
  }
  const { text } = await over1(probes.port, "localhost", { method: "GET", path: "/metrics" });
  expect(text).toMatch(/^rollcall_hosts_refused_total \d+$/m);
});

describe("hostRule()", () => {
  it("should follow the names of the certificate in use", () => {
    const tls = { hostNames: ["*.first.test"] };
    const config = {
      "Listen.Host": "127.0.0.1",
      "Listen.HostNames": [],
      "Health.AdvertiseAddress": undefined,
      "Listen.AdvertiseHost": undefined,
    };
    const rule = hostRule(config, tls);
    const asks = (authority: string) => rule({ method: "GET", authority, hasBrowserHeaders: true });
    expect([asks("a.first.test"), asks("a.second.test")]).toEqual([true, false]);
    tls.hostNames = ["a.second.test"];
    expect([asks("a.first.test"), asks("a.second.test")]).toEqual([false, true]);
  });
});
