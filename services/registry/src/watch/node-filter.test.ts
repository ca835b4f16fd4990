import { describe, expect, it } from "@jest/globals";
import { type EventType, type Json, parseSelector } from "@rollcall/domain";
import type { EventRow, Node } from "@rollcall/store";
import { compileNodeFilter } from "./node-filter.ts";

type Filter = Parameters<typeof compileNodeFilter>[0];

const NODE = {
  type: "COMPUTE",
  membership: { state: "APPROVED" },
  connection: { state: "CONNECTED" },
  health: { state: "UNHEALTHY" },
  labels: [
    { key: "zone", value: "a", tier: "agent" },
    { key: "zone", value: "b", tier: "operator" },
  ],
} as unknown as Node;

const eventOf = (type: EventType, before: Json | null = null, after: Json | null = null) =>
  ({ type, before, after, subject: "n1" }) as unknown as EventRow;

function selecting(text: string): Filter {
  const parsed = parseSelector(text);
  if (!parsed.ok) throw new Error(text);
  return { selector: parsed.selector };
}

describe("isWanted()", () => {
  it.each<[string, Filter, boolean]>([
    ["no filter", {}, true],
    ["its type", { types: ["COMPUTE"] }, true],
    ["another type", { types: ["ORCHESTRATOR"] }, false],
    ["one of the memberships", { memberships: ["PENDING", "APPROVED"] }, true],
    ["other memberships", { memberships: ["PENDING", "REJECTED"] }, false],
    ["its connection", { statuses: ["CONNECTED"] }, true],
    ["its health", { statuses: ["HEALTHY", "UNHEALTHY"] }, true],
    ["other statuses", { statuses: ["HEALTHY", "DISCONNECTED"] }, false],
    ["the label in effect", selecting("zone=b"), true],
    ["the label under it", selecting("zone=a"), false],
    ["kinds that all match", { ...selecting("zone"), memberships: ["APPROVED"] }, true],
    ["a kind that does not", { ...selecting("zone"), memberships: ["REJECTED"] }, false],
  ])("should take %s", (_, filter, expected) => {
    expect(compileNodeFilter(filter).isWanted(NODE)).toBe(expected);
  });

  it("should not use the health of a control-plane process, which has none", () => {
    const orchestrator = { ...NODE, type: "ORCHESTRATOR" } as Node;
    const isWanted = (filter: Filter) => compileNodeFilter(filter).isWanted(orchestrator);
    expect(isWanted({ statuses: ["UNHEALTHY"] })).toBe(false);
    expect(isWanted({ statuses: ["CONNECTED"] })).toBe(true);
  });
});

describe("mayHaveEnded()", () => {
  const rejected = eventOf("node.rejected", { membership: "APPROVED" }, { membership: "REJECTED" });
  const relabeled = eventOf("node.labels.changed", { labels: { zone: "a" } }, { labels: { rack: "1" } });
  const unwell = eventOf("node.health.changed", { health: "HEALTHY" }, { health: "UNHEALTHY" });
  const lost = eventOf("node.connection.changed", { connection: "CONNECTED" }, { connection: "DISCONNECTED" });
  it.each<[string, Filter, EventRow, boolean]>([
    ["a removal, whatever the filter", {}, eventOf("node.deleted"), true],
    ["a node that left", {}, eventOf("node.deregistered"), true],
    ["a membership that was wanted", { memberships: ["APPROVED"] }, rejected, true],
    ["a membership that was not", { memberships: ["REJECTED"] }, rejected, false],
    ["a membership that is not asked for", { statuses: ["HEALTHY"] }, rejected, false],
    ["a ban", { memberships: ["APPROVED"] }, { ...rejected, type: "node.banned" }, true],
    ["health that was wanted", { statuses: ["HEALTHY"] }, unwell, true],
    ["health that was not", { statuses: ["UNHEALTHY"] }, unwell, false],
    ["a connection that was wanted", { statuses: ["CONNECTED"] }, lost, true],
    ["a label that was taken away", selecting("zone=a"), relabeled, true],
    ["a label that came", selecting("!rack"), relabeled, true],
    ["a label that is not asked for", selecting("gpu"), relabeled, false],
    ["facts", selecting("zone=a"), eventOf("node.info.changed"), false],
    ["what is about no node", {}, eventOf("access.token.created"), false],
  ])("should report %s", (_, filter, event, expected) => {
    const { mayHaveEnded } = compileNodeFilter(filter);
    expect(mayHaveEnded([event])).toBe(expected);
    expect(mayHaveEnded([eventOf("node.info.changed"), event])).toBe(expected);
  });

  it("should not report an end without a change", () => {
    expect(compileNodeFilter({ memberships: ["APPROVED"] }).mayHaveEnded([])).toBe(false);
  });
});
