import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Browser, CDPSession, Page } from "playwright-core";
import type { Bench, BenchContext } from "../bench-context.ts";
import { changeFleet } from "../load/console/changing-fleet.ts";
import { countBytes, openPage, startBrowser, type Usage, useList } from "../load/console/driven-page.ts";
import { serveStaticTable } from "../load/console/static-table.ts";
import { type Figure, percentile } from "../report.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { createAccessToken, startDatabase } from "../servers/database.ts";
import { freePorts, portFlags, ROLLCALL_PROGRAM } from "../servers/rollcall.ts";
import { ServerProcess } from "../servers/server-process.ts";

const CHANGES_A_SECOND = 200;
const KIB = 1_024;
const MIB = 1_024 ** 2;
const AIM = { firstLoadKib: 200, tableMs: 1_000, toPaintMs: 100, mainThread: 0.5 };
/** What never changes says nothing new after that. */
const MOST_BOUND_MS = 20_000;
const POLL_MS = 20;
const LONGEST_SIGN_IN_MS = 90_000;

/** A browser that shows a large fleet which changes. */
export const consoleBench: Bench = {
  name: "console",
  title: "the list of nodes in Chromium, while nodes change",
  async run(context) {
    const { nodes, durationMs } = context.size;
    const { url } = await startDatabase(context);
    // The machine that all runs on is one more: together they are what a page may keep.
    const seeded = nodes - 1;
    await seedNodes({ url, count: seeded, identities: false });
    const token = await createAccessToken(url);
    const port = await startUp(context, url);
    context.progress(`${nodes} nodes seeded, rollcall up serves`);
    const browser = await startBrowser();
    context.atEnd(() => browser.close());

    const bound = await measureBound(context, browser);
    context.progress("the page that bounds it is measured");
    const { page, cdp } = await openPage(browser);
    const bytes = await countBytes(cdp);
    await page.goto(`http://127.0.0.1:${port}/nodes`);
    await page.getByLabel("Access token").fill(token);
    await page.waitForLoadState("networkidle");
    const firstLoadKib = bytes() / KIB;
    const table = await signIn(page, cdp, seeded);
    context.progress("the table is shown");
    const fleet = await changeFleet({ port, token, nodes: seeded, rate: CHANGES_A_SECOND });
    context.atEnd(() => fleet.stop());
    const begin = performance.now();
    const used = await useList(browser, page, cdp, durationMs);
    const rate = fleet.changes / ((performance.now() - begin) / 1_000);
    await fleet.stop();
    return [
      { figure: "first load", measured: firstLoadKib, unit: "KiB", ...aim(AIM.firstLoadKib) },
      { figure: "first rows after sign-in", measured: table.firstRowsMs, unit: "ms", ...aim(AIM.tableMs) },
      {
        ...{ figure: "all nodes after sign-in", measured: table.allMs, unit: "ms" },
        ...{ against: "first rows", beside: table.firstRowsMs, target: "" },
      },
      ...figuresOf(used, bound),
      { figure: "nodes changed", measured: rate, unit: "/s", against: "wanted", beside: CHANGES_A_SECOND, target: "" },
    ];
  },
};

function aim(beside: number) {
  return { against: "aim", beside, target: "1 or less" };
}

function figuresOf(used: Usage, bound: Usage): readonly Figure[] {
  const p95 = percentile(used.toPaintMs, 0.95);
  const drift = (used.heapBytes[1] - used.heapBytes[0]) / MIB;
  const beside = { against: "rows that never change", target: "" };
  return [
    { figure: "interaction to next paint, p95", measured: p95, unit: "ms", ...aim(AIM.toPaintMs) },
    {
      ...{ figure: "interaction to next paint, p95", measured: p95, unit: "ms", ...beside },
      beside: percentile(bound.toPaintMs, 0.95),
    },
    { figure: "main thread busy", measured: used.mainThread, unit: "cores", ...aim(AIM.mainThread) },
    { figure: "main thread busy", measured: used.mainThread, unit: "cores", ...beside, beside: bound.mainThread },
    {
      ...{ figure: "JavaScript heap at the end", measured: used.heapBytes[1] / MIB, unit: "MiB" },
      ...{ against: "at the beginning", beside: used.heapBytes[0] / MIB, target: "1, steady" },
    },
    {
      ...{ figure: "drift of the heap", measured: drift, unit: "MiB", ...beside },
      beside: (bound.heapBytes[1] - bound.heapBytes[0]) / MIB,
    },
  ];
}

async function measureBound(context: BenchContext, browser: Browser): Promise<Usage> {
  const table = await serveStaticTable(context.size.nodes);
  const { page, cdp }: { readonly page: Page; readonly cdp: CDPSession } = await openPage(browser);
  try {
    await page.goto(`${table.origin}/nodes`);
    return await useList(browser, page, cdp, Math.min(context.size.durationMs, MOST_BOUND_MS));
  } finally {
    await page.context().close();
    await table.close();
  }
}

/** Sign in, and wait for the first rows and for the last: milliseconds from the click. */
async function signIn(
  page: Page,
  cdp: CDPSession,
  nodes: number,
): Promise<{ readonly firstRowsMs: number; readonly allMs: number }> {
  await page.addInitScript({ content: tellWhenShown(nodes) });
  const begin = Date.now();
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  for (;;) {
    // By the debugger itself: the page's policy forbids scripts that are made of texts.
    const { result } = await cdp
      .send("Runtime.evaluate", { expression: "globalThis.shown ?? {}", returnByValue: true })
      // The page is loaded again in between.
      .catch(() => ({ result: { value: {} } }));
    const { first, all } = result.value as { readonly first?: number; readonly all?: number };
    if (first !== undefined && all !== undefined) return { firstRowsMs: first - begin, allMs: all - begin };
    if (Date.now() - begin > LONGEST_SIGN_IN_MS) throw new Error(`not all of ${nodes} nodes are shown`);
    await delay(POLL_MS);
  }
}

/** A script that looks in each frame what is shown, until all is. */
function tellWhenShown(nodes: number): string {
  return `(() => {
    const shown = globalThis.shown = {};
    const look = () => {
      if (document.querySelector('[data-testid=nodes-scroll] [role=row] a') !== null) shown.first ??= Date.now();
      const count = document.querySelector('[data-testid=node-count]')?.textContent ?? "";
      if (parseInt(count.replaceAll(",", ""), 10) >= ${nodes} && !count.includes("coming")) shown.all = Date.now();
      else requestAnimationFrame(look);
    };
    look();
  })()`;
}

/** Start `rollcall up` over the record; the port of its API and pages. */
async function startUp(context: BenchContext, databaseUrl: string): Promise<number> {
  const ports = await freePorts();
  const server = await ServerProcess.start({
    program: ROLLCALL_PROGRAM,
    args: ["up", "--data-dir", join(context.directory, "data"), ...portFlags(ports, true)],
    env: { DATABASE_URL: databaseUrl },
    port: ports.api,
    logFile: join(context.directory, "up.log"),
  });
  context.atEnd(() => server.stop());
  return ports.api;
}
