import { describe, expect, it } from "@jest/globals";
import { counter, createMetrics, gauge, histogram, onScrape, renderMetrics } from "./metrics.ts";

describe("createMetrics()", () => {
  it("should include Node's own metrics, such as event loop lag", async () => {
    const text = await renderMetrics(createMetrics());
    expect(text).toContain("nodejs_eventloop_lag_p99_seconds");
    expect(text).toContain("process_resident_memory_bytes");
  });

  it("should create each metric once, however often it is requested", async () => {
    const metrics = createMetrics({ defaults: false });
    for (let time = 0; time < 2; time += 1) {
      counter(metrics, { name: "beats_total", help: "h", labelNames: ["type"] }).inc({ type: "a" });
      gauge(metrics, { name: "agents", help: "h" }).inc();
      histogram(metrics, { name: "wait_seconds", help: "h", buckets: [1] }).observe(0.5);
    }
    const text = await renderMetrics(metrics);
    expect(text).toContain('beats_total{type="a"} 2');
    expect(text).toContain("agents 2");
    expect(text).toContain("wait_seconds_count 2");
  });

  it("should update values before each scrape", async () => {
    const metrics = createMetrics({ defaults: false });
    const age = gauge(metrics, { name: "age", help: "h" });
    let value = 1;
    onScrape(metrics, () => age.set(value));
    onScrape(metrics, () => gauge(metrics, { name: "twice", help: "h" }).set(value * 2));
    expect(await renderMetrics(metrics)).toContain("age 1");
    value = 2;
    const text = await renderMetrics(metrics);
    expect(text).toContain("age 2");
    expect(text).toContain("twice 4");
  });
});
