import { describe, expect, it } from "@jest/globals";
import { parseGreatest, parseHistogram, quantileOf } from "./replica-metrics.ts";

const TEXT = `# HELP lag Lag.
lag_bucket{le="0.01"} 90
lag_bucket{le="0.1"} 98
lag_bucket{le="1"} 99
lag_bucket{le="+Inf"} 100
lag_sum 3
lag_count 100
laggards_bucket{le="0.01"} 5
`;

describe("quantileOf()", () => {
  it.each([
    [0.5, 0.01],
    [0.9, 0.01],
    [0.95, 0.1],
    [0.99, 1],
    [1, 1],
  ])("should answer the bound below which a share of %d lies", (share, expected) => {
    expect(quantileOf(parseHistogram(TEXT, "lag"), share)).toBe(expected);
  });

  it("should return 0 without observations", () => {
    expect(quantileOf(parseHistogram("", "lag"), 0.99)).toBe(0);
  });
});

describe("parseGreatest()", () => {
  it("should return the greatest value over all labels, and 0 for a missing gauge", () => {
    const text = '# HELP behind x\nbehind{follower="a"} 3\nbehind{follower="b"} 12\nbehindhand 99\nplain 4\n';
    expect(parseGreatest(text, "behind")).toBe(12);
    expect(parseGreatest(text, "plain")).toBe(4);
    expect(parseGreatest(text, "gone")).toBe(0);
  });
});
