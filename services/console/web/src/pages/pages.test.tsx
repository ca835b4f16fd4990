// The DOM comes first, because the pages need it when they are imported.
import { withDom } from "../testing/dom.ts";

// The modules under test.

import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AccessService, Role } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { HealthPolicyService } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import {
  EventService,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from "@rollcall/api/rollcall/events/v1/events_pb";
import { MembershipState, type Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  RegistryService,
  type WatchNodesResponse,
  WatchNodesResponseSchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import {
  JobService,
  type SubmitJobRequest,
  type WatchJobsResponse,
  WatchJobsResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { goTo } from "../app/address.ts";
import { App } from "../app/app.tsx";
import { queries } from "../live/queries.ts";
import { leave, openSession } from "../session/session.ts";
import { testNode } from "../state/nodes/testing/test-rows.ts";
import { FakeStream, serveInTests } from "../testing/fake-server.ts";
import { eventually, type Rendered, render } from "../testing/render.tsx";

withDom();

const CLUSTER = { clusterId: "c" };
const ADA = { case: "accessToken" as const, value: { id: "ada", name: "Ada" } };
const nodes = new Map<string, Node>();
const put = (node: Node) => nodes.set(node.id, node);
const upserted = (list: readonly Node[]) => list.map((value) => ({ change: { case: "upserted" as const, value } }));
const fleetStream = new FakeStream<WatchNodesResponse>(() => [
  create(WatchNodesResponseSchema, { changes: upserted([...nodes.values()].slice(0, 2)) }),
]);
const eventStream = new FakeStream<WatchEventsResponse>(() => [
  create(WatchEventsResponseSchema, { resumeToken: "t" }),
]);

const jobStream = new FakeStream<WatchJobsResponse>(() => [create(WatchJobsResponseSchema, { snapshotDone: true })]);
const submitted: SubmitJobRequest[] = [];

serveInTests((router) => {
  router.service(AccessService, {
    whoAmI: () => ({ ...CLUSTER, actor: "token:ada", role: Role.ADMIN, credential: ADA }),
  });
  router.service(RegistryService, {
    getClusterSummary: () => ({ ...CLUSTER, compute: { total: nodes.size, connected: nodes.size } }),
    getControlPlaneStatus: () => ({}),
    watchNodes: (_, { signal }) => fleetStream.read(signal),
  });
  router.service(HealthPolicyService, {
    listHealthPolicies: () => ({
      configuration: { unhealthyAfter: { seconds: 60n }, unknownAfter: { seconds: 300n } },
    }),
  });
  router.service(JobService, {
    watchJobs: (_, { signal }) => jobStream.read(signal),
    planJob: () => ({
      ...{ executions: [{ index: 0 }, { index: 1 }], waiting: 1, nodes: 4, version: 1, changed: true },
      refusals: [{ reason: "NO_ROOM", message: "not enough memory", nodes: 3 }],
    }),
    submitJob: (request) => {
      submitted.push(request);
      return { changed: true };
    },
  });
  router.service(EventService, {
    listEvents: () => ({}),
    watchEvents: (_, { signal }) => eventStream.read(signal),
  });
});

describe("the pages", () => {
  let page: Rendered;

  beforeAll(async () => {
    for (const id of ["alpha", "beta", "gamma"]) put(testNode(id, { zone: "z1" }));
    put(testNode("waiting", {}, { membership: { state: MembershipState.PENDING } }));
    page = render(<App />);
    await openSession();
  });

  afterAll(() => {
    leave(null);
    page.unmount();
    queries.clear();
  });

  it("should take the totals from the server while the fleet is loading", async () => {
    goTo("/nodes");
    await page.shows("loaded 2 of 4 nodes");
    fleetStream.send(
      create(WatchNodesResponseSchema, { changes: upserted([...nodes.values()].slice(2)), snapshotComplete: true }),
    );
    await page.shows("4 of 4 machines");
  });

  it("should count what a filter selects, and clear the filter again", async () => {
    goTo("/nodes?q=BETA");
    await page.shows("1 of 4 machines");
    expect(page.text()).not.toContain("gamma");
    await page.click("Clear");
    await page.shows("4 of 4 machines");
  });

  it("should not show a pending machine as eligible", async () => {
    goTo("/nodes?scheduling=eligible");
    await page.shows("3 of 4 machines");
    goTo("/nodes?approval=pending");
    await page.shows("1 of 4 machines");
    goTo("/nodes/waiting");
    await page.shows("Scheduling Not approved");
  });

  it("should keep the last valid filter while a selector is being typed", async () => {
    goTo("/nodes?q=beta");
    await page.shows("1 of 4 machines");
    await page.type("Label selector", "zone in (");
    const field = () => document.querySelector<HTMLInputElement>("[aria-label='Label selector']");
    await eventually("an error", () => field()?.getAttribute("aria-invalid") === "true" || undefined);
    expect(field()?.value).toBe("zone in (");
    expect(page.text()).toContain("1 of 4 machines");
  });

  it("should show changes of the fleet as they happen", async () => {
    goTo("/approvals");
    await page.shows("waiting");
    const approved = testNode("waiting");
    put(approved);
    fleetStream.send(create(WatchNodesResponseSchema, { changes: upserted([approved]) }));
    await page.shows("No machine is waiting");
  });

  it("should select nodes, and offer actions for exactly those", async () => {
    goTo("/nodes?q=alpha");
    await page.click("Select all nodes of this view");
    await page.shows("1 selected");
    goTo("/nodes?q=beta");
    await eventually("no selection", () => (page.text().includes("selected") ? undefined : true));
  });

  it("should say that there are no events only after the server has answered", async () => {
    goTo("/");
    await page.shows("No recent events");
  });

  it("should show one sentence for many events with the same cause, and people by name", async () => {
    goTo("/events");
    await page.shows("No matching events");
    const about = (subject: string, at: number) => ({
      ...{ id: `e${at}`, revision: BigInt(at), type: "node.health.changed", subject, actor: "token:ada" },
      ...{ time: { seconds: BigInt(1_000 + at) }, after: { health: "UNHEALTHY", evidence: { silentMs: 60_000 } } },
    });
    const list = [about("alpha", 1), about("beta", 2)];
    eventStream.send(create(WatchEventsResponseSchema, { events: list, resumeToken: "u" }));
    await page.shows("2 nodes became unhealthy: nothing received for 60 s beta alpha by Ada");
    const line = document.querySelector<HTMLElement>(".timeline .what");
    expect(line?.title).toBe("node.health.changed, token:ada, revision 2, e2");
  });

  it("should name the fields of a policy in words, with the unit and the inherited value", async () => {
    goTo("/policies");
    await page.click("Set a policy");
    await page.shows("Unhealthy after silence after which a node is UNHEALTHY (for example 90s or 5m)");
    await page.shows("GPU max temperature");
    expect(page.text()).not.toContain("unhealthyAfter");
    const field = (label: string) =>
      [...document.querySelectorAll("label")].find((one) => one.textContent === label)?.nextElementSibling;
    expect(field("Unhealthy after")?.getAttribute("placeholder")).toBe("inherited: 1m");
    expect(field("Unknown after")?.getAttribute("placeholder")).toBe("inherited: 5m");
    await page.type("Unhealthy after", "never");
    await page.shows("a duration, for example 90s or 5m");
  });

  it("should submit a job after a preview, and refuse text that is not a job", async () => {
    goTo("/jobs");
    await page.shows("No jobs");
    await page.click("Submit a job");
    await page.type("Edit as YAML", "name: web\ntype: service\ncout: 2\nprocess: {command: [a]}\n");
    await page.shows("cout");
    expect(await page.control("Submit")).toHaveProperty("disabled", true);
    await page.type("Edit as YAML", "name: web\ntype: service\nannotations: {team: a}\nprocess: {command: [a]}\n");
    await page.type("Cores", "many");
    await page.shows("a number, for example 0.5");
    expect(await page.control("Submit")).toHaveProperty("disabled", true);
    await page.type("Cores", "0.5");
    await page.type("Command", "sleep 60");
    await page.type("Count", "2");
    await page.click("Preview");
    await page.shows("Version 1: 2 executions ( 1 would wait); 4 nodes considered.");
    await page.shows("3 nodes: not enough memory no room");
    await page.type("Reason (optional)", "first");
    await page.click("Submit");
    await eventually("the job's page", () => window.location.pathname === "/jobs/web" || undefined);
    expect(submitted).toEqual([expect.objectContaining({ reason: "first", etag: "" })]);
    expect(submitted[0]?.spec).toMatchObject({
      ...{ name: "web", count: 2, annotations: { team: "a" }, resources: { millicores: 500 } },
      task: { case: "process", value: { command: ["sleep", "60"] } },
    });
  });

  it.each(["/", "/nodes", "/nodes/alpha", "/jobs", "/policies", "/drains?node=alpha"])(
    "should offer to copy one command on %s",
    async (path) => {
      goTo(path);
      await page.control("Copy as command");
      expect(page.element.querySelectorAll("[class*=copy-command]")).toHaveLength(1);
    },
  );

  it("should map the fleet by a label, and count each group", async () => {
    goTo("/nodes?view=map");
    await page.shows("Group by label zone zone z1 3 healthy without zone 1 healthy");
    goTo("/nodes");
  });

  it("should say that there is no such page", async () => {
    goTo("/nothing");
    await page.shows("Page not found");
    await page.click("Go to the overview");
    await page.shows("States of approved machines");
  });

  it("should open lists of the machines that the overview counts", async () => {
    goTo("/");
    await page.click("4 healthy");
    await page.shows("4 of 4 machines");
    expect(window.location.search).toBe("?approval=approved&health=healthy");
  });

  it("should close the navigation of a narrow screen when a page opens", async () => {
    await page.click("Navigation");
    const isOpen = () => document.querySelector("nav.open") !== null;
    await eventually("the navigation", () => isOpen() || undefined);
    goTo("/drains");
    await page.shows("No node is draining");
    expect(isOpen()).toBe(false);
  });
});
