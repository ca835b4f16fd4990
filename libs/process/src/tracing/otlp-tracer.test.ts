import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { afterEach, describe, expect, it } from "@jest/globals";
import { captureLog } from "@rollcall/testkit/log-capture";
import { systemClock } from "../clock.ts";
import { createOtlpTracer } from "./otlp-tracer.ts";

interface SentSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly status?: { readonly message?: string };
}

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** Start a collector that records requests. */
async function openCollector(status = 200) {
  const spans: SentSpan[] = [];
  const paths: string[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    request.on("end", () => {
      paths.push(request.url ?? "");
      for (const { scopeSpans } of JSON.parse(text).resourceSpans) {
        for (const scope of scopeSpans) spans.push(...scope.spans);
      }
      response.writeHead(status, { "content-type": "application/json" }).end("{}");
    });
  });
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { spans, paths, endpoint: `http://127.0.0.1:${port}/` };
}

const START = { name: "Registry/GetNode", traceparent: null, values: { "rpc.method": "GetNode" } };

describe("createOtlpTracer()", () => {
  it("should send spans with their parts in the caller's trace", async () => {
    const { spans, paths, endpoint } = await openCollector();
    const { log } = captureLog();
    const tracer = createOtlpTracer({ endpoint, ratio: 0, resource: { "service.name": "r" }, log, clock: systemClock });
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const span = tracer.start({ ...START, traceparent: `00-${traceId}-b7ad6b7169203331-01` });
    span.note({ name: "postgresql select", durationMs: 3, values: {} });
    span.end("not_found");
    // With a sampling ratio of zero, no trace that starts in this process is sampled.
    tracer.start(START).end();
    await tracer.close();
    expect(paths).toEqual(["/v1/traces"]);
    expect(spans.map(({ name }) => name).sort()).toEqual(["Registry/GetNode", "postgresql select"]);
    const [own, part] = ["Registry/GetNode", "postgresql select"].map((name) => spans.find((it) => it.name === name));
    expect(own).toMatchObject({ traceId, parentSpanId: "b7ad6b7169203331", status: { message: "not_found" } });
    expect(part).toMatchObject({ traceId, parentSpanId: own?.spanId });
    expect(span.ids).toEqual({ trace_id: traceId, span_id: own?.spanId });
    expect(span.traceparent).toBe(`00-${traceId}-${own?.spanId}-01`);
  });

  it("should log once that a collector refuses spans, and still close", async () => {
    const { endpoint } = await openCollector(400);
    const { log, lines } = captureLog();
    const tracer = createOtlpTracer({ endpoint, ratio: 1, resource: {}, log, clock: systemClock });
    tracer.start(START).end();
    await tracer.close();
    expect(lines.map(({ msg }) => msg)).toEqual(["traces cannot be sent"]);
  });
});
