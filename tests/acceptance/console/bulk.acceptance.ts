import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Browser } from "playwright-core";
import { MembershipState } from "../../../libs/api/src/gen/rollcall/node/v1/node_pb.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { TestNode } from "../../../services/registry/src/testing/test-node.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import { adminToken, HAS_CHROMIUM, openConsole, startBrowser } from "./console-browser.ts";

const LIMIT_MS = 240_000;
const MANY = 1_000;
/** Registrations at a time: fewer than one address may have under way. */
const AT_A_TIME = 10;

const withChromium = HAS_CHROMIUM ? describe : describe.skip;

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
      await page.getByLabel("Choose all nodes of this view").click();
      await page.getByText("1,000 chosen").waitFor();
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
      // The view follows without being loaded again: none waits any more.
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
});
