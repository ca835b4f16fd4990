import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import { FakeAgent } from "../../../libs/testkit/src/fake-agent.ts";
import { needs } from "../../../libs/testkit/src/jest/needs.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { TestNode } from "../../../services/registry/src/testing/test-node.ts";
import type { RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import {
  adminToken,
  cellColors,
  HAS_CHROMIUM,
  openConsole,
  openPage,
  PAGES,
  seriousOf,
  startBrowser,
  untilLive,
} from "./console-browser.ts";

const LIMIT_MS = 600_000;
const BEAT_MS = 500;
/** A string that a machine or an operator could write anywhere. A page that used it as markup would open a dialog. */
const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>`;
/** The names of buttons that change something. */
const ACTION = new RegExp(
  `^(?:${[
    ...["Approve", "Reject", "Cordon", "Uncordon", "Drain", "Cancel", "Label", "Mark", "Clear mark", "Accept"],
    ...["Require", "Lift", "Ban", "Delete", "Revoke", "Make", "Set a", "Freeze", "Release", "Change", "Stop"],
    ...["Scale", "Restart", "Test", "More"],
  ].join("|")})\\b`,
);

/** A script that finds buttons of tables that lie outside the window on the right. */
const OUT_OF_SIGHT = `[...document.querySelectorAll("main table button")]
  .filter((button) => button.getBoundingClientRect().right > window.innerWidth)
  .map((button) => button.textContent)`;

const { describe: withChromium } = needs("chromium", HAS_CHROMIUM);

withChromium("the console's pages", () => {
  let fixture: UpFixture;
  let up: RollcallProcess;
  let browser: Browser;
  let origin: string;
  let token: string;

  beforeAll(async () => {
    fixture = await createUpFixture();
    up = await fixture.up("--manual-approval", "--no-agent");
    for (const name of ["alpha", "beta", "gamma"]) {
      await fixture.agent(name).logged("waiting for an operator's approval");
    }
    browser = await startBrowser();
    origin = `http://${fixture.server}`;
    token = adminToken(fixture.dataDirectory);
  }, LIMIT_MS);

  afterAll(async () => {
    await browser?.close();
    await fixture?.dispose();
  }, LIMIT_MS);

  const state = (page: Page, name: string) => page.getByTestId(`state-${name}`);

  /** Create a viewer's token with the page for tokens. */
  async function makeViewer(): Promise<string> {
    const { page, context, misdeeds } = await openConsole(browser, origin, token);
    await page.goto(`${origin}/access`);
    await page.getByRole("button", { name: "Create a token" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill(HOSTILE);
    await dialog.getByRole("button", { name: "Create a token" }).click();
    const text = await dialog.getByRole("region", { name: "The token" }).textContent();
    expect(misdeeds.found).toEqual([]);
    await context.close();
    return (text ?? "").trim();
  }

  /** Check every page with axe, and check that it is not wider than the window. */
  async function look(theme: "light" | "dark", width: number): Promise<void> {
    const { page, context, misdeeds } = await openConsole(browser, origin, token, { theme, width });
    for (const path of [...PAGES, "/nodes/alpha", "/nodes/alpha?tab=hardware", "/nodes/alpha?tab=identity"]) {
      await page.goto(`${origin}${path}`);
      await untilLive(page);
      await page.locator("main h1").waitFor();
      await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
      expect({ path, theme, wrong: await seriousOf(page) }).toEqual({ path, theme, wrong: [] });
      expect({ path, copies: await page.locator(".copy-command").count() }).toEqual({ path, copies: 1 });
      const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - window.innerWidth");
      expect({ path, width, overflow: Math.max(0, overflow) }).toEqual({ path, width, overflow: 0 });
      // If a row is visible, its actions must be visible, too.
      expect({ path, width, outOfSight: await page.evaluate(OUT_OF_SIGHT) }).toEqual({ path, width, outOfSight: [] });
    }
    await page.goto(`${origin}/nodes`);
    await page.getByLabel("Select alpha").click();
    await page.getByRole("toolbar").getByRole("button", { name: "Drain", exact: true }).click();
    await page.getByRole("dialog").getByLabel("Reason (optional)").waitFor();
    expect({ theme, dialog: await seriousOf(page) }).toEqual({ theme, dialog: [] });
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Page, node or command" }).waitFor();
    expect({ theme, palette: await seriousOf(page) }).toEqual({ theme, palette: [] });
    expect(misdeeds.found).toEqual([]);
    await context.close();
    const anonymous = await openPage(browser, origin, { theme, width });
    await anonymous.page.goto(origin);
    await anonymous.page.getByLabel("Access token").waitFor();
    expect({ theme, signIn: await seriousOf(anonymous.page) }).toEqual({ theme, signIn: [] });
    await anonymous.context.close();
  }

  it(
    "should approve by a key, take a decision back, reject with a reason, and show each as it happens",
    async () => {
      const { page, context, misdeeds } = await openConsole(browser, origin, token);
      await page.goto(`${origin}/approvals`);
      await page
        .getByRole("navigation", { name: "Waiting machines" })
        .getByRole("button", { name: /^alpha/ })
        .click();
      expect(new URL(page.url()).searchParams.get("node")).toBe("alpha");
      // This page and the export show the address that the call came from.
      await page.locator("dt", { hasText: /^From$/ }).waitFor();
      expect(await page.locator("dt:text-is('From') + dd").textContent()).toBe("127.0.0.1");
      await page.getByRole("button", { name: "Export" }).click();
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("menuitem", { name: "JSON" }).click(),
      ]);
      expect(JSON.parse(readFileSync(await file.path(), "utf8"))).toEqual(
        ["alpha", "beta", "gamma"].map((node) => expect.objectContaining({ node, from: "127.0.0.1" })),
      );
      await page.keyboard.press("a");
      await page.getByTestId("undoable").getByRole("button", { name: "Undo" }).click();
      await page.getByTestId("undoable").waitFor({ state: "detached" });
      await page
        .getByRole("navigation", { name: "Waiting machines" })
        .getByRole("button", { name: /^alpha/ })
        .click();
      await page.keyboard.press("a");
      await page.getByText("Approved alpha").waitFor();
      await page.getByRole("navigation", { name: "Waiting machines" }).getByRole("button", { name: /^beta/ }).click();
      await page.keyboard.press("r");
      await page.getByLabel("Reason").fill(HOSTILE);
      await page.getByRole("button", { name: "Reject beta" }).click();
      await page.getByText("Rejected beta").waitFor();
      await page.goto(`${origin}/approvals?node=gamma`);
      await page.locator("button[aria-current=true]", { hasText: "gamma" }).waitFor();
      await page.goto(`${origin}/nodes/alpha`);
      await state(page, "membership").getByText("Approved", { exact: true }).waitFor();
      await state(page, "scheduling").getByText("Eligible", { exact: true }).waitFor();
      await page.goto(`${origin}/nodes/beta`);
      await state(page, "membership").getByText("Rejected", { exact: true }).waitFor();
      await state(page, "membership").getByText(HOSTILE).waitFor();
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should show a machine that dies as DISCONNECTED, then UNHEALTHY, without being loaded again",
    async () => {
      const { page, context, misdeeds } = await openConsole(browser, origin, token);
      const doomed = fixture.agent("doomed");
      await doomed.logged("waiting for an operator's approval");
      await page.goto(`${origin}/nodes/doomed`);
      await state(page, "health").getByText("Healthy", { exact: true }).waitFor();
      await page.evaluate("window.sameDocument = true");
      await doomed.killed();
      await state(page, "connection").getByText("Disconnected", { exact: true }).waitFor();
      await state(page, "health").getByText("Unhealthy", { exact: true }).waitFor();
      expect(await page.evaluate("window.sameDocument")).toBe(true);
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should do one thing with many nodes, after a dry run that names them",
    async () => {
      const { page, context, misdeeds } = await openConsole(browser, origin, token);
      await page.goto(`${origin}/nodes`);
      await page.getByLabel("Select alpha").click();
      await page.getByLabel("Select gamma").click();
      await page.getByRole("toolbar").getByRole("button", { name: "Cordon", exact: true }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByTestId("named-nodes").getByText("gamma").waitFor();
      await dialog.getByLabel("Reason (optional)").fill("new disks");
      await dialog.getByText("rollcall node cordon alpha gamma -m 'new disks'").waitFor();
      await dialog.getByRole("button", { name: "Dry run" }).click();
      await dialog.getByText("2 accepted, 0 refused").waitFor();
      await dialog.getByRole("button", { name: "Cordon 2 nodes" }).click();
      await page.getByText("Cordon: done for 2 nodes").waitFor();
      await page.goto(`${origin}/nodes?scheduling=ineligible&sort=health`);
      await until("both nodes in the view", async () =>
        (await page.getByTestId("node-count").textContent())?.startsWith("2 of"),
      );
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should complete a selector and filter by it, with labels that look like markup shown as text",
    async () => {
      const { page, context, misdeeds } = await openConsole(browser, origin, token);
      await fixture.client.admin.setNodeLabels({ node: "alpha", set: { zone: "z1" }, reason: HOSTILE });
      await page.goto(`${origin}/nodes`);
      await page.getByRole("combobox", { name: "Label selector" }).fill("zone=");
      await page.getByRole("option", { name: /^z1/ }).click();
      await until("one node in the view", async () =>
        (await page.getByTestId("node-count").textContent())?.startsWith("1 of"),
      );
      expect(new URL(page.url()).searchParams.get("labels")).toBe("zone=z1");
      await page.goto(`${origin}/events?subject=alpha`);
      await page.getByText("has new labels: none -> zone=z1").first().waitFor();
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should draw a map of the fleet, and open the node whose cell is clicked",
    async () => {
      const { page, context, misdeeds } = await openConsole(browser, origin, token);
      await fixture.client.admin.setNodeLabels({ node: "alpha", set: { rack: "r1" } });
      await fixture.client.admin.setNodeLabels({ node: "gamma", set: { rack: "r1" } });
      await page.goto(`${origin}/nodes`);
      await page.getByRole("button", { name: "Map" }).click();
      await page.getByLabel("Group by label").selectOption("rack");
      const group = page.getByRole("region", { name: "rack r1" });
      const map = group.getByRole("img", { name: "rack r1: 1 not approved, 1 held" });
      await map.waitFor();
      await page.getByRole("region", { name: "without rack" }).waitFor();
      // Nodes of a group are in the order of their names: alpha, then gamma.
      const colors = await cellColors(page);
      expect(new Set(colors).size).toBe(3);
      await map.hover({ position: { x: 20, y: 6 } });
      await page.getByTitle("gamma: not approved").waitFor();
      await fixture.client.admin.uncordonNode({ node: "alpha" });
      await group.getByRole("img", { name: "rack r1: 1 not approved, 1 healthy" }).waitFor();
      await until("alpha's cell in another color", async () => (await cellColors(page))[0] !== colors[0]);
      expect(await seriousOf(page)).toEqual([]);
      await group.getByRole("img").click({ position: { x: 6, y: 6 } });
      await page.waitForURL(`${origin}/nodes/alpha`);
      await state(page, "scheduling").getByText("Eligible", { exact: true }).waitFor();
      await fixture.client.admin.cordonNode({ node: "alpha" });
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should offer a viewer no action",
    async () => {
      const text = await makeViewer();
      const { page, context, misdeeds } = await openConsole(browser, origin, text);
      await page.goto(`${origin}/nodes`);
      await page.getByRole("link", { name: "gamma" }).waitFor();
      expect(await page.getByRole("checkbox").count()).toBe(0);
      await page.goto(`${origin}/nodes/gamma`);
      await state(page, "membership").getByText("Pending", { exact: true }).waitFor();
      for (const name of ["Approve", "Reject", "More"]) {
        expect(await page.getByRole("button", { name, exact: true }).count()).toBe(0);
      }
      await page.goto(`${origin}/approvals`);
      await page.getByRole("link", { name: "gamma" }).waitFor();
      expect(await page.getByRole("button", { name: /Approve|Reject/ }).count()).toBe(0);
      expect(await page.getByRole("link", { name: "Audit" }).count()).toBe(0);
      const tabs = ["usage", "hardware", "work", "identity"].map((tab) => `/nodes/gamma?tab=${tab}`);
      for (const path of [...PAGES, ...tabs]) {
        await page.goto(`${origin}${path}`);
        await untilLive(page);
        await page.locator("main h1").waitFor();
        await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
        const offered = await page.locator("main").getByRole("button", { name: ACTION }).allTextContents();
        expect({ path, offered }).toEqual({ path, offered: [] });
      }
      for (const path of ["/audit", "/access", "/webhooks"]) {
        await page.goto(`${origin}${path}`);
        await page.getByText("Your role does not allow this").waitFor();
      }
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should have nothing serious for axe to find, wide and narrow, light and dark",
    async () => {
      // Check both at the same time, because each has its own browser process.
      await Promise.all([look("light", 1280), look("dark", 360)]);
    },
    LIMIT_MS,
  );

  it(
    "should chart what each GPU and each NUMA node does, as it tells it",
    async () => {
      const machine = new TestNode("numa-1");
      await machine.register(fixture.client.registry);
      const agent = new FakeAgent({ nodeId: machine.id, keyPair: machine.keyPair });
      const stream = await agent.join(fixture.agentsAddress);
      const usage = (cpuPercent: number) => ({
        cpuPercent,
        gpus: [{ index: 3, utilizationPercent: 71, memoryUsedMib: 1, memoryTotalMib: 4 }],
        numaNodes: [
          { id: 0, cpuPercent, memoryUsedMib: 1, memoryTotalMib: 5 },
          { id: 8, memoryUsedMib: 3, memoryTotalMib: 5 },
        ],
      });
      let cpuPercent = 31;
      await stream.beatAcknowledged(usage(cpuPercent));
      // Keep beating, because a page can take longer to load than a node may be silent.
      const beating = setInterval(() => stream.beat(usage(cpuPercent)), BEAT_MS);
      const { page, context, misdeeds } = await openConsole(browser, origin, token);
      await page.goto(`${origin}/nodes/numa-1?tab=usage`);
      const chart = (name: string) => page.getByRole("img", { name, exact: true }).waitFor();
      await page.getByRole("heading", { name: "NUMA node 0" }).waitFor();
      await chart("processors 31, memory 20 (%)");
      await chart("processors -, memory 60 (%)");
      await chart("busy 71, memory 25, temperature - (% and °C)");
      const before = await page.evaluate("performance.timeOrigin");
      cpuPercent = 92;
      await page.getByRole("img", { name: "processors 92, memory 20 (%)" }).waitFor();
      clearInterval(beating);
      expect(await page.evaluate("performance.timeOrigin")).toBe(before);
      expect(misdeeds.found).toEqual([]);
      agent.close();
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should show what changed while another page was shown, and say when a stream of one page is away",
    async () => {
      const { page, context, misdeeds } = await openConsole(browser, origin, token);
      const labels = page.getByRole("table").filter({ hasText: "Set by" });
      const jobs = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Jobs" });
      await fixture.client.admin.setNodeLabels({ node: "gamma", set: { rack: "first" } });
      await page.goto(`${origin}/nodes/gamma?tab=identity`);
      await labels.getByText("first").waitFor();
      await page.getByRole("definition").getByText("any server, in clear text").waitFor();
      await jobs.click();
      await page.getByRole("heading", { name: "0 jobs" }).waitFor();
      await fixture.client.admin.setNodeLabels({ node: "gamma", set: { rack: "second" } });
      await page.goBack();
      await labels.getByText("second").waitFor();
      const watch = "**/rollcall.scheduler.v1.JobService/WatchJobs";
      await page.route(watch, (route) => route.abort());
      await jobs.click();
      await page.getByRole("alert").getByText("Data may be stale").waitFor();
      await page.unroute(watch);
      await page.getByRole("alert").waitFor({ state: "detached" });
      await untilLive(page);
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should say that it is stale while the control plane is away, and continue automatically",
    async () => {
      const { page, context } = await openConsole(browser, origin, token);
      await page.goto(`${origin}/nodes/alpha`);
      await page.evaluate("window.sameDocument = true");
      await up.killed("SIGTERM");
      await page.getByRole("alert").getByText("Data may be stale").waitFor();
      // The alert shows when it began, as relative and as exact time.
      await page
        .getByRole("alert")
        .getByText(/since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d/)
        .waitFor();
      up = await fixture.up("--manual-approval", "--no-agent");
      // Make a change before the page reconnects. The page resumes at its last position, so it does not miss the
      // change.
      await fixture.client.admin.uncordonNode({ node: "alpha", reason: "while the page was away" });
      await page.getByRole("alert").waitFor({ state: "detached" });
      await untilLive(page);
      await state(page, "scheduling").getByText("Eligible", { exact: true }).waitFor();
      await page.getByText("while the page was away").first().waitFor();
      expect(await page.evaluate("window.sameDocument")).toBe(true);
      await context.close();
    },
    LIMIT_MS,
  );
});
