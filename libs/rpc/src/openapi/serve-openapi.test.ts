import { get } from "node:http";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { RpcFixture } from "../../test/rpc-fixture.ts";
import type { JsonSchema } from "./field-rules.ts";
import type { OpenApiDocument } from "./openapi-document.ts";

const REGISTRY = "/rollcall.registry.v1.RegistryService";

let fixture: RpcFixture;
let document: OpenApiDocument;

beforeAll(async () => {
  fixture = await RpcFixture.start({
    fallback: (_, response) => {
      response.statusCode = 404;
      response.end("another page");
    },
  });
  document = JSON.parse((await read("/openapi.json")).body.toString()) as OpenApiDocument;
});
afterAll(() => fixture.stop());

interface Answer {
  readonly status: number | undefined;
  readonly headers: { readonly etag?: string | undefined; readonly [name: string]: unknown };
  readonly body: Buffer;
}

async function read(path: string, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    get(`${fixture.url}${path}`, { headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    }).once("error", reject);
  });
}

function schemaOf(name: string): JsonSchema {
  return document.components.schemas[name] ?? {};
}

/** List all references in a value. */
function referencesIn(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "$ref" && typeof inner === "string" ? [inner] : referencesIn(inner),
  );
}

describe("the description of an API", () => {
  it("should have every method of the server, by its path", () => {
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining([`${REGISTRY}/GetNode`, `${REGISTRY}/WatchNodes`]),
    );
    const method = document.paths[`${REGISTRY}/ListNodes`]?.post;
    expect(method?.security).toEqual([{ bearer: [] }]);
    expect(method?.description).toMatch(/Requires the role operator\. Repeating the call/);
    expect(document.paths[`${REGISTRY}/RegisterNode`]?.post.security).toEqual([]);
  });

  it("should mark streaming methods, and give them their own media type", () => {
    const watch = document.paths[`${REGISTRY}/WatchNodes`]?.post;
    expect(watch?.["x-rollcall-stream"]).toBe("server");
    expect(Object.keys(watch?.requestBody.content ?? {})).toEqual(["application/connect+json"]);
    expect(document.paths[`${REGISTRY}/GetNode`]?.post["x-rollcall-stream"]).toBeUndefined();
  });

  it("should resolve every reference to a schema", () => {
    const known = new Set(Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`));
    expect(referencesIn(document).filter((reference) => !known.has(reference))).toEqual([]);
    expect(referencesIn(document).length).toBeGreaterThan(100);
  });

  it("should describe the JSON form of messages: names, bounds, comments and special forms", () => {
    const request = schemaOf("rollcall.registry.v1.ListNodesRequest");
    expect(request.properties).toMatchObject({ pageToken: { type: "string", maxLength: expect.any(Number) } });
    expect(request.properties?.pageToken?.description).not.toBe("");
    expect(request.additionalProperties).toBe(false);
    const node = schemaOf("rollcall.node.v1.Node").properties ?? {};
    expect(Object.values(node)).toContainEqual(expect.objectContaining({ format: "date-time" }));
    expect(schemaOf("rollcall.node.v1.MembershipState").enum).toContain("MEMBERSHIP_STATE_APPROVED");
    expect(schemaOf("rollcall.ErrorReason").enum).toContain("NODE_NOT_FOUND");
  });

  it("should also be available as a page that runs and loads nothing", async () => {
    const { headers, body } = await read("/docs/api");
    const page = body.toString();
    expect(headers["content-security-policy"]).toContain("default-src 'none'");
    expect(page).toContain("<summary>GetNode</summary>");
    expect(page.match(/<(script|img|link|iframe|form)\b| (src|style|on\w+)=|@import|url\(/i)).toBeNull();
    const links = [...page.matchAll(/href="([^"]*)"/g)].map(([, target = ""]) => target);
    const anchors = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => `#${id}`));
    expect(links.filter((target) => !anchors.has(target))).toEqual(["/openapi.json"]);
  });

  it("should be compressed for callers that support it, and not sent again to one that has it", async () => {
    const plain = await read("/openapi.json");
    const zipped = await read("/openapi.json", { "accept-encoding": "gzip" });
    expect(gunzipSync(zipped.body).equals(plain.body)).toBe(true);
    expect(zipped.body.length).toBeLessThan(plain.body.length / 4);
    for (const none of ["gzip;q=0", "br, gzip; q=0.0", "br"]) {
      const { headers } = await read("/openapi.json", { "accept-encoding": none });
      expect(headers["content-encoding"]).toBeUndefined();
    }
    const little = await read("/openapi.json", { "accept-encoding": "br, GZIP;q=0.05" });
    expect(little.headers["content-encoding"]).toBe("gzip");
    const again = await read("/openapi.json", { "if-none-match": String(plain.headers.etag) });
    expect([again.status, again.body.length]).toEqual([304, 0]);
  });

  it("should leave other pages to the fallback", async () => {
    expect((await read("/docs")).body.toString()).toBe("another page");
  });
});
