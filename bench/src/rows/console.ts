import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Browser, CDPSession, Page } from "playwright-core";
import type { Bench, BenchContext } from "../bench-context.ts";
import { changeFleet } from "../load/console/changing-fleet.ts";
import { countBytes, openPage, startBrowser, type Usage, useList, watchMap } from "../load/console/driven-page.ts";
import { serveStaticTable } from "../load/console/static-table.ts";
import { type Figure, percentile } from "../report.ts";
import { seedNodes } from "../seeds/seed-nodes.ts";
import { createAccessToken, startDatabase } from "../servers/database.ts";
import { freePorts, portFlags, ROLLCALL_PROGRAM } from "../servers/rollcall.ts";
import { ServerProcess } from "../servers/server-process.ts";

const CHANGES_A_SECOND = 200;
const KIB = 1_024;
const MIB = 1_024 ** 2;
const AIM = { firstLoadKib: 200, tableMs: 1_000, toPaintMs: 100, mainThread: 0.5, taskMs: 50 };
/** How many nodes the map shows. */
const CELLS = 10_000;
/** The nodes are in as many zones, in turn. */
const ZONES = 10;
/** How long the page that never changes is measured. After this time, it shows nothing new. */
const MOST_BOUND_MS = 20_000;
const POLL_MS = 20;
const LONGEST_SIGN_IN_MS = 90_000;

/** Measures a browser that shows a large fleet while the fleet changes. */
export const consoleBench: Bench = {
  name: "console",
  title: "the list of nodes in Chromium, while nodes change",
  async run(context) {
    const { nodes, durationMs } = context.size;
    const { url } = await startDatabase(context);
    // The machine that runs everything is a node, too. Together with it, there are as many nodes as a page can keep.
    const seeded = nodes - 1;
    await seedNodes({ url, count: seeded, identities: false });
    const token = await createAccessToken(url);
    const port = await startUp(context, url);
    context.progress(`${nodes} nodes seeded, rollcall up serves`);
    const browser = await startBrowser();
    context.atEnd(() => browser.close());

    const bound = await measureBound(context, browser);
    context.progress("measuring the page that serves as the bound");
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
    context.progress("the map is shown");
    const origin = `http://127.0.0.1:${port}`;
    const tasks = await watchMap(browser, page, { ...mapOf(origin, seeded), durationMs });
    await fleet.stop();
    return [
      { figure: "first load", measured: firstLoadKib, unit: "KiB", ...aim(AIM.firstLoadKib) },
      { figure: "first rows after sign-in", measured: table.firstRowsMs, unit: "ms", ...aim(AIM.tableMs) },
      {
        ...{ figure: "all nodes after sign-in", measured: table.allMs, unit: "ms" },
        ...{ against: "first rows", compared: table.firstRowsMs, target: "" },
      },
      ...figuresOf(used, bound),
      { figure: "longest task with the map", measured: Math.max(...tasks), unit: "ms", ...aim(AIM.taskMs) },
      {
        figure: "nodes changed",
        measured: rate,
        unit: "/s",
        against: "wanted",
        compared: CHANGES_A_SECOND,
        target: "",
      },
    ];
  },
};

/** The address of a map of whole zones with about CELLS nodes, and the number of its nodes. */
function mapOf(origin: string, nodes: number): { readonly address: string; readonly cells: number } {
  const zones = Math.min(ZONES, Math.max(1, Math.round(CELLS / (nodes / ZONES))));
  const names = Array.from({ length: zones }, (_, zone) => `zone-${zone}`);
  const search = new URLSearchParams({ view: "map", by: "zone", labels: `zone in (${names.join(",")})` });
  const cells = names.reduce((sum, _, zone) => sum + Math.ceil((nodes - zone) / ZONES), 0);
  return { address: `${origin}/nodes?${search}`, cells };
}

function aim(compared: number) {
  return { against: "aim", compared, target: "1 or less" };
}

function figuresOf(used: Usage, bound: Usage): readonly Figure[] {
  const p95 = percentile(used.toPaintMs, 0.95);
  const drift = (used.heapBytes[1] - used.heapBytes[0]) / MIB;
  const compared = { against: "rows that never change", target: "" };
  return [
    { figure: "interaction to next paint, p95", measured: p95, unit: "ms", ...aim(AIM.toPaintMs) },
    {
      ...{ figure: "interaction to next paint, p95", measured: p95, unit: "ms", ...compared },
      compared: percentile(bound.toPaintMs, 0.95),
    },
    { figure: "main thread busy", measured: used.mainThread, unit: "cores", ...aim(AIM.mainThread) },
    { figure: "main thread busy", measured: used.mainThread, unit: "cores", ...compared, compared: bound.mainThread },
    {
      ...{ figure: "JavaScript heap at the end", measured: used.heapBytes[1] / MIB, unit: "MiB" },
      ...{ against: "at the start", compared: used.heapBytes[0] / MIB, target: "1, steady" },
    },
    {
      ...{ figure: "drift of the heap", measured: drift, unit: "MiB", ...compared },
      compared: (bound.heapBytes[1] - bound.heapBytes[0]) / MIB,
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

/** Sign in, and wait for the first and the last rows. Returns the milliseconds from the click until each. */
async function signIn(
  page: Page,
  cdp: CDPSession,
  nodes: number,
): Promise<{ readonly firstRowsMs: number; readonly allMs: number }> {
  await page.addInitScript({ content: tellWhenShown(nodes) });
  const begin = Date.now();
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  for (;;) {
    // Evaluate the expression with the debugger, because the page's policy forbids scripts made from strings.
    const { result } = await cdp
      .send("Runtime.evaluate", { expression: "globalThis.shown ?? {}", returnByValue: true })
      // Ignore failures, because the evaluation fails while the page is reloaded.
      .catch(() => ({ result: { value: {} } }));
    const { first, all } = result.value as { readonly first?: number; readonly all?: number };
    if (first !== undefined && all !== undefined) return { firstRowsMs: first - begin, allMs: all - begin };
    if (Date.now() - begin > LONGEST_SIGN_IN_MS) throw new Error(`not all of ${nodes} nodes are shown`);
    await delay(POLL_MS);
  }
}

/** Create a script that checks the page in each frame until everything is shown. */
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

/** Start `rollcall up` on the store. Returns the port of its API and pages. */
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
