import { describe, expect, it } from "@jest/globals";
import { UsageError } from "../failure.ts";
import { fillTemplate } from "./jsonpath.ts";

const RESPONSE = {
  nodes: [
    { id: "web-1", labels: { zone: "a" }, gpus: 0 },
    { id: "web-2", labels: { zone: "b" }, gpus: 2 },
  ],
};

describe("fillTemplate()", () => {
  it.each([
    ["{.nodes[*].id}", "web-1 web-2\n"],
    ["{$.nodes[0].labels.zone}", "a\n"],
    ["{.nodes[-1:].gpus}", "2\n"],
    ["{.nodes[?(@.gpus>0)].id}", "web-2\n"],
    ["{..zone}", "a b\n"],
    ['first: {.nodes[0].id}{"\\n"}', "first: web-1\n"],
    ["{.nodes[0].labels}", '{"zone":"a"}\n'],
    ["{.none}", "\n"],
    ["plain", "plain\n"],
  ])("should fill in %s", (template, text) => {
    expect(fillTemplate(template, RESPONSE)).toBe(text);
  });

  it.each(["{.nodes[}", "{nodes}", '{"open}'])("should refuse %s", (template) => {
    expect(() => fillTemplate(template, RESPONSE)).toThrow(UsageError);
  });
});
