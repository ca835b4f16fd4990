import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { KubernetesLabels, kubernetesAccess } from "./kubernetes-labels.ts";

const LABELS: Record<string, string> = {
  "kubernetes.io/arch": "amd64",
  "node.kubernetes.io/instance-type": "m5.large",
  "rollcall.io/group": "stolen",
  "topology.kubernetes.io/region": "eu",
  "topology.kubernetes.io/zone": "eu-1",
};
const authority = new TestAuthority();
const dir = mkdtempSync(join(tmpdir(), "rollcall-kubernetes-"));
const tokenFile = join(dir, "token");
let server: Server;
let port: number;
let requests: string[];
let answers: (readonly [number, unknown])[];

beforeAll(async () => {
  writeFileSync(tokenFile, "a-token\n");
  const { certPem, keyPem } = authority.issue({ usage: "server", names: ["127.0.0.1"] });
  server = createServer({ cert: certPem, key: keyPem }, (request, response) => {
    requests.push(`${request.url} ${request.headers.authorization}`);
    const [status, body] = answers.length > 1 ? (answers.shift() ?? [500, {}]) : (answers[0] ?? [500, {}]);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
});
afterAll(async () => {
  server.close();
  rmSync(dir, { recursive: true });
  rmSync(authority.dir, { recursive: true });
});
beforeEach(() => {
  requests = [];
  answers = [[200, { kind: "Node", metadata: { labels: LABELS } }]];
});

const pauses: number[] = [];
function labelsOf(keys: readonly string[], own: Readonly<Record<string, string>> = {}) {
  return new KubernetesLabels({
    ...{ node: "worker-1", keys, own, tokenFile, caFile: authority.caFile },
    server: new URL(`https://127.0.0.1:${port}`),
    clock: { sleep: async (ms) => void pauses.push(ms) },
    log: silentLogger,
  });
}

async function read(...of: Parameters<typeof labelsOf>) {
  const labels = labelsOf(...of);
  await labels.begin();
  return labels.labels;
}

describe("KubernetesLabels", () => {
  it("should read the matching labels, with the token of the pod's account", async () => {
    expect(await read(["kubernetes.io/arch", "topology.kubernetes.io/*"])).toEqual({
      "kubernetes.io/arch": "amd64",
      "topology.kubernetes.io/region": "eu",
      "topology.kubernetes.io/zone": "eu-1",
    });
    expect(requests).toEqual(["/api/v1/nodes/worker-1 Bearer a-token"]);
  });

  it("should ignore labels reserved for the control plane, and prefer configured ones", async () => {
    const own = { "kubernetes.io/arch": "mine", rack: "7" };
    const taken = await read(["*"], own);
    expect(taken).toMatchObject(own);
    expect(taken["rollcall.io/group"]).toBeUndefined();
  });

  it("should take no more labels than a node can have", async () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`label-${index}`, "x"]));
    answers = [[200, { kind: "Node", metadata: { labels: many } }]];
    expect(Object.keys(await read(["*"], { rack: "7", row: "3" }))).toHaveLength(64);
  });

  it("should keep retrying after the agent has started without them, at most once a minute", async () => {
    answers = [
      ...Array.from({ length: 12 }, () => [503, {}] as const),
      [200, { kind: "Node", metadata: { labels: LABELS } }],
    ];
    pauses.length = 0;
    const labels = labelsOf(["kubernetes.io/arch"], { rack: "7" });
    await labels.begin();
    expect(labels.labels).toEqual({ rack: "7" });
    await labels.task.run(new AbortController().signal, () => {});
    expect(labels.labels).toEqual({ "kubernetes.io/arch": "amd64", rack: "7" });
    expect(pauses.slice(3)).toEqual([2_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  });

  it("should retry, then start without them", async () => {
    answers = [
      [503, {}],
      [200, { kind: "Status" }],
      [200, { kind: "Node", metadata: { labels: LABELS } }],
    ];
    expect(await read(["kubernetes.io/arch"])).toEqual({ "kubernetes.io/arch": "amd64" });
    answers = [[403, { kind: "Status" }]];
    requests = [];
    expect(await read(["*"], { rack: "7" })).toEqual({ rack: "7" });
    expect(requests).toHaveLength(5);
  });
});

describe("kubernetesAccess()", () => {
  it.each([
    [{ KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "6443" }, "https://10.96.0.1:6443/"],
    [{ KUBERNETES_SERVICE_HOST: "fd00::1" }, "https://[fd00::1]/"],
  ])("should find the server of %j", (env, url) => {
    expect(kubernetesAccess(env)?.server.href).toBe(url);
  });

  it("should find none outside a cluster", () => {
    expect(kubernetesAccess({})).toBeNull();
  });
});
