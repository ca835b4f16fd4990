import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { declaredMetrics, documentedMetrics } from "./support/metric-list.ts";
import { readPackages, workspaceRoot } from "./support/workspace.ts";

const page = readFileSync(join(workspaceRoot, "docs/metrics.md"), "utf8");

describe("docs/metrics.md", () => {
  it("should list every metric with its kind and its labels, and no other", () => {
    expect(documentedMetrics(page)).toEqual(declaredMetrics());
  });

  it("should compare with a list that contains every metric of the code", () => {
    const files = readPackages().flatMap((one) => one.files);
    const sources = files.filter(({ path }) => !/\.test\.ts$|\/testing\/|^bench\//.test(path));
    const named = sources.flatMap(({ text }) =>
      [...text.matchAll(/\bname: "(rollcall_\w+)"/g)].map(([, name]) => name),
    );
    expect(declaredMetrics().map(({ name }) => name)).toEqual([...new Set(named)].sort());
  });
});
