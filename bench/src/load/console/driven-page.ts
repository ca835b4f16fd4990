import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type Browser, type CDPSession, chromium, type Page } from "playwright-core";
import { interactionsOf } from "./trace.ts";

/** Debian's Chromium, unless the environment names another. */
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** What a person does between two interactions: nothing, for so long. */
const PAUSE_MS = 120;
const PATIENCE_MS = 90_000;
/** A trace of ten minutes is larger than what Chromium keeps of one: it is taken in pieces. */
const TRACE_MS = 60_000;
const SEARCHED = "0012";

/** What a browser says of a page that is used. */
export interface Usage {
  /** From each key or click until the frame that shows what it did, in milliseconds. */
  readonly toPaintMs: Float64Array;
  /** Share of the time in which the main thread had work. */
  readonly mainThread: number;
  /** The page's JavaScript heap after a collection of garbage, at the beginning and at the end. */
  readonly heapBytes: readonly [before: number, after: number];
}

/** Start the browser. As root it has no sandbox of its own. */
export async function startBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) throw new Error(`there is no Chromium at ${CHROMIUM}: install it, or set CHROMIUM`);
  return await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** Open an empty page, and a session with what tells about it. */
export async function openPage(browser: Browser): Promise<{ readonly page: Page; readonly cdp: CDPSession }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const cdp = await context.newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  return { page, cdp };
}

/** Count the bytes of answers, as they came over the wire; the answer tells the sum so far. */
export async function countBytes(cdp: CDPSession): Promise<() => number> {
  let bytes = 0;
  cdp.on("Network.loadingFinished", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  await cdp.send("Network.enable");
  return () => bytes;
}

/** Use the list of nodes as a person does: scroll, search, sort, open a node and go back, again and again. */
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

/** The middle of a link to a node that is in sight; those of rows above and below are in the document as well. */
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
  // By its place, as a person does: rows are others by the time that one of them could be named.
  const { result } = await cdp.send("Runtime.evaluate", { expression: LINK_IN_SIGHT, returnByValue: true });
  const place = result.value as { readonly x: number; readonly y: number } | null;
  if (place === null) throw new Error("no node is in sight");
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
