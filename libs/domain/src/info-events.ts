import type { NewEvent } from "./events.ts";
import { effectiveLabels, type Label } from "./labels.ts";

/** What the record said of a node before a report. The store's NodeRecord is one. */
export interface NodeBeforeReport {
  readonly id: string;
  readonly infoDigest: string | null;
  /** Labels of every tier. */
  readonly labels: readonly Label[];
}

/** What a node newly says about itself. The store's InfoReport is one. */
export interface NewsOfNode {
  /** Equal digests mean equal reports. */
  readonly digest: string;
  readonly agentLabels: Readonly<Record<string, string>>;
}

/**
 * The events of a report that says something new about a node: one of its information, and one of its labels if those in
 * effect change. Whoever saves a report appends them in the same transaction.
 */
export function nodeInfoEvents(before: NodeBeforeReport, report: NewsOfNode): readonly NewEvent[] {
  const circumstances = {
    subject: before.id,
    actor: `node:${before.id}`,
    reason: "AGENT_REPORTED",
    message: "",
  };
  const infoChanged: NewEvent = {
    ...circumstances,
    type: "node.info.changed",
    before: before.infoDigest === null ? null : { infoDigest: before.infoDigest },
    after: { infoDigest: report.digest },
  };
  const others = before.labels.filter(({ tier }) => tier !== "agent");
  const own = Object.entries(report.agentLabels).map(
    ([key, value]): Label => ({ key, value, tier: "agent" }),
  );
  const was = valuesOf(before.labels);
  const is = valuesOf([...others, ...own]);
  const changed = [...new Set([...was.keys(), ...is.keys()])].filter(
    (key) => was.get(key) !== is.get(key),
  );
  if (changed.length === 0) return [infoChanged];
  const labels = {
    before: { labels: only(was, changed) },
    after: { labels: only(is, changed) },
  };
  return [infoChanged, { ...circumstances, type: "node.labels.changed", ...labels }];
}

function valuesOf(labels: readonly Label[]): ReadonlyMap<string, string> {
  return new Map(effectiveLabels(labels).map(({ key, value }) => [key, value]));
}

/** The changed ones alone, so that events stay small. A key that has no value is not there. */
function only(
  values: ReadonlyMap<string, string>,
  keys: readonly string[],
): Readonly<Record<string, string>> {
  const present = keys.flatMap((key): [string, string][] => {
    const value = values.get(key);
    return value === undefined ? [] : [[key, value]];
  });
  return Object.fromEntries(present);
}
