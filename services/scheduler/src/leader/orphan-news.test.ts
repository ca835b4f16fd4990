import { describe, expect, it } from "@jest/globals";
import { OrphanNews } from "./orphan-news.ts";

const found = (count: number, nodeId = "n1", job = "web") => Array.from({ length: count }, () => ({ nodeId, job }));
const countsOf = (events: ReturnType<OrphanNews["add"]>) =>
  events.map(({ after }) => (after as { readonly count: number }).count);

describe("OrphanNews", () => {
  it("should publish the first at once, with their nodes and jobs", () => {
    const events = new OrphanNews("scheduler:s1").add([...found(2, "b"), ...found(1, "a", "db")], 0);
    expect(events).toMatchObject([
      {
        ...{ type: "job.executions.orphaned", subject: "cluster", actor: "scheduler:s1", before: null },
        after: { count: 3, nodes: ["a", "b"], jobs: ["db", "web"] },
      },
    ]);
  });

  it("should combine thousands into a handful of events that add up to all of them", () => {
    const news = new OrphanNews("scheduler:s1");
    const counts: number[] = [];
    for (let page = 0; page < 20; page += 1) counts.push(...countsOf(news.add(found(500), page * 100)));
    expect(counts).toEqual([500, 500, 1_000, 2_000, 4_000]);
    expect(countsOf(news.add([], 61_600))).toEqual([2_000]);
    expect(news.add([], 200_000)).toEqual([]);
  });

  it("should publish later ones once a minute", () => {
    const news = new OrphanNews("scheduler:s1");
    const events: number[] = [];
    for (let second = 0; second < 3_600; second += 1) events.push(...countsOf(news.add(found(1), second * 1_000)));
    expect(events.length).toBeLessThan(400);
    expect(events.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(3_500);
  });

  it("should name 20 nodes and jobs at most", () => {
    const many = Array.from({ length: 50 }, (_, index) => ({ nodeId: `n${index}`, job: `j${index}` }));
    const [event] = new OrphanNews("scheduler:s1").add(many, 0);
    const after = event?.after as { readonly nodes: string[]; readonly jobs: string[]; readonly count: number };
    expect([after.count, after.nodes.length, after.jobs.length]).toEqual([50, 20, 20]);
  });
});
