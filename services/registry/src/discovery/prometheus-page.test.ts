import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createMetrics, silentLogger, systemClock } from "@rollcall/process";
import { createRpcServer, type RunningServer } from "@rollcall/rpc";
import { createAuthenticator, type Store, saveInfo } from "@rollcall/store";
import { addNode, createTestDatabase } from "@rollcall/testkit";
import { type Rig, startRig } from "../testing/rig.ts";
import { prometheusPage } from "./prometheus-page.ts";

interface Target {
  readonly targets: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

let rig: Rig;
let store: Store;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  ({ store } = rig);
  await addNode(store, "a1", { labels: { zone: "a", "example.com/rack-no": "7" } });
  await addNode(store, "b1", { labels: { zone: "b" } });
  await addNode(store, "waiting", { membership: "PENDING" });
  await addNode(store, "control", { type: "ORCHESTRATOR" });
  const interfaces = [
    { name: "lo", mac: "", addresses: ["127.0.0.1/8"], speedMbps: 0 },
    { name: "eth0", mac: "", addresses: ["fe80::1/64", "fd00::7/64", "10.0.0.7/24"], speedMbps: 0 },
  ];
  await inform("a1", { hostname: "a1.example", interfaces });
  await inform("b1", { hostname: "b1.example", advertiseUrl: "https://[2001:db8::7]:8443/x", interfaces });
});
afterAll(() => rig.close());

function inform(id: string, info: Record<string, unknown>): Promise<unknown> {
  const summary = { cores: 4, memoryBytes: 1, diskBytes: 1, gpus: 0 };
  const agentLabels = id === "a1" ? { zone: "a", "example.com/rack-no": "7" } : { zone: "b" };
  return store.transaction((tx) => saveInfo(tx, id, { info: info as never, digest: id, summary, agentLabels }));
}

function ask(query = "", method = "GET", token: string | null = rig.token): Promise<Response> {
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  return fetch(`${rig.baseUrl}/v1/prometheus/sd${query}`, { method, headers });
}

const read = async (query = "") => (await (await ask(query)).json()) as readonly Target[];

describe("/v1/prometheus/sd", () => {
  it("should have the approved compute nodes, with their facts and labels", async () => {
    const response = await ask();
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    const targets = (await response.json()) as readonly Target[];
    expect(targets.map((target) => target.targets)).toEqual([["10.0.0.7:9100"], ["[2001:db8::7]:9100"]]);
    expect(targets[0]?.labels).toMatchObject({
      __meta_rollcall_node_id: "a1",
      __meta_rollcall_address: "10.0.0.7",
      __meta_rollcall_membership: "APPROVED",
      __meta_rollcall_connection: "DISCONNECTED",
      __meta_rollcall_may_take_work: "false",
      __meta_rollcall_hostname: "a1.example",
      __meta_rollcall_label_zone: "a",
      __meta_rollcall_label_example_com_rack_no: "7",
      __meta_rollcall_labelpresent_example_com_rack_no: "true",
    });
    for (const { labels } of targets) {
      for (const name of Object.keys(labels)) expect(name).toMatch(/^__meta_rollcall_[a-z0-9_]+$/);
      expect(Object.values(labels)).not.toContain("");
    }
  });

  it("should choose by a selector, and take another port", async () => {
    const targets = await read(`?selector=${encodeURIComponent("zone in (b,c)")}&port=9400`);
    expect(targets.map((target) => target.targets)).toEqual([["[2001:db8::7]:9400"]]);
    expect(await read("?selector=zone%3Dnowhere")).toEqual([]);
  });

  it.each([
    ["INVALID_SELECTOR", "?selector=a+in"],
    ["INVALID_REQUEST", "?port=0"],
    ["INVALID_REQUEST", "?port=65536"],
    ["INVALID_REQUEST", "?port=1&port=2"],
    ["INVALID_REQUEST", "?seletor=a"],
  ])("should refuse with %s: %s", async (reason, query) => {
    const response = await ask(query);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(reason);
  });

  it.each([
    [401, "TOKEN_MISSING", null],
    [401, "TOKEN_INVALID", "wrong"],
  ])("should answer %d %s to anonymous clients", async (status, reason, token) => {
    const response = await ask("", "GET", token);
    expect(response.status).toBe(status);
    expect(await response.text()).toContain(reason);
  });

  it("should only be readable with GET", async () => {
    expect((await ask("", "POST")).status).toBe(405);
    expect((await ask("/more")).status).toBe(404);
  });

  it("should be measured like calls", async () => {
    const before = await rig.metrics.getSingleMetricAsString("rollcall_rpc_duration_seconds");
    expect(before).toContain('method="GET /v1/prometheus/sd",code="ok"');
  });
});

describe("prometheusPage()", () => {
  let server: RunningServer;
  afterAll(() => server.close());

  it("should refuse more than one response can hold, rather than return a part", async () => {
    const [log, metrics] = [silentLogger, createMetrics({ defaults: false })];
    server = await createRpcServer({
      ...{ host: "127.0.0.1", port: 0, routes: () => {}, services: [], policies: {}, log, metrics },
      pages: [prometheusPage({ store }, { mostBytes: 500 })],
      authenticate: createAuthenticator({ store, clock: systemClock }),
    });
    const headers = { authorization: `Bearer ${rig.token}` };
    const url = `http://127.0.0.1:${server.port}/v1/prometheus/sd`;
    const response = await fetch(url, { headers });
    expect(response.status).toBe(429);
    expect(await response.text()).toContain("TOO_MANY_TARGETS");
    expect(await (await fetch(`${url}?selector=zone%3Dnowhere`, { headers })).json()).toEqual([]);
  });
});
