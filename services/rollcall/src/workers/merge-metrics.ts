/** Metrics of one process, in Prometheus' text format. */
export interface MetricsText {
  /** The value of the label `worker`. */
  readonly worker: string;
  readonly text: string;
}

/** One metric of all processes. */
interface Family {
  readonly head: string[];
  readonly samples: string[];
}

const HEAD = /^# (?:HELP|TYPE) (\S+)/;
const SAMPLE = /^([a-zA-Z_:][\w:]*)(\{)?/;

/**
 * Merge the metrics of several processes, with the label `worker` on each sample. The samples of one metric are
 * adjacent, as the format requires. Values are not added up; readers can sum over workers.
 */
export function mergeMetrics(texts: readonly MetricsText[]): string {
  const families = new Map<string, Family>();
  for (const { worker, text } of texts) addTo(families, worker, text);
  const blocks = [...families.values()].map(({ head, samples }) => [...head, ...samples].join("\n"));
  return `${blocks.join("\n\n")}\n`;
}

function addTo(families: Map<string, Family>, worker: string, text: string): void {
  let current: Family | null = null;
  const seen = new Set<string>();
  for (const line of text.split("\n")) {
    const [, name] = HEAD.exec(line) ?? [];
    if (name !== undefined) {
      const known: Family = families.get(name) ?? { head: [], samples: [] };
      families.set(name, known);
      current = known;
      // Keep the header only once, because every process has the same one.
      if (known.samples.length === 0 && !seen.has(line) && !known.head.includes(line)) {
        known.head.push(line);
      }
      seen.add(line);
    } else if (line !== "" && !line.startsWith("#")) {
      current?.samples.push(labelled(line, worker));
    }
  }
}

function labelled(line: string, worker: string): string {
  const label = `worker="${worker}"`;
  return line.replace(SAMPLE, (_, name: string, brace: string | undefined) =>
    brace === undefined ? `${name}{${label}}` : `${name}{${label},`,
  );
}
