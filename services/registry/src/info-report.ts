import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import { effectiveLabels, type Label, type NewEvent } from "@rollcall/domain";
import { refuse } from "@rollcall/runtime";
import type { InfoReport, NodeRecord } from "@rollcall/store";
import { nodeInfoToRecord, nodeInfoViolations } from "@rollcall/wire";

/** Read what a node says about itself. Throws INVALID_LABEL or INVALID_REQUEST, each with every violation. */
export function parseInfo(info: NodeInfo): InfoReport {
  const { labels, others } = nodeInfoViolations(info);
  if (labels.length > 0) throw invalid("INVALID_LABEL", labels);
  if (others.length > 0) throw invalid("INVALID_REQUEST", others);
  const report = nodeInfoToRecord(info);
  const cores = Math.min(report.summary.cores, MOST_CORES);
  return { ...report, summary: { ...report.summary, cores } };
}

/** What the record's column can hold; no machine has more. */
const MOST_CORES = 2 ** 31 - 1;

type Violations = ReturnType<typeof nodeInfoViolations>["labels"];

function invalid(reason: "INVALID_LABEL" | "INVALID_REQUEST", violations: Violations): Error {
  const message = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  return refuse(reason, message, { violations });
}

/** The events of a report that says something new about a node: of its information, and of its labels if they change. */
export function reportEvents(before: NodeRecord, report: InfoReport): readonly NewEvent[] {
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
  const labelsChanged: NewEvent = {
    ...circumstances,
    type: "node.labels.changed",
    before: { labels: only(was, changed) },
    after: { labels: only(is, changed) },
  };
  return [infoChanged, labelsChanged];
}

function valuesOf(labels: readonly Label[]): ReadonlyMap<string, string> {
  return new Map(effectiveLabels(labels).map(({ key, value }) => [key, value]));
}

/** The changed ones alone: events stay small. A key that is missing has no value. */
function only(
  values: ReadonlyMap<string, string>,
  keys: readonly string[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    keys.flatMap((key) => {
      const value = values.get(key);
      return value === undefined ? [] : [[key, value] as const];
    }),
  );
}
