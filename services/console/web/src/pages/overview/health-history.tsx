import type { Event } from "@rollcall/api/rollcall/events/v1/events_pb";
import { useEffect, useMemo, useState } from "react";
import { events, registry } from "../../live/clients.ts";
import { fleet, useLarge, useSummary } from "../../live/fleet.ts";
import { log } from "../../live/log.ts";
import { useRead } from "../../live/queries.ts";
import { type HealthChange, healthOverTime } from "../../state/health-history.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { exactTime } from "../../state/time-words.ts";
import { Sparkline } from "../../ui/meters.tsx";

const REGISTERED = "node.registered";
const TYPES = [REGISTERED, "node.health.changed"];
const HOUR_MS = 3_600_000;
/** Time spans, longest first. The chart shows the longest span whose changes fit into MOST_PAGES. */
const SPANS = [
  { ms: 24 * HOUR_MS, words: "24 hours" },
  { ms: HOUR_MS, words: "hour" },
  { ms: HOUR_MS / 12, words: "5 minutes" },
] as const;
const MOST_PAGES = 3;
const PAGE = 1_000;
/** Maximum number of live changes that are kept in addition to the loaded ones. */
const MOST_LIVE = 5_000;

/**
 * The health of all approved machines during the last day, or during a shorter time if there were too many changes.
 */
export function HealthHistory() {
  const summary = useSummary();
  const isLarge = useLarge();
  const read = useRead(["health-history"], readHistory);
  const [live, setLive] = useState<readonly HealthChange[]>([]);
  useEffect(() => log.listen((came) => setLive((before) => [...before, ...changesOf(came)].slice(-MOST_LIVE))), []);
  const past = read.data;
  const points = useMemo(() => {
    if (past === undefined) return [];
    const nowMs = Date.now();
    // Remove duplicates, because changes that arrived while the history was loading are in both lists.
    const known = new Set(past.changes.map(nameOf));
    const all = [...past.changes, ...live.filter((change) => !known.has(nameOf(change)))];
    const counted = all.filter(({ id }) => {
      const row = fleet.rows.get(id);
      return row?.type === "compute" && row.membership.word === "APPROVED";
    });
    const { span, knownFromMs } = past;
    return healthOverTime(summary.health, counted, { fromMs: nowMs - span.ms, nowMs, knownFromMs });
  }, [past, live, summary]);
  // Draw nothing for a large fleet, because the page does not know which changes are about machines that it counts.
  if (past === undefined || isLarge) return null;
  const lines = [
    { name: "Healthy", tone: "good", values: points.map(({ well }) => well) },
    { name: "Unhealthy or unknown", tone: "bad", values: points.map(({ unwell }) => unwell) },
  ] as const;
  return (
    <div className="grid narrow">
      {lines.map(({ name, tone, values }) => {
        return (
          <figure key={name}>
            <Sparkline
              values={values}
              tone={tone}
              name={`${name}, last ${past.span.words}`}
              whenOf={(at) => exactTime(points[at]?.atMs ?? 0)}
            />
          </figure>
        );
      })}
    </div>
  );
}

const nameOf = ({ id, atMs, after }: HealthChange) => `${id} ${atMs} ${after}`;

async function readHistory(signal: AbortSignal) {
  const keptFromMs = await readKeptFrom(signal);
  for (const span of SPANS) {
    const changes = await readSince(Date.now() - span.ms, signal);
    if (changes !== null) return { span, changes, knownFromMs: keptFromMs };
  }
  // Even the shortest span has too many changes, so the chart begins now.
  return { span: SPANS[2], changes: [], knownFromMs: Date.now() };
}

/** The time from which the log has every change; 0 if nothing has been compacted. */
async function readKeptFrom(signal: AbortSignal): Promise<number> {
  const { log: status } = await registry.getControlPlaneStatus({}, { signal });
  if ((status?.compactedRevision ?? 0n) === 0n) return 0;
  const { events: kept } = await events.listEvents({ pageSize: 1 }, { signal });
  return toMs(kept[0]?.time) ?? Date.now();
}

/** The changes since a time; null when there are too many. */
async function readSince(sinceMs: number, signal: AbortSignal): Promise<readonly HealthChange[] | null> {
  const fromTime = { seconds: BigInt(Math.floor(sinceMs / 1000)), nanos: 0 };
  const changes: HealthChange[] = [];
  let pageToken = "";
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const read = await events.listEvents({ types: TYPES, fromTime, pageSize: PAGE, pageToken }, { signal });
    changes.push(...changesOf(read.events));
    pageToken = read.nextPageToken;
    if (pageToken === "") return changes;
  }
  return null;
}

function changesOf(came: readonly Event[]): readonly HealthChange[] {
  return came
    .filter(({ type }) => TYPES.includes(type))
    .map(({ type, subject, time, before, after }) => ({
      id: subject,
      atMs: toMs(time) ?? 0,
      before: type === REGISTERED ? "" : String(before?.health ?? ""),
      after: type === REGISTERED ? "UNKNOWN" : String(after?.health ?? ""),
    }));
}
