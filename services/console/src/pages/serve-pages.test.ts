import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as requestHttp } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, brotliDecompressSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase } from "@rollcall/testkit";
import { type ConsoleRig, startConsole } from "../testing/console-rig.ts";
import { type PageFiles, readPageFiles } from "./page-files.ts";

const SCRIPT = "export const answer = 42;\n".repeat(100);
const INDEX = '<!doctype html><script type="module" nonce="__CSP_NONCE__" src="/assets/a-1.js"></script>';

let folder: string;
let pages: PageFiles | null;
let rig: ConsoleRig;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-pages-"));
  mkdirSync(join(folder, "assets"));
  writeFileSync(join(folder, "index.html"), INDEX);
  writeFileSync(join(folder, "favicon.svg"), "<svg/>");
  writeFileSync(join(folder, "assets/a-1.js"), SCRIPT);
  writeFileSync(join(folder, "assets/a-1.js.br"), brotliCompressSync(SCRIPT));
  writeFileSync(join(folder, "assets/a-1.js.gz"), gzipSync(SCRIPT));
  pages = await readPageFiles(folder);
  rig = await startConsole(await createTestDatabase(), { pages });
});
afterAll(async () => {
  await rig.close();
  rmSync(folder, { recursive: true });
});

interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Request a path exactly as written, without a client that normalizes it. */
function get(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = requestHttp({ host: "127.0.0.1", port: rig.port, path, method, headers, agent: false });
    request.once("error", reject);
    request.once("response", async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) });
    });
    request.end();
  });
}

const BROWSER = { "sec-fetch-mode": "navigate", accept: "text/html,*/*" };
const nonceIn = ({ headers }: Answer) =>
  /script-src 'self' 'nonce-([^']+)'/.exec(String(headers["content-security-policy"]))?.[1];

describe("pages", () => {
  it.each(["/", "/nodes", "/nodes/n1.example", "/sign-in?x=1"])(
    "should serve browsers the document at %s",
    async (path) => {
      const answer = await get(path, BROWSER);
      const nonce = nonceIn(answer);
      expect(answer.status).toBe(200);
      expect(nonce).toMatch(/^[\w+/]{24}$/);
      expect(answer.body.toString()).toBe(INDEX.replace("__CSP_NONCE__", String(nonce)));
      expect(answer.headers).toMatchObject({
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
      });
    },
  );

  it("should use each nonce once, and allow no content of other servers", async () => {
    const [one, two] = [await get("/", BROWSER), await get("/", BROWSER)];
    expect(nonceIn(one)).not.toBe(nonceIn(two));
    const policy = String(one.headers["content-security-policy"]);
    for (const part of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"]) {
      expect(policy).toContain(part);
    }
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
  });

  it.each(["/nodes", "/x/y"])("should return 404 to programs for %s", async (path) => {
    expect((await get(path, { accept: "*/*" })).status).toBe(404);
    expect((await get(path, { ...BROWSER, "sec-fetch-mode": "cors" })).status).toBe(404);
  });

  it.each(["/rollcall.admin.v1.AccessService/WhoAmI", "/grpc.health.v1.Health/Check", "/assets/missing.js", "/ca.pem"])(
    "should not serve the document at %s",
    async (path) => {
      expect((await get(path, BROWSER)).status).not.toBe(200);
    },
  );

  it.each([
    "/assets/../../package.json",
    "/..%2f..%2fpackage.json",
    "//etc/passwd",
    "/assets/%2e%2e/x",
    "/index.html.br",
  ])("should not expose a file of the machine: %s", async (path) => {
    const answer = await get(path, { accept: "*/*" });
    expect([answer.status, answer.body.toString()]).toEqual([404, "not found\n"]);
  });

  it("should accept only GET and HEAD", async () => {
    expect(await get("/", {}, "PUT")).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
    const head = await get("/assets/a-1.js", {}, "HEAD");
    expect([head.status, head.body.length, head.headers["content-length"]]).toEqual([200, 0, String(SCRIPT.length)]);
  });
});

describe("files of the build", () => {
  it("should be cached forever if their name has a hash, and revalidated otherwise", async () => {
    const script = await get("/assets/a-1.js");
    expect(script.headers).toMatchObject({
      "cache-control": "public, max-age=31536000, immutable",
      "content-type": "text/javascript; charset=utf-8",
      vary: "accept-encoding",
    });
    const icon = await get("/favicon.svg");
    expect(icon.headers["cache-control"]).toBe("no-cache");
    const again = await get("/favicon.svg", { "if-none-match": String(icon.headers.etag) });
    expect([again.status, again.body.length]).toEqual([304, 0]);
  });

  it.each([
    ["br, gzip", "br"],
    ["gzip", "gzip"],
    ["gzip;q=0.5, br;q=0", "gzip"],
    ["identity", undefined],
    ["", undefined],
  ])("should be sent in an encoding that the browser accepts: %s", async (accepted, encoding) => {
    const answer = await get("/assets/a-1.js", { "accept-encoding": accepted });
    expect(answer.headers["content-encoding"]).toBe(encoding);
    if (encoding === "br") expect(brotliDecompressSync(answer.body).toString()).toBe(SCRIPT);
    if (encoding === undefined) expect(answer.body.toString()).toBe(SCRIPT);
  });
});

describe("readPageFiles()", () => {
  it("should be null for pages that are not built", async () => {
    expect(await readPageFiles(join(folder, "nothing"))).toBeNull();
    expect(await readPageFiles(join(folder, "assets"))).toBeNull();
  });

  it("should refuse files that do not belong to pages, and too many bytes", async () => {
    const other = mkdtempSync(join(tmpdir(), "rollcall-pages-"));
    try {
      writeFileSync(join(other, "index.html"), INDEX);
      writeFileSync(join(other, "large.js"), Buffer.alloc(4_194_305));
      await expect(readPageFiles(other)).rejects.toThrow("larger than 4194304 bytes");
      writeFileSync(join(other, "large.js"), "");
      writeFileSync(join(other, "run.sh"), "");
      await expect(readPageFiles(other)).rejects.toThrow("run.sh has an unexpected file type");
    } finally {
      rmSync(other, { recursive: true });
    }
  });
});
