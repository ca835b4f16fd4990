import { describe, expect, it } from "@jest/globals";
import { mergeMetrics } from "./merge-metrics.ts";

const text = (beats: number, sessions: number) => `# HELP beats_total Heartbeats.
# TYPE beats_total counter
beats_total ${beats}

# HELP sessions Streams.
# TYPE sessions gauge
sessions{zone="a b"} ${sessions}
`;

describe("mergeMetrics()", () => {
  it("should keep each metric together, and label each sample with its worker", () => {
    const merged = mergeMetrics([
      { worker: "1", text: text(3, 10) },
      { worker: "2", text: text(4, 20) },
    ]);
    expect(merged).toBe(`# HELP beats_total Heartbeats.
# TYPE beats_total counter
beats_total{worker="1"} 3
beats_total{worker="2"} 4

# HELP sessions Streams.
# TYPE sessions gauge
sessions{worker="1",zone="a b"} 10
sessions{worker="2",zone="a b"} 20
`);
  });

  it("should keep what only one process has", () => {
    const merged = mergeMetrics([
      { worker: "primary", text: "# HELP a A.\n# TYPE a gauge\na 1\n" },
      { worker: "1", text: '# HELP b B.\n# TYPE b histogram\nb_bucket{le="+Inf"} 2\nb_sum 1\n' },
      { worker: "2", text: "" },
    ]);
    expect(merged).toContain('a{worker="primary"} 1\n');
    expect(merged).toContain('b_bucket{worker="1",le="+Inf"} 2\nb_sum{worker="1"} 1\n');
  });
});
