import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Browser } from "playwright-core";
import { MembershipState } from "../../../libs/api/src/gen/rollcall/node/v1/node_pb.ts";
import { needs } from "../../../libs/testkit/src/jest/needs.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { TestNode } from "../../../services/registry/src/testing/test-node.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import { adminToken, HAS_CHROMIUM, openConsole, startBrowser } from "./console-browser.ts";

const LIMIT_MS = 600_000;
const MANY = 1_000;
/** The number of drained nodes. It is more than the page Drains shows initially. */
const DRAINED = 700;
/** The number of concurrent registrations. It is less than the limit for one address. */
const AT_A_TIME = 10;

const { describe: withChromium } = needs("chromium", HAS_CHROMIUM);

withChromium("the console with a thousand nodes that wait", () => {
  let fixture: UpFixture;
  let browser: Browser;
  const ids = Array.from({ length: MANY }, (_, index) => `n-${String(index).padStart(4, "0")}`);

  beforeAll(async () => {
    fixture = await createUpFixture();
    await fixture.up("--manual-approval", "--no-agent");
    const { registry } = fixture.client;
    const left = [...ids];
    const join = async () => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) await new TestNode(id).register(registry);
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, join));
    browser = await startBrowser();
  }, LIMIT_MS);

  afterAll(async () => {
    await browser?.close();
    await fixture?.dispose();
  }, LIMIT_MS);

  async function approved(): Promise<number> {
    const { nodes, nextPageToken } = await fixture.client.registry.listNodes({ pageSize: 1_000 });
    const more = nextPageToken === "" ? [] : (await nextPage(nextPageToken)).nodes;
    return [...nodes, ...more].filter(
      ({ id, membership }) => id.startsWith("n-") && membership?.state === MembershipState.APPROVED,
    ).length;
  }

  const nextPage = (pageToken: string) => fixture.client.registry.listNodes({ pageSize: 1_000, pageToken });

  it(
    "should approve them all at once, after a dry run that changes nothing and a question that names each",
    async () => {
      const origin = `http://${fixture.server}`;
      const { page, context, misdeeds } = await openConsole(browser, origin, adminToken(fixture.dataDirectory));
      await page.goto(`${origin}/nodes?approval=pending`);
      await until("all of them in the view", async () =>
        (await page.getByTestId("node-count").textContent())?.startsWith("1,000 of"),
      );
      await page.getByLabel("Select all nodes of this view").click();
      await page.getByText("1,000 selected").waitFor();
      await page.getByRole("toolbar").getByRole("button", { name: "Approve", exact: true }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("button", { name: "and 988 more" }).click();
      const named = await dialog.getByTestId("named-nodes").locator(".chip").allTextContents();
      expect([...named].sort()).toEqual(ids);
      await dialog.getByRole("button", { name: "Dry run" }).click();
      await dialog.getByText("1,000 accepted, 0 refused").waitFor();
      expect(await approved()).toBe(0);
      await dialog.getByRole("button", { name: "Approve 1,000 nodes" }).click();
      await page.getByText("Approve: done for 1000 nodes").waitFor();
      expect(await approved()).toBe(MANY);
      // The view updates without a reload and shows no pending nodes.
      await until("an empty view", async () =>
        (await page.getByTestId("node-count").textContent())?.startsWith("0 of"),
      );
      await page.goto(`${origin}/nodes?approval=approved&type=compute`);
      await until("all of them approved", async () =>
        (await page.getByTestId("node-count").textContent())?.startsWith("1,000 of"),
      );
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should show a fleet that is too large to be kept whole by lists, counts and searches of the server, live",
    async () => {
      const origin = `http://${fixture.server}`;
      const bearer = adminToken(fixture.dataDirectory);
      const { page, context, misdeeds } = await openConsole(browser, origin, bearer, { mostNodes: 400 });
      const counted = page.getByTestId("node-count");
      const reads = (words: string) => until(words, async () => (await counted.textContent()) === words);
      await page.goto(`${origin}/nodes`);
      // Only the first pages are loaded before the user scrolls.
      await until("the first piece", async () =>
        /^loaded [12]00 of 1,000 machines; scroll/.test((await counted.textContent()) ?? ""),
      );
      await page.getByTestId("nodes-scroll").evaluate("(list) => list.scrollTo(0, list.scrollHeight)");
      await reads("loaded 300 of 1,000 machines; scroll to load more");
      // The server also searches nodes that the page has not loaded.
      await page.getByLabel("Search in names, labels and models").pressSequentially("N-0987");
      await reads("1 of 1,000 machines");
      await page.getByRole("link", { name: "n-0987" }).waitFor();
      // The row changes immediately, and disappears from a view that it no longer matches.
      await page.goto(`${origin}/nodes?q=n-0987&scheduling=eligible`);
      await page.getByRole("link", { name: "n-0987" }).waitFor();
      await page.evaluate("window.sameDocument = true");
      const { admin } = fixture.client;
      await admin.cordonNode({ node: "n-0987", reason: "new disks" });
      await page.getByRole("link", { name: "n-0987" }).waitFor({ state: "detached" });
      await admin.uncordonNode({ node: "n-0987" });
      await page.getByRole("link", { name: "n-0987" }).waitFor();
      expect(await page.evaluate("window.sameDocument")).toBe(true);
      await admin.setNodeLabels({ node: "n-0500", set: { zone: "z9" } });
      await page.goto(`${origin}/nodes?sort=id&desc=1`);
      await page.getByRole("link", { name: "n-0999" }).waitFor();
      await page.getByRole("combobox", { name: "Label selector" }).fill("zone=");
      await page.getByRole("option", { name: /^z9/ }).click();
      await reads("1 of 1,000 machines");
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Page, node or command" }).fill("n-0444");
      await page.getByRole("option", { name: /^n-0444/ }).click();
      await page.getByTestId("state-membership").getByText("Approved", { exact: true }).waitFor();
      await page.goto(`${origin}/`);
      await page.getByText("of 1,000 approved").waitFor();
      await page.goto(`${origin}/control-plane`);
      await page.getByRole("table").first().getByRole("link").first().waitFor();
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );

  it(
    "should show every drain of such a fleet, and find likely duplicates in all of it",
    async () => {
      const origin = `http://${fixture.server}`;
      const bearer = adminToken(fixture.dataDirectory);
      const { registry, admin } = fixture.client;
      // Split the nodes, because a selector can name at most 500 of them. Each node takes several statements of the
      // store, so such a call can take longer than the client allows for one node.
      const patient = { timeoutMs: LIMIT_MS };
      await admin.drainNode({ selector: { nodes: ids.slice(0, 500) }, reason: "new disks" }, patient);
      await admin.drainNode({ selector: { nodes: ids.slice(500, DRAINED) }, reason: "new disks" }, patient);
      const interfaces = [{ name: "eth0", mac: "02:42:ac:11:00:02" }];
      await new TestNode("known").register(registry, { hostname: "rack-1", interfaces });
      await admin.approveNode({ node: "known" });
      await new TestNode("named").register(registry, { hostname: "rack-2" });
      await admin.approveNode({ node: "named" });
      await new TestNode("again").register(registry, { hostname: "rack-2", interfaces });
      const { page, context, misdeeds } = await openConsole(browser, origin, bearer, { mostNodes: 800 });
      await page.goto(`${origin}/drains`);
      await page.getByRole("heading", { name: `${DRAINED} nodes` }).waitFor();
      const rows = page.getByRole("region", { name: "Drains" }).getByRole("row");
      await until("those that are shown at first", async () => (await rows.count()) === 501);
      await page.getByRole("button", { name: "Show more" }).click();
      await until("all of them", async () => (await rows.count()) === DRAINED + 1);
      await page.getByRole("button", { name: "Show more" }).waitFor({ state: "detached" });
      await page.goto(`${origin}/approvals`);
      await page.getByText("known: same hardware address 02:42:ac:11:00:02").waitFor();
      await page.getByText("named: same host name rack-2").waitFor();
      expect(misdeeds.found).toEqual([]);
      await context.close();
    },
    LIMIT_MS,
  );
});
