import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "../../support/workspace.ts";
import { runDrill } from "../drill.ts";

const LIMIT_MS = 900_000;

describe("the kits for agents", () => {
  it(
    "should live through the deaths of health replicas without an event of a loss",
    async () => {
      expect(await runDrill(["--short", "kits"], LIMIT_MS)).toContain("PASSED: 2 of 2 agents lived through 4 kills");
    },
    LIMIT_MS,
  );

  it("should be led to by a page whose files exist", () => {
    const page = readFileSync(join(workspaceRoot, "docs/write-an-agent.md"), "utf8");
    const linked = [...page.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, path = ""]) => join("docs", path));
    expect(linked.length).toBeGreaterThan(3);
    for (const path of linked) expect(readFileSync(join(workspaceRoot, path)).length).toBeGreaterThan(0);
  });
});
