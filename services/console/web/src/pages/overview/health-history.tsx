import type { Event } from "@rollcall/api/rollcall/events/v1/events_pb";
import { useEffect, useMemo, useState } from "react";
import { events } from "../../live/clients.ts";
import { fleet } from "../../live/fleet.ts";
import { log } from "../../live/log.ts";
import { useObservable } from "../../live/observable.ts";
import { useRead } from "../../live/queries.ts";
import { type HealthChange, healthOverTime } from "../../state/health-history.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { Sparkline } from "../../ui/meters.tsx";

const REGISTERED = "node.registered";
const TYPES = [REGISTERED, "node.health.changed"];
const HOUR_MS = 3_600_000;
/** The longest of these whose changes fit. */
const SPANS = [
  { ms: 24 * HOUR_MS, words: "24 hours" },
  { ms: HOUR_MS, words: "hour" },
  { ms: HOUR_MS / 12, words: "5 minutes" },
] as const;
const MOST_PAGES = 3;
const PAGE = 1_000;
/** Changes that came since the page was opened, kept besides. */
const MOST_LIVE = 5_000;

/** The health of the machines that are approved now, over the last day, or over less where more happened. */
export function HealthHistory() {
  const summary = useObservable(fleet.summary);
  const isLarge = useObservable(fleet.large);
  const read = useRead(["health-history"], readHistory);
  const [live, setLive] = useState<readonly HealthChange[]>([]);
  useEffect(() => log.listen((came) => setLive((before) => [...before, ...changesOf(came)].slice(-MOST_LIVE))), []);
  const past = read.data;
  const points = useMemo(() => {
    if (past === undefined) return [];
    const nowMs = Date.now();
    // Those that came while the past was read are in both.
    const known = new Set(past.changes.map(nameOf));
    const all = [...past.changes, ...live.filter((change) => !known.has(nameOf(change)))];
    const counted = all.filter(({ id }) => {
      const row = fleet.rows.get(id);
      return row?.type === "compute" && row.membership.word === "APPROVED";
    });
    return healthOverTime(summary.health, counted, { fromMs: nowMs - past.span.ms, nowMs });
  }, [past, live, summary]);
  // Of a large fleet the page does not know which of the changes were of machines that it counts.
  if (past === undefined || isLarge) return null;
  const lines = [
    { name: "Healthy", tone: "good", values: points.map(({ well }) => well) },
    { name: "Unhealthy or unknown", tone: "bad", values: points.map(({ unwell }) => unwell) },
  ] as const;
  return (
    <div className="grid narrow">
      {lines.map(({ name, tone, values }) => {
        const label = `${name} over the last ${past.span.words}: ${Math.min(...values)} to ${Math.max(...values)}`;
        return (
          <figure key={name}>
            <Sparkline values={values} tone={tone} label={label} />
            <figcaption className="soft small">
              {name}, last {past.span.words}
            </figcaption>
          </figure>
        );
      })}
    </div>
  );
}

const nameOf = ({ id, atMs, after }: HealthChange) => `${id} ${atMs} ${after}`;

async function readHistory(signal: AbortSignal) {
  for (const span of SPANS) {
    const changes = await readSince(Date.now() - span.ms, signal);
    if (changes !== null) return { span, changes };
  }
  // Too much happened even in the shortest: what comes from now on is shown.
  return { span: SPANS[2], changes: [] };
}

/** What changed since; null when it is more than is read. */
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
