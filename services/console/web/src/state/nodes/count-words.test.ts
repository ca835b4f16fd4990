import { describe, expect, it } from "@jest/globals";
import { countWords, type ListCounts } from "./count-words.ts";
import { NO_FILTER } from "./node-filter.ts";

const filtered = { ...NO_FILTER, health: ["UNHEALTHY"] };
const counts: ListCounts = {
  shown: 7,
  loaded: 12_000,
  total: 50_001,
  machines: 50_000,
  state: "complete",
  filter: NO_FILTER,
};

describe("countWords()", () => {
  it.each<[string, Partial<ListCounts>]>([
    ["loaded 12,000 of 50,001 nodes", { state: "loading" }],
    ["loaded 12,000 of 50,001 nodes", { state: "loading", filter: filtered }],
    ["50,000 of 50,000 machines", { shown: 50_000 }],
    ["7 of 50,000 machines", { filter: filtered }],
    ["1 of 50,001 nodes", { shown: 1, filter: { ...NO_FILTER, type: ["control-plane"] } }],
    ["loaded 1,000 of 50,000 machines; scroll to load more", { state: "paged", shown: 1_000 }],
    ["loaded 1,000 matching machines; scroll to load more", { state: "paged", shown: 1_000, filter: filtered }],
    ["loaded 1,000 matching machines; filter to see others", { state: "full", shown: 1_000, filter: filtered }],
  ])("should say %s", (words, change) => {
    expect(countWords({ ...counts, ...change })).toBe(words);
  });
});
