import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { MANIFESTS, render, toolPath } from "../../../scripts/render-manifests.mjs";
import { manifestsIn, rendered } from "../../kubernetes/manifests.ts";
import { workspaceRoot } from "../../support/workspace.ts";

const folder = mkdtempSync(join(tmpdir(), "rollcall-chart-"));
afterAll(() => rmSync(folder, { recursive: true }));

const isInstalled = (tool: string, word: string) => spawnSync(toolPath(tool), [word]).status === 0;
const describeWithHelm = isInstalled("helm", "version") ? describe : describe.skip;
const describeWithBoth = isInstalled("kubeconform", "-v") ? describeWithHelm : describe.skip;
const everything = join(workspaceRoot, "tests/kubernetes/everything.yaml");
const names = Object.keys(MANIFESTS);

/** Check against the schemas of this repository. Unknown fields and kinds fail. Answers what was found. */
function conform(text: string): string {
  const file = join(folder, "manifests.yaml");
  writeFileSync(file, text);
  const schemas = join(workspaceRoot, "tests/kubernetes/schemas");
  const place = `${schemas}/{{.ResourceKind}}_{{.Group}}_{{.ResourceAPIVersion}}.json`;
  const { stdout, stderr } = spawnSync(
    toolPath("kubeconform"),
    ["-strict", "-summary", "-schema-location", place, file],
    { encoding: "utf8" },
  );
  return `${stdout}${stderr}`;
}

describeWithHelm("deploy/kubernetes", () => {
  it.each(names)("should be what the chart renders: %s (else run `make manifests`)", (name) => {
    expect(rendered(name)).toBe(render({ settings: MANIFESTS[name] ?? [] }));
  });

  it.each([
    ["nonsense=1", "nonsense"],
    ["layout=none", "layout"],
    ["health.autoscaling.sesions=5", "sesions"],
    ["tls.certManager.enabled=true", "issuerRef"],
    ["gateway.enabled=true", "gateway"],
  ])("should refuse the value %s", (setting, why) => {
    expect(() => render({ settings: [setting] })).toThrow(new RegExp(why));
  });
});

describeWithBoth("what the chart renders, against the schemas of Kubernetes", () => {
  it.each(names)("should be valid: %s", (name) => {
    expect(conform(rendered(name))).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/);
  });

  it("should be valid with every option at once", () => {
    const text = render({ files: [everything] });
    expect(conform(text)).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/);
    const kinds = new Set(manifestsIn(text).map(({ kind }) => kind.toLowerCase()));
    const known = readdirSync(join(workspaceRoot, "tests/kubernetes/schemas")).map((name) => name.split("_")[0]);
    expect([...kinds].sort()).toEqual([...new Set(known.filter(Boolean))].map((it) => it?.replace(".json", "")).sort());
  });

  it("should not be when a field is unknown", () => {
    const wrong = rendered("rollcall.yaml").replaceAll("terminationGracePeriodSeconds:", "terminationGraceSeconds:");
    expect(conform(wrong)).toContain("terminationGraceSeconds");
  });
});

describeWithHelm("routes", () => {
  it("should lead to every service of the API, to the console, and to no other", () => {
    const found = execFileSync("grep", ["-rhE", "^(package|service) ", join(workspaceRoot, "proto")], {
      encoding: "utf8",
    });
    let inPackage = "";
    const services = found.split("\n").flatMap((line) => {
      const [word, name = ""] = line
        .replace(/[;{].*$/, "")
        .trim()
        .split(" ");
      if (word === "package") inPackage = name;
      return word === "service" ? [`${inPackage}.${name}`] : [];
    });
    // The ports of agents, of replicas and of keepers are others.
    const others = ["rollcall.health.v1.HealthService", "rollcall.health.v1.HealthInternalService"];
    const expected = services.filter((it) => !others.includes(it) && !it.startsWith("rollcall.keeper.")).sort();
    const manifests = manifestsIn(render({ files: [everything] }));
    const paths = manifests
      .filter(({ kind }) => kind === "HTTPRoute")
      .flatMap(({ spec }) => spec?.rules ?? [])
      .flatMap(({ matches = [] }) => matches.map(({ path }) => path?.value.slice(1)));
    // All else is a page of the console.
    expect(paths.sort()).toEqual(["", ...expected]);
  });
});
