import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "../support/workspace.ts";

const run = promisify(execFile);
const LIMIT_MS = 180_000;
/** The package with Grafana's types for dashboards. The types are generated from Grafana's schema. */
const SCHEMA = "@grafana/schema@12.0.0";
const TYPES = "./node_modules/@grafana/schema/dist/esm/raw";

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly options?: object;
  readonly fieldConfig?: { readonly defaults: { readonly custom?: object } };
}

const text = readFileSync(join(workspaceRoot, "deploy/monitoring/dashboard.json"), "utf8");

// Treats unknown and missing fields and values as errors, in the dashboard, its panels, and the options of each kind
// of panel.
describe("deploy/monitoring/dashboard.json", () => {
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "rollcall-dashboard-"));
    writeFileSync(join(folder, "package.json"), '{"private":true,"type":"module"}');
    const words = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", SCHEMA];
    await run("npm", words, { cwd: folder, timeout: LIMIT_MS });
  }, LIMIT_MS);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Return the compiler's errors for a dashboard. */
  async function problemsOf(dashboard: string): Promise<string> {
    writeFileSync(join(folder, "dashboard.ts"), program(dashboard));
    const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler"];
    const tsc = join(workspaceRoot, "node_modules/.bin/tsc");
    return run(tsc, [...options, "--target", "es2022", "dashboard.ts"], { cwd: folder, timeout: LIMIT_MS }).then(
      () => "",
      ({ stdout }: { readonly stdout: string }) => stdout,
    );
  }

  it("should match Grafana's schema", async () => {
    expect(await problemsOf(text)).toBe("");
  });

  it.each([
    ["refresh", "refrehs"],
    ["reduceOptions", "reduceOption"],
    ["fillOpacity", "fillOpactiy"],
    ['"multi"', '"mutli"'],
  ])("should not be with %s written as %s", async (right, wrong) => {
    expect(text).toContain(right);
    expect(await problemsOf(text.replaceAll(right, wrong))).toMatch(/error TS\d+/);
  });
});

/**
 * Create a program that declares constants for the dashboard. It also declares constants for the parts that the
 * dashboard's type does not check.
 */
function program(dashboard: string): string {
  const { panels }: { readonly panels: readonly Panel[] } = JSON.parse(dashboard);
  const parts = panels.flatMap(({ id, type, options, fieldConfig }) => {
    const written = JSON.stringify(options);
    if (type === "stat") return [`export const options${id}: Words<Partial<Stat>> = ${written};`];
    if (type !== "timeseries") return [];
    return [
      `export const options${id}: Words<Partial<Time>> = ${written};`,
      `export const fields${id}: Words<Partial<TimeFields>> = ${JSON.stringify(fieldConfig?.defaults.custom ?? {})};`,
    ];
  });
  return [
    `import type { Dashboard } from "${TYPES}/dashboard/x/dashboard_types.gen.js";`,
    `import type { Options as Stat } from "${TYPES}/composable/stat/panelcfg/x/StatPanelCfg_types.gen.js";`,
    "import type { FieldConfig as TimeFields, Options as Time }",
    `  from "${TYPES}/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.js";`,
    WORDS,
    `export const dashboard: Words<Dashboard> = ${dashboard};`,
    ...parts,
  ].join("\n");
}

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: it is the compiler that fills them in.
/** A type whose enums are strings, as in JSON. */
const WORDS = [
  "type Words<T> = T extends string ? `${T}` : T extends readonly (infer E)[] ? Words<E>[]",
  "  : T extends object ? { [K in keyof T]: Words<T[K]> } : T;",
].join("\n");
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: see above.
