import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { nodeProblem } from "./required-node.ts";

const MANIFEST = new URL("../../../../package.json", import.meta.url);

describe("nodeProblem()", () => {
  it.each(["22.15.0", "22.23.5", "24.0.0", process.versions.node])("should have none with %s", (version) => {
    expect(nodeProblem(version)).toBeNull();
  });

  it.each(["20.20.2", "22.14.0", "21.99.0"])("should name the oldest supported version, and %s", (version) => {
    expect(nodeProblem(version)).toBe(`rollcall needs Node.js 22.15 or later, and this is ${version}`);
  });

  it("should agree with package.json", () => {
    const { engines } = JSON.parse(readFileSync(MANIFEST, "utf8")) as { readonly engines: { readonly node: string } };
    expect(nodeProblem("0.0.0")).toContain(`Node.js ${engines.node.replace(">=", "")} or later`);
  });
});
