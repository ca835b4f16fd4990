// Takes pictures of every page of the console, light and dark, wide and narrow, in Debian's Chromium. The console
// shows the fleet of screenshots-fleet.mjs. The first argument is the folder for all pictures. docs/images/console
// gets some of them, and one picture for each page that combines all four.
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { createFleet } from "./screenshots-fleet.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PATIENCE_MS = 120_000;
const USAGE_MS = 3_000;
const THEMES = ["light", "dark"];
const WIDTHS = [1280, 360];
const HEIGHT = 760;
const PAGES = {
  overview: "/",
  nodes: "/nodes",
  map: "/nodes?view=map&by=role",
  node: "/nodes/gpu-1",
  usage: "/nodes/dgx-1?tab=usage",
  hardware: "/nodes/dgx-1?tab=hardware",
  work: "/nodes/gpu-1?tab=work",
  identity: "/nodes/gpu-1?tab=identity",
  approvals: "/approvals?node=gpu-5",
  join: "/join",
  events: "/events",
  jobs: "/jobs",
  job: "/jobs/web",
  execution: "/executions/EXECUTION",
  drains: "/drains",
  policies: "/policies",
  brake: "/brake",
  access: "/access",
  audit: "/audit",
  webhooks: "/webhooks",
  "control-plane": "/control-plane",
  "not-found": "/nothing",
};
/** The elements to open on a page before its picture is taken, keyed by page. */
const OPENED = {
  palette: ["/nodes", (page) => page.keyboard.press("Control+k")],
  keys: ["/nodes", (page) => page.keyboard.press("?")],
  confirm: [
    "/nodes?type=compute",
    async (page) => {
      await page.getByLabel("Select all nodes of this view").click();
      await page.getByRole("toolbar").getByRole("button", { name: "Drain", exact: true }).click();
      await page.getByRole("dialog").getByLabel("Reason (optional)").waitFor();
    },
  ],
  drain: ["/drains", (page) => page.getByRole("button", { name: "Details" }).first().click()],
  "job-form": [
    "/jobs/web",
    async (page) => {
      await page.getByRole("button", { name: "Edit" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Preview" }).click();
      await page.getByRole("dialog").getByText("would wait").waitFor();
    },
  ],
  policy: ["/policies", (page) => page.getByRole("button", { name: "Set a policy" }).click()],
};
/** The text to wait for on pages that show it only after loading and without an indicator, keyed by page. */
const AWAITED = { approvals: "It may be a known machine" };
/** The pictures that the docs show individually. */
const SHOWN = ["overview-dark-1280", "nodes-dark-1280", "approvals-dark-1280", "node-light-360"];
const NAMES = ["sign-in", ...Object.keys(PAGES), ...Object.keys(OPENED)];
/** Pages that show little by their nature. */
const SPARSE = ["sign-in", "not-found"];
/** The largest share of a picture that may have one color. Pages have up to 0.82, and a frame without content 0.836. */
const MOST_OF_ONE_COLOR = 0.83;
/** The layout of a page's combined picture: the scale of each picture, the gap between them, and the quality. */
const SHEET = { scale: 0.7, gap: 12, quality: 0.8 };

const out = resolve(process.argv[2] ?? join(ROOT, "dist/screenshots"));
mkdirSync(out, { recursive: true });
const fleet = createFleet();
try {
  await takeAll(await fleet.start());
} finally {
  await fleet.end();
}

async function takeAll(site) {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath))
    throw new Error(`${executablePath} not found; set CHROMIUM to the path of the browser`);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  try {
    for (const theme of THEMES) {
      for (const width of WIDTHS) await takePages(browser, { ...site, theme, width });
    }
    await show(browser);
  } finally {
    await browser.close();
  }
}

