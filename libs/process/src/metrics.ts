import {
  Counter,
  type CounterConfiguration,
  collectDefaultMetrics,
  Gauge,
  type GaugeConfiguration,
  Histogram,
  type HistogramConfiguration,
  Registry,
} from "prom-client";

/** Holds a process's metrics until they are scraped. */
export type MetricsRegistry = Registry;

/** Create a process's registry with the metrics of Node.js: memory, CPU, garbage collection, event loop lag. */
export function createMetrics(options: { readonly defaults?: boolean } = {}): MetricsRegistry {
  const registry = new Registry();
  if (options.defaults ?? true) collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return registry;
}

/**
 * Gauges whose names look like counters. They are removed, because the same values are also available by type,
 * under names without "_total".
 */
const MISNAMED = ["nodejs_active_resources_total", "nodejs_active_handles_total", "nodejs_active_requests_total"];

/** A counter with labels. */
export type LabelledCounter<L extends string> = Counter<L>;

/** Get a counter by name. The first call creates it; two servers in one process share it. */
export function counter<L extends string>(
  registry: MetricsRegistry,
  configuration: Omit<CounterConfiguration<L>, "registers">,
): Counter<L> {
  const known = registry.getSingleMetric(configuration.name);
  if (known instanceof Counter) return known;
  return new Counter<L>({ ...configuration, registers: [registry] });
}

/** Get a gauge by name. The first call creates it. */
export function gauge<L extends string>(
  registry: MetricsRegistry,
  configuration: Omit<GaugeConfiguration<L>, "registers">,
): Gauge<L> {
  const known = registry.getSingleMetric(configuration.name);
  if (known instanceof Gauge) return known;
  return new Gauge<L>({ ...configuration, registers: [registry] });
}

/** Get a histogram by name. The first call creates it. */
export function histogram<L extends string>(
  registry: MetricsRegistry,
  configuration: Omit<HistogramConfiguration<L>, "registers">,
): Histogram<L> {
  const known = registry.getSingleMetric(configuration.name);
  if (known instanceof Histogram) return known;
  return new Histogram<L>({ ...configuration, registers: [registry] });
}

const scrapers = new WeakMap<MetricsRegistry, (() => void)[]>();

/** Register a function that updates values before each scrape of the registry. */
export function onScrape(registry: MetricsRegistry, update: () => void): void {
  const known = scrapers.get(registry);
  if (known === undefined) scrapers.set(registry, [update]);
  else known.push(update);
}

/** The registry's content in the Prometheus text format. */
export async function renderMetrics(registry: MetricsRegistry): Promise<string> {
  for (const update of scrapers.get(registry) ?? []) update();
  return await registry.metrics();
}
