import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import { FakeAgent } from "../../../libs/testkit/src/fake-agent.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { TestNode } from "../../../services/registry/src/testing/test-node.ts";
import type { RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import {
  adminToken,
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
/** What a machine or an operator may write anywhere; a page that took it for markup would open a dialog. */
const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>`;
/** Names of buttons that change something. */
const ACTION = new RegExp(
  `^(?:${[
    ...["Approve", "Reject", "Cordon", "Uncordon", "Drain", "Cancel", "Label", "Mark", "Clear mark", "Accept"],
    ...["Require", "Lift", "Ban", "Delete", "Revoke", "Make", "Set a", "Freeze", "Release", "Change", "Stop"],
    ...["Scale", "Restart", "Test", "More"],
  ].join("|")})\\b`,
);

/** The buttons of tables that are right of the window. */
const OUT_OF_SIGHT = `[...document.querySelectorAll("main table button")]
  .filter((button) => button.getBoundingClientRect().right > window.innerWidth)
  .map((button) => button.textContent)`;

const withChromium = HAS_CHROMIUM ? describe : describe.skip;

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

  /** Make a token of a viewer by the page for it. */
  async function makeViewer(): Promise<string> {
    const { page, context, misdeeds } = await openConsole(browser, origin, token);
    await page.goto(`${origin}/access`);
    await page.getByRole("button", { name: "Make a token" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("What it is for").fill(HOSTILE);
    await dialog.getByRole("button", { name: "Make a token" }).click();
    const text = await dialog.getByRole("region", { name: "The token" }).textContent();
    expect(misdeeds.found).toEqual([]);
    await context.close();
    return (text ?? "").trim();
  }

  /** Look at every page with axe, and at whether it is wider than the window. */
  async function look(theme: "light" | "dark", width: number): Promise<void> {
    const { page, context, misdeeds } = await openConsole(browser, origin, token, { theme, width });
    for (const path of [...PAGES, "/nodes/alpha", "/nodes/alpha?tab=hardware", "/nodes/alpha?tab=identity"]) {
      await page.goto(`${origin}${path}`);
      await untilLive(page);
      await page.locator("main h1").waitFor();
      await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
      expect({ path, theme, wrong: await seriousOf(page) }).toEqual({ path, theme, wrong: [] });
      const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - window.innerWidth");
      expect({ path, width, overflow: Math.max(0, overflow) }).toEqual({ path, width, overflow: 0 });
      // What can be done with a row is in sight with it.
      expect({ path, width, outOfSight: await page.evaluate(OUT_OF_SIGHT) }).toEqual({ path, width, outOfSight: [] });
    }
    await page.goto(`${origin}/nodes`);
    await page.getByLabel("Choose alpha").click();
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
    const stranger = await openPage(browser, origin, { theme, width });
    await stranger.page.goto(origin);
    await stranger.page.getByLabel("Access token").waitFor();
    expect({ theme, signIn: await seriousOf(stranger.page) }).toEqual({ theme, signIn: [] });
    await stranger.context.close();
  }

  it(
    "should approve by a key, take a decision back, reject with a reason, and show each as it happens",
    async () => {
      const { page, context, misdeeds } = await openConsole(browser, origin, token);
      await page.goto(`${origin}/approvals`);
      await page
        .getByRole("navigation", { name: "Machines that wait" })
        .getByRole("button", { name: /^alpha/ })
        .click();
      expect(new URL(page.url()).searchParams.get("node")).toBe("alpha");
      // From where it came: there, and in what is exported.
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
      await page.getByTestId("undoable").getByRole("button", { name: "Take back" }).click();
      await page.getByTestId("undoable").waitFor({ state: "detached" });
      await page
        .getByRole("navigation", { name: "Machines that wait" })
        .getByRole("button", { name: /^alpha/ })
        .click();
      await page.keyboard.press("a");
      await page.getByText("Approved alpha").waitFor();
      await page.getByRole("navigation", { name: "Machines that wait" }).getByRole("button", { name: /^beta/ }).click();
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
      await page.getByLabel("Choose alpha").click();
      await page.getByLabel("Choose gamma").click();
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
      await page.getByText("labels changed").first().waitFor();
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
        await page.getByText("This needs another role").waitFor();
      }
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should have nothing serious for axe to find, wide and narrow, light and dark",
    async () => {
      // Both at once: each is a process of the browser's own.
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
      // A page may take longer to load than a node may be silent.
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
      await jobs.click();
      await page.getByRole("heading", { name: "0 jobs" }).waitFor();
      await fixture.client.admin.setNodeLabels({ node: "gamma", set: { rack: "second" } });
      await page.goBack();
      await labels.getByText("second").waitFor();
      const watch = "**/rollcall.scheduler.v1.JobService/WatchJobs";
      await page.route(watch, (route) => route.abort());
      await jobs.click();
      await page.getByRole("alert").getByText("What is shown is stale").waitFor();
      await page.unroute(watch);
      await page.getByRole("alert").waitFor({ state: "detached" });
      await untilLive(page);
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should say that it is stale while the control plane is away, and go on by itself",
    async () => {
      const { page, context } = await openConsole(browser, origin, token);
      await page.goto(`${origin}/nodes/alpha`);
      await page.evaluate("window.sameDocument = true");
      await up.killed("SIGTERM");
      await page.getByRole("alert").getByText("What is shown is stale").waitFor();
      // Since when, relative and exactly.
      await page
        .getByRole("alert")
        .getByText(/since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d/)
        .waitFor();
      up = await fixture.up("--manual-approval", "--no-agent");
      // Before the page is back: it resumes where it was, so that this is not lost.
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