async function takePages(browser, { origin, token, executionId, theme, width }) {
  const context = await browser.newContext({ viewport: { width, height: HEIGHT }, colorScheme: theme });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  await page.goto(origin);
  await page.getByLabel("Access token").fill(token);
  await page.screenshot({ path: join(out, `sign-in-${theme}-${width}.png`) });
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  const live = page.getByTestId("link-state").filter({ hasText: "Live" });
  await live.waitFor({ state: "attached" });
  const take = async (name, path, open = async () => {}) => {
    await page.goto(origin + path.replace("EXECUTION", executionId));
    await live.waitFor({ state: "attached" });
    await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
    await open(page);
    // Wait for data, because a watch of usage sends data only with its second message.
    if (path.startsWith("/nodes")) await page.waitForTimeout(USAGE_MS);
    await page.screenshot({ path: join(out, `${name}-${theme}-${width}.png`) });
  };
  for (const [name, path] of Object.entries(PAGES)) {
    const text = AWAITED[name];
    await take(name, path, (shown) => text !== undefined && shown.getByText(text).waitFor());
  }
  for (const [name, [path, open]] of Object.entries(OPENED)) await take(name, path, open);
  await context.close();
}

/** Make and copy the pictures for the docs. */
async function show(browser) {
  const shown = join(ROOT, "docs/images/console");
  mkdirSync(shown, { recursive: true });
  const page = await browser.newPage();
  for (const name of NAMES) await checkPictures(page, name);
  for (const name of SHOWN) copyFileSync(join(out, `${name}.png`), join(shown, `${name}.png`));
  for (const name of NAMES) {
    const pictures = THEMES.flatMap((theme, row) =>
      WIDTHS.map((width, column) => {
        const file = readFileSync(join(out, `${name}-${theme}-${width}.png`));
        const left = WIDTHS.slice(0, column).reduce((sum, before) => sum + before * SHEET.scale + SHEET.gap, 0);
        const top = row * (HEIGHT * SHEET.scale + SHEET.gap);
        return { source: `data:image/png;base64,${file.toString("base64")}`, left, top, width, height: HEIGHT };
      }),
    );
    const address = await page.evaluate(drawSheet, { pictures, ...SHEET });
    const [, data = ""] = address.split(",");
    writeFileSync(join(shown, `all-${name}.webp`), Buffer.from(data, "base64"));
  }
}

/** Refuse a page's pictures if one of them is empty, which a person might not notice among a hundred. */
async function checkPictures(page, name) {
  if (SPARSE.includes(name)) return;
  for (const theme of THEMES) {
    for (const width of WIDTHS) {
      const file = `${name}-${theme}-${width}.png`;
      const source = `data:image/png;base64,${readFileSync(join(out, file)).toString("base64")}`;
      const share = await page.evaluate(shareOfOneColor, source);
      if (share > MOST_OF_ONE_COLOR) throw new Error(`${file} is empty: one color covers ${Math.round(share * 100)} %`);
    }
  }
}

/** Return which share of a picture has its most frequent color. Runs in the browser. */
async function shareOfOneColor(source) {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  const drawing = canvas.getContext("2d");
  drawing.drawImage(image, 0, 0);
  const counts = new Map();
  const pixels = new Uint32Array(drawing.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  return Math.max(...counts.values()) / pixels.length;
}

/** Draw several pictures into one, in the browser. Returns the result as a data URL. */
async function drawSheet({ pictures, scale, quality }) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(...pictures.map(({ left, width }) => left + width * scale));
  canvas.height = Math.max(...pictures.map(({ top, height }) => top + height * scale));
  const drawing = canvas.getContext("2d");
  drawing.fillStyle = "#80868b";
  drawing.fillRect(0, 0, canvas.width, canvas.height);
  drawing.imageSmoothingQuality = "high";
  for (const { source, left, top, width, height } of pictures) {
    const image = new Image();
    image.src = source;
    await image.decode();
    drawing.drawImage(image, left, top, width * scale, height * scale);
  }
  return canvas.toDataURL("image/webp", quality);
}
