import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type Browser, type CDPSession, chromium, type Page } from "playwright-core";
import { interactionsOf, tasksOf } from "./trace.ts";

/** The browser to start: Debian's Chromium, unless the variable CHROMIUM names another. */
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** The pause between two interactions of a person. */
const PAUSE_MS = 120;
const PATIENCE_MS = 90_000;
/** The length of one trace. A trace of ten minutes exceeds Chromium's buffer, so it is recorded in pieces. */
const TRACE_MS = 60_000;
const SEARCHED = "0012";
/** How long a page may take to load everything before it is traced. */
const SETTLE_MS = 5_000;

/** The measurements of a browser while a page is used. */
export interface Usage {
  /** The time from each key or click until the frame that shows its effect, in milliseconds. */
  readonly toPaintMs: Float64Array;
  /** The share of time in which the main thread was busy. */
  readonly mainThread: number;
  /** The page's JavaScript heap after a garbage collection, at the start and at the end. */
  readonly heapBytes: readonly [before: number, after: number];
}

/** Start the browser, without a sandbox if the user is root. */
export async function startBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) throw new Error(`Chromium not found at ${CHROMIUM}; install it, or set CHROMIUM`);
  return await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** Open an empty page, and a debugging session for it. */
export async function openPage(browser: Browser): Promise<{ readonly page: Page; readonly cdp: CDPSession }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const cdp = await context.newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  return { page, cdp };
}

/** Count the bytes of responses, as transferred. Returns a function that returns the total so far. */
export async function countBytes(cdp: CDPSession): Promise<() => number> {
  let bytes = 0;
  cdp.on("Network.loadingFinished", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  await cdp.send("Network.enable");
  return () => bytes;
}

/** Use the list of nodes as a person does. Scroll, search, sort, open a node and go back, repeatedly. */
export async function useList(browser: Browser, page: Page, cdp: CDPSession, durationMs: number): Promise<Usage> {
  const before = await heapOf(cdp);
  const metricsBefore = await metricsOf(cdp);
  const begin = performance.now();
  const toPaintMs: number[] = [];
  while (performance.now() - begin < durationMs) {
    const until = Math.min(begin + durationMs, performance.now() + TRACE_MS);
    await browser.startTracing(page, { categories: ["devtools.timeline"] });
    while (performance.now() < until) await oneRound(page, cdp);
    const trace = await browser.stopTracing();
    toPaintMs.push(...interactionsOf(JSON.parse(trace.toString()).traceEvents));
  }
  const metricsAfter = await metricsOf(cdp);
  const elapsedMs = performance.now() - begin;
  const after = await heapOf(cdp);
  return {
    toPaintMs: Float64Array.from(toPaintMs),
    mainThread: ((metricsAfter.TaskDuration ?? 0) - (metricsBefore.TaskDuration ?? 0)) / (elapsedMs / 1_000),
    heapBytes: [before, after],
  };
}

/** Watch the map of some nodes while they change. Returns how long each task of the main thread took. */
export async function watchMap(
  browser: Browser,
  page: Page,
  at: { readonly address: string; readonly cells: number; readonly durationMs: number },
): Promise<Float64Array> {
  await page.goto(at.address);
  const count = at.cells.toLocaleString("en-US");
  await page
    .getByTestId("node-count")
    .filter({ hasText: new RegExp(`^${count} of`) })
    .waitFor();
  await page.getByTestId("fleet-map").locator("canvas").first().waitFor();
  await delay(SETTLE_MS);
  await browser.startTracing(page, { categories: ["devtools.timeline", "disabled-by-default-devtools.timeline"] });
  await delay(Math.min(at.durationMs, TRACE_MS));
  const trace = await browser.stopTracing();
  return tasksOf(JSON.parse(trace.toString()).traceEvents);
}

async function oneRound(page: Page, cdp: CDPSession): Promise<void> {
  const pause = () => delay(PAUSE_MS);
  await page.getByTestId("nodes-scroll").hover();
  for (let turn = 0; turn < 3; turn += 1) {
    await page.mouse.wheel(0, 1_800);
    await pause();
  }
  const search = page.locator("#node-search");
  await search.click();
  for (const key of SEARCHED) {
    await page.keyboard.press(key);
    await pause();
  }
  for (const _ of SEARCHED) {
    await page.keyboard.press("Backspace");
    await pause();
  }
  for (let turn = 0; turn < 2; turn += 1) {
    await page.getByRole("columnheader").getByRole("button", { name: "Health" }).click();
    await pause();
  }
  await openNode(page, cdp);
  await page.waitForURL(/\/nodes\/./);
  await pause();
  await page.goBack();
  await page.getByTestId("node-count").waitFor();
  await pause();
}

/**
 * A script that finds the middle of a visible link to a node. The document also has rows above and below the
 * visible part.
 */
const LINK_IN_SIGHT = `(() => {
  const list = document.querySelector("[data-testid=nodes-scroll]");
  const { top, bottom } = list.getBoundingClientRect();
  for (const link of list.querySelectorAll("a")) {
    const box = link.getBoundingClientRect();
    if (box.top > top + 80 && box.bottom < bottom - 80) return { x: box.left + 8, y: box.top + box.height / 2 };
  }
  return null;
})()`;

async function openNode(page: Page, cdp: CDPSession): Promise<void> {
  // Click at a position, as a person does. A row that was found by its name may have changed in the meantime.
  const { result } = await cdp.send("Runtime.evaluate", { expression: LINK_IN_SIGHT, returnByValue: true });
  const place = result.value as { readonly x: number; readonly y: number } | null;
  if (place === null) throw new Error("no node is visible");
  await page.mouse.click(place.x, place.y);
}

async function heapOf(cdp: CDPSession): Promise<number> {
  await cdp.send("HeapProfiler.collectGarbage");
  return (await metricsOf(cdp)).JSHeapUsedSize ?? 0;
}

async function metricsOf(cdp: CDPSession): Promise<Readonly<Record<string, number>>> {
  const { metrics } = await cdp.send("Performance.getMetrics");
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}
