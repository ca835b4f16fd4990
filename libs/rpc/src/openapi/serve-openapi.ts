import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { DescService } from "@bufbuild/protobuf";
import type { Logger } from "@rollcall/process";
import { sendWhole } from "../answers/answer-error.ts";
import { notFound } from "../answers/answer-unknown-path.ts";
import type { HttpHandler } from "../calls/http-handler.ts";
import type { PolicyTable } from "../calls/policy.ts";
import { openApiDocument } from "./openapi-document.ts";
import { openApiPage, PAGE_POLICY } from "./openapi-page.ts";

/** The paths of the API description: for programs, and for people. */
const DOCUMENT_PATH = "/openapi.json";
const PAGE_PATH = "/docs/api";

interface Page {
  readonly headers: Record<string, string> & { readonly etag: string };
  readonly plain: Buffer;
  readonly gzipped: Buffer;
}

/**
 * Create a handler that answers GET /openapi.json and GET /docs/api with the description of a server's services. Other
 * requests go to `otherwise`. Like reflection, the description is open to any caller. It is created on the first
 * request.
 */
export function serveOpenApi(
  services: readonly DescService[],
  policies: PolicyTable,
  log: Logger,
  otherwise: HttpHandler,
): HttpHandler {
  let pages: Promise<ReadonlyMap<string, Page>> | null = null;
  return (request, response) => {
    const [path = ""] = (request.url ?? "").split("?", 1);
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (!isRead || (path !== DOCUMENT_PATH && path !== PAGE_PATH)) {
      otherwise(request, response);
      return;
    }
    pages ??= makePages(services, policies);
    pages.then(
      (made) => {
        const page = made.get(path);
        if (page === undefined) notFound(request, response);
        else answer(page);
      },
      (err: unknown) => {
        log.error({ err }, "the API description cannot be created");
        // Let the next request try again.
        pages = null;
        sendWhole(request, response, 500, { "content-type": "text/plain" }, "the description cannot be created\n");
      },
    );

    function answer({ headers, plain, gzipped }: Page): void {
      if (request.headers["if-none-match"] === headers.etag) {
        sendWhole(request, response, 304, headers, "");
        return;
      }
      const isZipped = takesGzip(String(request.headers["accept-encoding"] ?? ""));
      const encoded = isZipped ? { ...headers, "content-encoding": "gzip" } : headers;
      sendWhole(request, response, 200, encoded, isZipped ? gzipped : plain);
    }
  };
}

/** Whether a caller accepts gzip. A quality of 0 means that it does not. */
function takesGzip(accepted: string): boolean {
  const gzipped = accepted.split(",").find((coding) => /^\s*gzip\s*(;|$)/i.test(coding));
  return gzipped !== undefined && !/;\s*q=0(\.0*)?\s*$/i.test(gzipped);
}

async function makePages(services: readonly DescService[], policies: PolicyTable): Promise<ReadonlyMap<string, Page>> {
  // Load the comments only when needed: they are long, and most processes never need them.
  const { COMMENTS } = await import("@rollcall/api/comments");
  const document = openApiDocument(services, policies, COMMENTS);
  const page = { "content-type": "text/html; charset=utf-8", "content-security-policy": PAGE_POLICY };
  return new Map([
    [DOCUMENT_PATH, await makePage(JSON.stringify(document), { "content-type": "application/json" })],
    [PAGE_PATH, await makePage(openApiPage(document), page)],
  ]);
}

async function makePage(text: string, headers: Readonly<Record<string, string>>): Promise<Page> {
  const plain = Buffer.from(text);
  const etag = `"${createHash("sha256").update(plain).digest("base64url").slice(0, 22)}"`;
  return {
    headers: {
      ...headers,
      etag,
      "cache-control": "no-cache",
      "x-content-type-options": "nosniff",
      vary: "accept-encoding",
    },
    plain,
    gzipped: await promisify(gzip)(plain),
  };
}
