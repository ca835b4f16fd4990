import { type Json, type NewEvent, schedulingEvent } from "../events/events.ts";
import { effectiveLabels, type Label } from "../labels/labels.ts";
import { deriveScheduling, type Hold, type Scheduling } from "../states.ts";
import { type Hardware, hardwareOf } from "./hardware.ts";
import { hardwareEvent, missingHardware, type Trouble } from "./hardware-conditions.ts";
import { conditionsEvent, conditionsOf, holdsAfterReport } from "./node-conditions.ts";

/** A node's state in the store before a report. Node has these fields. */
export interface NodeBeforeReport {
  readonly id: string;
  readonly infoDigest: string | null;
  /** Labels of every tier. */
  readonly labels: readonly Label[];
  /** The approved hardware; null if none was approved yet. */
  readonly approvedHardware: Hardware | null;
  /** Previously missing hardware. */
  readonly missingHardware: readonly Trouble[];
  /** The node's last reported information, as protobuf JSON; null if there is none. */
  readonly info: Json;
  readonly holds: readonly Hold[];
  readonly scheduling: Scheduling;
}

/** New information from a node. InfoReport has these fields. */
export interface NewsOfNode {
  /** The digest of the report. Equal digests mean equal reports. */
  readonly digest: string;
  /** A NodeInfo as protobuf JSON. */
  readonly info: Json;
  readonly agentLabels: Readonly<Record<string, string>>;
}

/**
 * The events of a report with new information about a node: one for the information, one if effective labels
 * change, one if approved hardware is newly missing or has returned, and the events for conditions and their hold.
 * They are appended in the transaction that saves the report.
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

/** The event if the hold for conditions is added, removed or gets another cause; null if it does not change. */
function holdEvent(before: NodeBeforeReport, { info }: NewsOfNode, actor: string): NewEvent | null {
  const { id: subject, holds, scheduling } = before;
  // The store sets the time of a new hold. Until then, any time works that is later than those of all other holds.
  const after = holdsAfterReport(holds, info, { actor, atMs: Number.MAX_SAFE_INTEGER });
  if (after === holds) return null;
  const message = after.find(({ kind }) => kind === "CONDITION")?.message ?? "";
  return schedulingEvent({ subject, before: scheduling, after: deriveScheduling(after, 0), actor, message });
}

/** The event of changed labels; null if the effective labels and who set them are unchanged. */
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

/** Return only the changed labels, to keep events small. The result omits removed labels. */
function only(labels: ReadonlyMap<string, Label>, keys: readonly string[]): Readonly<Record<string, string>> {
  const present = keys.flatMap((key): [string, string][] => {
    const label = labels.get(key);
    return label === undefined ? [] : [[key, label.value]];
  });
  return Object.fromEntries(present);
}
