import { type Json, type NewEvent, schedulingEvent } from "../events/events.ts";
import { effectiveLabels, type Label } from "../labels/labels.ts";
import { deriveScheduling, type Hold, type Scheduling } from "../states.ts";
import { type Hardware, hardwareOf } from "./hardware.ts";
import { hardwareEvent, missingHardware, type Trouble } from "./hardware-conditions.ts";
import { conditionsEvent, conditionsOf, holdsAfterReport } from "./node-conditions.ts";

/** What the record said of a node before a report. NodeRecord is one. */
export interface NodeBeforeReport {
  readonly id: string;
  readonly infoDigest: string | null;
  /** Labels of every tier. */
  readonly labels: readonly Label[];
  /** The hardware that was approved; null as long as none was. */
  readonly approvedHardware: Hardware | null;
  /** What was missing of it. */
  readonly missingHardware: readonly Trouble[];
  /** What it said of itself, as protobuf JSON; null when it had said nothing. */
  readonly info: Json;
  readonly holds: readonly Hold[];
  readonly scheduling: Scheduling;
}

/** What a node newly says about itself. InfoReport is one. */
export interface NewsOfNode {
  /** Equal digests mean equal reports. */
  readonly digest: string;
  /** A NodeInfo as protobuf JSON. */
  readonly info: Json;
  readonly agentLabels: Readonly<Record<string, string>>;
}

/**
 * The events of a report that says something new about a node: one of its information, one of its labels if those in
 * effect change, one of its hardware if something of what was approved is newly missing, or there again, and those of
 * its conditions and of the hold for them. They are appended in the transaction that saves the report.
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
  const own = Object.entries(report.agentLabels).map(([key, value]): Label => ({ key, value, tier: "agent" }));
  const labels = labelsEvent({
    ...circumstances,
    before: before.labels,
    after: [...others, ...own],
  });
  const hardware = hardwareEvent({
    ...circumstances,
    before: before.missingHardware,
    after: missingHardware(before.approvedHardware, hardwareOf(report.info), before.missingHardware),
  });
  const conditions = conditionsEvent({
    ...circumstances,
    before: conditionsOf(before.info),
    after: conditionsOf(report.info),
  });
  const further = [labels, hardware, conditions, holdEvent(before, report, circumstances.actor)];
  return [infoChanged, ...further.filter((event) => event !== null)];
}

/** The event of a hold for conditions that is placed or lifted, or has another cause; null when it stays as it is. */
function holdEvent(before: NodeBeforeReport, { info }: NewsOfNode, actor: string): NewEvent | null {
  const { id: subject, holds, scheduling } = before;
  // The record's clock sets its time, and it is the newest hold.
  const after = holdsAfterReport(holds, info, { actor, atMs: Number.MAX_SAFE_INTEGER });
  if (after === holds) return null;
  const message = after.find(({ kind }) => kind === "CONDITION")?.message ?? "";
  return schedulingEvent({ subject, before: scheduling, after: deriveScheduling(after, 0), actor, message });
}

/** The event of labels of any tier having changed; null when what is in effect, and who set it, is as it was. */
export function labelsEvent(change: {
  readonly subject: string;
  readonly actor: string;
  readonly reason: string;
  readonly message: string;
  /** Labels of every tier. */
  readonly before: readonly Label[];
  readonly after: readonly Label[];
}): NewEvent | null {
  const { before, after, ...circumstances } = change;
  const was = inEffect(before);
  const is = inEffect(after);
  const changed = [...new Set([...was.keys(), ...is.keys()])].filter((key) => {
    const [left, right] = [was.get(key), is.get(key)];
    return left?.value !== right?.value || left?.tier !== right?.tier;
  });
  if (changed.length === 0) return null;
  return {
    ...circumstances,
    type: "node.labels.changed",
    before: { labels: only(was, changed) },
    after: { labels: only(is, changed) },
  };
}

function inEffect(labels: readonly Label[]): ReadonlyMap<string, Label> {
  return new Map(effectiveLabels(labels).map((label) => [label.key, label]));
}

/** The changed ones alone, so that events stay small. A key that has no value is not there. */
function only(labels: ReadonlyMap<string, Label>, keys: readonly string[]): Readonly<Record<string, string>> {
  const present = keys.flatMap((key): [string, string][] => {
    const label = labels.get(key);
    return label === undefined ? [] : [[key, label.value]];
  });
  return Object.fromEntries(present);
}
