import { once } from "node:events";
import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { until } from "../../libs/testkit/src/index.ts";
import { useControlPlane } from "./support/cli-rig.ts";

interface SentSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
}

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";
const spans: SentSpan[] = [];
const collector = createServer((request, response) => {
  let text = "";
  request.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  request.on("end", () => {
    for (const { scopeSpans } of JSON.parse(text).resourceSpans) {
      for (const scope of scopeSpans) spans.push(...scope.spans);
    }
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
});

// This hook must run before the hook of the rig, because the rig reads the port.
beforeAll(async () => {
  collector.listen(0, "127.0.0.1");
  await once(collector, "listening");
});
const rig = useControlPlane(() => {
  const address = collector.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { "tracing-endpoint": `http://127.0.0.1:${port}` };
});
afterAll(() => {
  collector.closeAllConnections();
  collector.close();
});

describe("Tracing.Endpoint", () => {
  it("should add a call and its queries to the caller's trace", async () => {
    await rig.register("n1");
    const response = await fetch(`http://${rig.address}/rollcall.registry.v1.RegistryService/GetNode`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${rig.token}`,
        traceparent: `00-${TRACE}-${PARENT}-01`,
      },
      body: JSON.stringify({ node: "n1" }),
    });
    expect(response.status).toBe(200);
    const ofTrace = () => spans.filter(({ traceId }) => traceId === TRACE);
    // A span is sent after its children, so the children may be in an earlier message.
    const call = await until("the span to be sent", () => ofTrace().find((it) => it.parentSpanId === PARENT) ?? null);
    expect(call.name).toBe("rollcall.registry.v1.RegistryService/GetNode");
    const queries = ofTrace().filter(({ parentSpanId }) => parentSpanId === call.spanId);
    expect(queries.map(({ name }) => name)).toContain("postgresql select");
  });
});
