import { readPackages } from "./workspace.ts";

/** The declaration of a metric. */
export interface MetricFacts {
  readonly name: string;
  readonly kind: string;
  readonly labels: readonly string[];
}

const DECLARATION = /\b(counter|gauge|histogram)(?:<[^>]*>)?\(\s*[\w#.]+,\s*\{([^}]*)\}/g;
const DOCUMENTED = /^\| `(\w+)(?:\{([\w,]+)\})?` \| (\w+) \|/gm;

/** Find every metric that the code declares, sorted by name. Ignores tests and simulations. */
export function declaredMetrics(): readonly MetricFacts[] {
  const files = readPackages().flatMap((one) => one.files);
  const texts = files.filter(({ path }) => !/\.test\.ts$|\/testing\/|^bench\//.test(path)).map(({ text }) => text);
  return byName(
    texts.flatMap((text) => [...text.matchAll(DECLARATION)].flatMap(([, kind, body]) => parse(kind, body))),
  );
}

/** Find every metric that a page lists in its tables, sorted by name. */
export function documentedMetrics(page: string): readonly MetricFacts[] {
  const rows = [...page.matchAll(DOCUMENTED)];
  return byName(rows.map(([, name = "", labels = "", kind = ""]) => ({ name, kind, labels: split(labels) })));
}

/** Return the names under which Prometheus stores a metric. */
export function seriesOf({ name, kind }: MetricFacts): readonly string[] {
  return kind === "histogram" ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name];
}

function parse(kind = "", body = ""): readonly MetricFacts[] {
  const [, name] = /\bname: "(rollcall_\w+)"/.exec(body) ?? [];
  const [, labels = ""] = /labelNames: \[([^\]]*)\]/.exec(body) ?? [];
  return name === undefined ? [] : [{ name, kind, labels: split(labels.replaceAll('"', "")) }];
}

function split(labels: string): readonly string[] {
  return labels
    .split(",")
    .map((label) => label.trim())
    .filter((label) => label !== "")
    .sort();
}

function byName(metrics: readonly MetricFacts[]): readonly MetricFacts[] {
  const unique = new Map(metrics.map((metric) => [metric.name, metric]));
  return [...unique.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}
