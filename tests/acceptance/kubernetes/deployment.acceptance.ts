import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, it, jest } from "@jest/globals";
import { needs } from "../../../libs/testkit/src/jest/needs.ts";
import { until } from "../../../libs/testkit/src/until.ts";
import { render, toolPath } from "../../../scripts/render-manifests.mjs";
import { statesOf } from "../../../services/rollcall/src/testing/control-plane-client.ts";
import { openSecureClients, type SecureClients } from "../../../services/rollcall/src/testing/secure-clients.ts";
import { manifestsIn, rendered } from "../../kubernetes/manifests.ts";
import { type ClientLoad, retrying, revisionsOf, startLoad } from "./client-load.ts";
import { ConsoleBrowser, readPage } from "./console-browser.ts";
import type { Pod } from "./pod.ts";
import { canMakePods } from "./pod-network.ts";
import { ADMIN_TOKEN, makeTestCluster, type TestCluster } from "./test-cluster.ts";

jest.setTimeout(400_000);

/** The layouts. For each service, a layout names the object that serves it in the manifests. */
const LAYOUTS = [
  {
    manifests: "rollcall.yaml",
    layout: "together",
    registry: "rollcall-api",
    admin: "rollcall-api",
    scheduler: "rollcall-api",
    readers: "rollcall-api",
    health: "rollcall-health",
    console: "rollcall-console",
  },
  {
    manifests: "rollcall-apart.yaml",
    layout: "apart",
    registry: "rollcall-registry",
    admin: "rollcall-admin",
    scheduler: "rollcall-scheduler",
    readers: "rollcall-health",
    health: "rollcall-health",
    console: "rollcall-console",
  },
] as const;
const NODES = ["worker-1", "worker-2", "worker-3"];
const WELL = "APPROVED CONNECTED HEALTHY";
const WAIT_MS = 120_000;
/** How long a page retries, according to the console's RetryInfo. */
const PAGE_WAIT_MS = 4_000;
/** One method of each service. The test calls it in the same way as the console's pages. */
const METHODS = [
  "rollcall.registry.v1.RegistryService/ListNodes",
  "rollcall.events.v1.EventService/ListEvents",
  "rollcall.events.v1.WebhookService/ListWebhooks",
  "rollcall.health.v1.HealthQueryService/ListNodeHealth",
  "rollcall.admin.v1.AccessService/WhoAmI",
  "rollcall.scheduler.v1.JobService/ListJobs",
];

const { describe: describeAsRoot } = needs("to run as root, and namespaces", canMakePods);
const hasHelm = spawnSync(toolPath("helm"), ["version"]).status === 0;
const { it: itWithHelm } = needs("helm", hasHelm);

