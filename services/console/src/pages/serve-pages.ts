import { randomBytes } from "node:crypto";
import { type HttpHandler, type HttpRequest, type HttpResponse, sendWhole, writeHead } from "@rollcall/rpc";
import { NONCE_PLACEHOLDER, type PageFile, type PageFiles } from "./page-files.ts";

const NONCE_BYTES = 18;
/**
 * Paths of methods, build output and the server's own files, whether they exist or not. They never return the
 * document.
 */
const NO_PAGE = /^\/(?:rollcall\.|grpc\.|buf\.|assets\/|ca\.pem$)/;
const NOT_BUILT = "The pages of the console are not built: run `make build`.\n";

/** Headers of every response: browsers must not sniff types, frame the page, send a referrer or share resources. */
const PAGE_HEADERS: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
};

/**
 * Serve the pages: build output by its name, and the same document for every other path that a browser opens. The
 * document decides what to show. If `pages` is null, which means that they were not built, browsers get an error
 * text.
 */
export function servePages(pages: PageFiles | null): HttpHandler {
  return (request, response) => {
    const [path = "/"] = (request.url ?? "/").split("?", 1);
    const { method } = request;
    if (method !== "GET" && method !== "HEAD") {
      send(request, response, 405, { allow: "GET, HEAD" }, "method not allowed\n");
      return;
    }
    const file = pages?.files.get(path);
    if (file !== undefined) {
      sendFile(request, response, file);
      return;
    }
    if (!isPage(request, path)) send(request, response, 404, { "cache-control": "no-store" }, "not found\n");
    else if (pages === null) send(request, response, 503, { "cache-control": "no-store" }, NOT_BUILT);
    else sendIndex(request, response, pages.index);
  };
}

/** Whether to respond with the document. Browsers that navigate get the document; programs get 404. */
function isPage({ headers }: HttpRequest, path: string): boolean {
  if (NO_PAGE.test(path)) return false;
  if (path === "/") return true;
  const mode = headers["sec-fetch-mode"];
  if (mode !== undefined) return mode === "navigate";
  return (headers.accept ?? "").includes("text/html");
}

function sendIndex(request: HttpRequest, response: HttpResponse, index: string): void {
  const nonce = randomBytes(NONCE_BYTES).toString("base64");
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": contentSecurityPolicy(nonce),
    // Prevent caching, because the nonce is valid for one response only.
    "cache-control": "no-store",
  };
  sendPage(request, response, 200, headers, Buffer.from(index.replaceAll(NONCE_PLACEHOLDER, nonce)));
}

function sendFile(request: HttpRequest, response: HttpResponse, file: PageFile): void {
  const { type, etag, isImmutable } = file;
  const cache = isImmutable ? "public, max-age=31536000, immutable" : "no-cache";
  const common = { etag, "cache-control": cache, vary: "accept-encoding" };
  if (request.headers["if-none-match"] === etag) {
    writeHead(response, 304, { ...PAGE_HEADERS, ...common });
    response.end();
    return;
  }
  const { encoding, body } = bestOf(file, String(request.headers["accept-encoding"] ?? ""));
  const encoded: Record<string, string> = encoding === null ? {} : { "content-encoding": encoding };
  sendPage(request, response, 200, { ...common, ...encoded, "content-type": type }, body);
}

/** The smallest encoding that the browser accepts. */
function bestOf({ brotli, gzip, body }: PageFile, accepted: string) {
  const names = accepted.split(",").map((it) => it.trim());
  const takes = (name: string) =>
    names.some((it) => it === name || (it.startsWith(`${name};`) && !/;q=0(\.0*)?$/.test(it)));
  if (brotli !== null && takes("br")) return { encoding: "br", body: brotli };
  if (gzip !== null && takes("gzip")) return { encoding: "gzip", body: gzip };
  return { encoding: null, body };
}

function send(
  request: HttpRequest,
  response: HttpResponse,
  status: number,
  headers: Record<string, string>,
  text: string,
): void {
  const type = { "content-type": "text/plain; charset=utf-8" };
  sendPage(request, response, status, { ...type, ...headers }, Buffer.from(text));
}

function sendPage(
  request: HttpRequest,
  response: HttpResponse,
  status: number,
  headers: Record<string, string>,
  body: Buffer,
): void {
  if (request.method !== "HEAD") {
    sendWhole(request, response, status, { ...PAGE_HEADERS, ...headers }, body);
    return;
  }
  writeHead(response, status, { ...PAGE_HEADERS, ...headers, "content-length": String(body.length) });
  response.end();
}

/**
 * Allow a page to load and run only our own files, and elements with the nonce of this response. It sends no
 * request to another server, cannot be framed, and submits no form.
 */
function contentSecurityPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'self' 'nonce-${nonce}'`,
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "object-src 'none'",
  ].join("; ");
}
