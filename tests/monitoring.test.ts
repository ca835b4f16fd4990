import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { parse } from "yaml";
import { anchorsIn } from "../docs/.vitepress/site/links.ts";
import { slugOf } from "../docs/.vitepress/site/pages.ts";
import { createMetrics } from "../libs/process/src/index.ts";
import { needs } from "../libs/testkit/src/jest/needs.ts";
import { declaredMetrics, seriesOf } from "./support/metric-list.ts";
import { workspaceRoot } from "./support/workspace.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

interface RuleTests {
  readonly tests: readonly {
    readonly input_series: readonly { readonly series: string }[];
    readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[];
  }[];
}

interface Dashboard {
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly targets?: readonly { readonly expr: string }[];
  }[];
}

const ALERTS = "deploy/monitoring/alerts.yaml";
const ALERT_TESTS = "deploy/monitoring/alerts.test.yaml";
const read = (path: string) => readFileSync(join(workspaceRoot, path), "utf8");
const groups: readonly { readonly rules: readonly Rule[] }[] = parse(read(ALERTS)).groups;
const rules = groups.flatMap((group) => group.rules);
const ruleTests: RuleTests = parse(read(ALERT_TESTS));
const dashboard: Dashboard = JSON.parse(read("deploy/monitoring/dashboard.json"));
const expressions = [
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ...dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
];
const LINK = /^\{\{ with (\S+) \}\}\{\{ \. \}\}#(\w+)\{\{ end \}\}$/;
const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

/** Return the names of series in an expression, and the labels in their selectors. */
function selectorsIn(expression: string) {
  const selectors = [...expression.matchAll(/\b((?:rollcall|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)];
  return selectors.map(([, name = "", labels = ""]) => ({
    name,
    labels: [...labels.matchAll(/(\w+)\s*[=!]~?=?/g)].map(([, label = ""]) => label),
  }));
}

describe("alerts and dashboard", () => {
  const own = new Map(declaredMetrics().flatMap((metric) => seriesOf(metric).map((series) => [series, metric])));
  const ofNode = new Set(
    createMetrics()
      .getMetricsAsArray()
      .map(({ name }) => name),
  );
  const OF_TARGETS = ["job", "instance", "worker", "le"];

  it.each(expressions)("should name only metrics and labels that exist: %s", (_, expression) => {
    for (const { name, labels } of selectorsIn(expression)) {
      if (!name.startsWith("rollcall_")) {
        expect(ofNode).toContain(name);
        continue;
      }
      const metric = own.get(name);
      expect({ name, isThere: metric !== undefined }).toEqual({ name, isThere: true });
      for (const label of labels) expect([...(metric?.labels ?? []), ...OF_TARGETS]).toContain(label);
    }
  });

  it("should group and show by labels that some metric of the expression has", () => {
    for (const [, expression] of expressions) {
      const known = selectorsIn(expression).flatMap(({ name }) => own.get(name)?.labels ?? []);
      const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/,\s*/));
      for (const label of grouped) expect([...known, ...OF_TARGETS]).toContain(label);
    }
  });

  it("should number the panels of the dashboard one by one", () => {
    expect(dashboard.panels.map(({ id }) => id)).toEqual(dashboard.panels.map((_, at) => at + 1));
  });
});

describe("the runbook", () => {
  const page = read("docs/runbook.md");

  it("should have a section for every alert, in their order", () => {
    expect([...page.matchAll(/^## (.*)$/gm)].map(([, title]) => title)).toEqual(rules.map(({ alert }) => alert));
  });

  it.each(rules)("should be linked from $alert with an absolute URL or without any link", ({ alert, annotations }) => {
    // The link must be a complete URL. A path is useless in an alert, because only Prometheus's configuration contains
    // the host.
    const [, url, anchor = ""] = LINK.exec(annotations.runbook_url) ?? [];
    expect(url).toBe("$externalLabels.rollcall_runbook");
    expect(anchorsIn(page)).toContain(anchor);
    expect(anchor).toBe(slugOf(alert));
  });

  it("should name the label that the alerts read, as the example configuration does", () => {
    const label = 'external_labels: { rollcall_runbook: "https://docs.example.org/runbook" }';
    for (const path of ["docs/runbook.md", "deploy/monitoring/prometheus.yaml"]) expect(read(path)).toContain(label);
  });
});

describe("the tests of alerts", () => {
  it("should make every alert fire", () => {
    const cases = ruleTests.tests.flatMap((one) => one.alert_rule_test);
    const firing = cases.filter(({ exp_alerts }) => exp_alerts.length > 0).map(({ alertname }) => alertname);
    expect([...new Set(firing)].sort()).toEqual(rules.map(({ alert }) => alert).sort());
  });

  it("should use series that exist", () => {
    const known = new Set(declaredMetrics().flatMap(seriesOf));
    const series = ruleTests.tests.flatMap((one) => one.input_series.map((it) => it.series.replace(/\{.*/, "")));
    for (const name of series.filter((it) => it.startsWith("rollcall_"))) expect(known).toContain(name);
  });

  needs("promtool", hasPromtool).it("should hold in Prometheus itself", () => {
    const run = (...words: string[]) => spawnSync("promtool", words, { cwd: workspaceRoot, encoding: "utf8" });
    expect(run("check", "rules", ALERTS)).toMatchObject({ status: 0 });
    expect(run("test", "rules", ALERT_TESTS)).toMatchObject({ status: 0, stderr: "" });
  });
});