// Runs the manifests of deploy/kubernetes. Each container is a process with its arguments, environment, files, user
// and address. There is one scenario for each layout.
describeAsRoot.each(LAYOUTS)("deploy/kubernetes/$manifests", ({ manifests, layout, ...places }) => {
  const owners = [...new Set(Object.values(places))];
  let cluster: TestCluster;
  let clients: SecureClients;
  const opened: SecureClients[] = [];
  let load: ClientLoad;
  let browser: ConsoleBrowser;
  const servers = new Map<string, Pod[]>();
  const agents = new Map<string, Pod>();

  const stateOf = async (id: string) => {
    const { nodes } = await retrying(() => clients.registry.listNodes({}));
    const node = nodes.find((it) => it.id === id);
    return node === undefined ? "absent" : statesOf(node);
  };
  const becomes = async (id: string, state: string) => {
    let seen = "";
    await until(
      `${id} to become ${state}`,
      async () => {
        seen = await stateOf(id);
        return seen === state;
      },
      WAIT_MS,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}; it is ${seen}:\n${agents.get(id)?.output}`);
    });
  };
  const staysHealthy = async (id: string) => {
    const { events } = await retrying(() => clients.events.listEvents({ subject: id, pageSize: 1_000 }));
    const changes = events.filter(({ type }) => type === "node.health.changed");
    if (changes.length === 1 && changes[0]?.after?.health === "HEALTHY") return;
    const told = changes.map(({ after, reason, message }) => `${String(after?.health)} ${reason} ${message}`);
    throw new Error([`${id} was ${told.join(", then ")}; its agent said:`, agents.get(id)?.output].join("\n"));
  };

  beforeAll(async () => {
    // The manifests are for users without Helm, so the pod of `helm test` comes from the chart.
    const hooks = hasHelm ? manifestsIn(render({ settings: [`layout=${layout}`] })) : [];
    const tests = hooks.filter(({ kind }) => kind === "Pod");
    cluster = await makeTestCluster([...manifestsIn(rendered(manifests)), ...tests]);
    cluster.misname("worker-3", "worker-2");
  });
  afterAll(async () => {
    for (const { close } of opened) close();
    await cluster?.dispose();
  });

  /** Create clients of each service at the addresses in the manifests. */
  function openClients(): SecureClients {
    const at = (service: string) => {
      const made = openSecureClients({
        baseUrl: `https://${cluster.addressOf(service)}:7700`,
        ca: cluster.ca,
        token: ADMIN_TOKEN,
        serverName: `${service}.rollcall.svc`,
      });
      opened.push(made);
      return made;
    };
    const { registry, events } = at(places.registry);
    const { admin, audit } = at(places.admin);
    const { health } = at(places.readers);
    const { jobs, close } = at(places.scheduler);
    return { registry, events, admin, audit, health, jobs, close };
  }

  const placeOf = (service: string) => ({
    address: cluster.addressOf(service),
    name: `${service}.rollcall.svc`,
    ca: cluster.ca,
  });
  /** Make calls as pages do. Retry if the console cannot reach a service. */
  const callAll = async () => {
    const calls = METHODS.map(async (method) => {
      const ask = async () => {
        const { status, text } = await browser.call(`/${method}`);
        if (text.includes("UPSTREAM_UNAVAILABLE")) throw new Error(text);
        return status === 200 ? "answered" : `${status} ${text}`;
      };
      return [method, await until(`an answer of ${method}`, ask, PAGE_WAIT_MS)];
    });
    return Object.fromEntries(await Promise.all(calls));
  };
  const answered = Object.fromEntries(METHODS.map((method) => [method, "answered"]));

  it("should migrate before the rollout", async () => {
    const jobs = manifestsIn(rendered(manifests)).filter(({ kind }) => kind === "Job");
    const job = await cluster.start(jobs[0]?.metadata.name ?? "", "worker-1");
    expect([await job.exit(), job.output]).toEqual([0, expect.stringContaining("the schema is up to date")]);
  });

  it("should become ready, two replicas of each service", async () => {
    for (const owner of owners) {
      const pods = await Promise.all(NODES.slice(0, 2).map((node) => cluster.start(owner, node)));
      servers.set(owner, pods);
    }
    await Promise.all([...servers.values()].flat().map((pod) => pod.ready()));
    clients = openClients();
    await until("each process to be a node", async () => {
      const { nodes } = await retrying(() => clients.registry.listNodes({}));
      return nodes.length === 2 * owners.length && nodes.every(({ id }) => id.split("-")[1] === "rollcall");
    });
  });

  it("should admit the machine that a pod's token names, and leave another one pending", async () => {
    for (const node of NODES) agents.set(node, await cluster.start("rollcall-agent", node));
    await becomes("worker-1", WELL);
    await becomes("worker-2", WELL);
    await becomes("worker-3", "PENDING CONNECTED HEALTHY");
    const { node } = await retrying(() => clients.registry.getNode({ node: "worker-1" }));
    expect(node?.membership).toMatchObject({
      reason: "SERVICE_ACCOUNT",
      actor: "service-account:rollcall/rollcall-agent",
    });
    expect(node?.labels.map(({ key, value }) => `${key}=${value}`)).toEqual([
      "kubernetes.io/arch=amd64",
      "topology.kubernetes.io/zone=zone-a",
    ]);
    await clients.admin.approveNode({ node: "worker-3", requestId: "approval" });
    await becomes("worker-3", WELL);
  });

  it("should serve the console's pages, and pass their calls on to every service", async () => {
    browser = new ConsoleBrowser(placeOf(places.console));
    expect(await browser.open("/nodes")).toMatchObject({
      status: 200,
      text: expect.stringMatching(/^<!doctype html>/i),
    });
    await browser.signIn(ADMIN_TOKEN);
    expect(await callAll()).toEqual(answered);
    expect((await browser.call("/rollcall.registry.v1.RegistryService/ListNodes")).text).toContain('"id":"worker-1"');
  });

  itWithHelm("should let the chart's test check every service", async () => {
    const test = await cluster.start("rollcall-test", "worker-1");
    await test.exit();
    for (const service of new Set([places.registry, places.admin, places.scheduler, places.readers]))
      expect(test.output).toMatch(new RegExp(`^address +https://${service}\\.rollcall\\.svc:7700.* ok `, "m"));
    expect(test.output).toMatch(new RegExp(`^processes +control plane +ok +${2 * owners.length} processes`, "m"));
    expect(test.output).not.toMatch(/ unknown /);
    // The Postgres of tests does not sync to disk, the certificate ends within a day, and a busy machine is slow.
    const ofRig = /^(certificate|postgres-settings|.*latency|log-lag|calls-wait) /;
    const problems = test.output.split("\n").filter((line) => line.includes(" problem ") && !ofRig.test(line));
    expect(problems).toEqual([]);
  });

  it("should tell Prometheus the machines, and describe the API, where routes lead", async () => {
    const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const targets = await readPage(placeOf(places.registry), "/v1/prometheus/sd", bearer);
    expect([targets.status, JSON.parse(targets.text)]).toEqual([
      200,
      expect.arrayContaining([
        expect.objectContaining({ labels: expect.objectContaining({ __meta_rollcall_node_id: "worker-1" }) }),
      ]),
    ]);
    expect((await readPage(placeOf(places.registry), "/v1/prometheus/sd")).status).toBe(401);
    for (const path of ["/openapi.json", "/docs/api"]) {
      const page = await readPage(placeOf(places.registry), path);
      expect([path, page.status, page.text]).toEqual([path, 200, expect.stringContaining("RegistryService")]);
    }
  });

  it("should start to serve clients that read, change and watch", async () => {
    load = startLoad(clients, "worker-1");
    await until("calls", () => load.calls > 20, WAIT_MS);
  });

  it.each(owners)("should be restarted without a failed call or a node declared unhealthy: %s", async (owner) => {
    const ends: Promise<readonly [name: string, end: number | string]>[] = [];
    for (const old of servers.get(owner) ?? []) {
      const next = await cluster.start(owner, "worker-3");
      await next.ready();
      // Do not wait here, because a Deployment does not wait for pods that are terminating.
      ends.push(old.terminate().then((end) => [old.name, end]));
    }
    for (const end of await Promise.all(ends)) expect(end).toEqual([expect.any(String), 0]);
    for (const node of NODES) await becomes(node, WELL);
    expect(load.failures).toEqual([]);
    for (const node of NODES) await staysHealthy(node);
  });

  it("should still know the browser's session", async () => {
    expect(await callAll()).toEqual(answered);
  });

  it("should have lost no event", async () => {
    const before = load.calls;
    await until("further calls", () => load.calls > before + 20, WAIT_MS);
    const watched = await load.stop();
    expect(load.failures).toEqual([]);
    expect(watched).toEqual(await revisionsOf(clients));
  });

  it("should know the machine of an agent that is restarted", async () => {
    expect(await agents.get("worker-2")?.terminate()).toBe(0);
    await becomes("worker-2", "APPROVED DISCONNECTED UNHEALTHY");
    agents.set("worker-2", await cluster.start("rollcall-agent", "worker-2"));
    await becomes("worker-2", WELL);
  });
});
