import { EVENT_TYPES } from "@rollcall/domain";
import { useMemo, useRef, useState } from "react";
import { useSearch, useSetSearch } from "../../app/address.ts";
import { events as client, registry } from "../../live/clients.ts";
import { type ShownEvent, showEvent } from "../../live/events-read.ts";
import { useStream } from "../../live/follow.ts";
import { command } from "../../state/cli-command.ts";
import { isoTime } from "../../state/time-words.ts";
import { countOf } from "../../state/units.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { EventList } from "../../ui/event-list.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { Field } from "../../ui/field.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Empty, Loading, Notice } from "../../ui/notices.tsx";
import { PageHead, Panel } from "../../ui/panel.tsx";

/** Maximum number of events that the page keeps. */
const MOST_KEPT = 1000;
/**
 * Number of revisions before the newest one at which the page starts. Each request for earlier events goes back
 * four times as far.
 */
const FIRST_REACH = 500;

/** Live events, filtered by the server. The stream resumes after a disconnect. */
export function EventsPage() {
  const search = useSearch();
  const setSearch = useSetSearch();
  const [shown, setShown] = useState<readonly ShownEvent[]>([]);
  const [begun, setBegun] = useState(false);
  const [oldest, setOldest] = useState(false);
  const [isPaused, setPaused] = useState(false);
  const token = useRef("");
  const types = useMemo(() => (search.types ?? "").split(",").filter((type) => type !== ""), [search.types]);
  const subject = search.subject ?? "";
  const actor = search.actor ?? "";
  const reach = Number(search.reach ?? FIRST_REACH) || FIRST_REACH;
  const key = JSON.stringify([types, subject, actor, reach, isPaused]);
  const link = useStream(key, () => {
    if (isPaused) return null;
    const filter = { types, subject, actor, excludeTypes: types.length === 0 ? ["node.session.moved"] : [] };
    token.current = "";
    return {
      tellsItself: true,
      open: async function* (signal: AbortSignal) {
        if (token.current !== "") {
          return yield* client.watchEvents(
            { ...filter, start: { case: "resumeToken", value: token.current } },
            { signal },
          );
        }
        const { log } = await registry.getControlPlaneStatus({}, { signal });
        const from = (log?.headRevision ?? 0n) - BigInt(reach);
        const compacted = log?.compactedRevision ?? 0n;
        setOldest(from <= compacted);
        setShown([]);
        const value = from > compacted ? from : compacted;
        yield* client.watchEvents({ ...filter, start: { case: "afterRevision", value } }, { signal });
      },
      onMessage: ({ events, resumeToken }) => {
        token.current = resumeToken;
        setBegun(true);
        if (events.length > 0) {
          setShown((before) => [...events.map(showEvent).reverse(), ...before].slice(0, MOST_KEPT));
        }
      },
      onEnd: ({ reason }) => {
        if (reason === "REVISION_COMPACTED" || reason === "INVALID_RESUME_TOKEN") token.current = "";
        return true;
      },
    };
  });
  const toggle = (type: string) => {
    const next = types.includes(type) ? types.filter((one) => one !== type) : [...types, type];
    setSearch({ types: next.join(",") || undefined });
  };
  const words = [
    ...(types.length === 0 ? [] : ["--type", types.join(",")]),
    ...(subject === "" ? [] : ["--node", subject]),
    ...(actor === "" ? [] : ["--actor", actor]),
  ];
  const valuesOf = ({ revision, atMs, type, subject: about, change, reason, message, actor: by }: ShownEvent) => {
    return { revision, time: isoTime(atMs), type, subject: about, change, reason, message, actor: by };
  };
  return (
    <>
      <PageHead title="Events">
        <Button onClick={() => setPaused(!isPaused)} aria-pressed={isPaused}>
          {isPaused ? "Resume" : "Pause"}
        </Button>
        <ExportMenu name="events" of={() => shown.map(valuesOf)} />
        <CopyCommandButton text={command("events", "-f", ...words)} />
      </PageHead>
      <div className="page-body">
        <search className="filters">
          <Field
            label="Subject"
            placeholder="exact node id"
            value={subject}
            onChange={(event) => setSearch({ subject: event.target.value })}
          />
          <Field
            label="Actor"
            placeholder="token:ID or user:NAME"
            value={actor}
            onChange={(event) => setSearch({ actor: event.target.value })}
          />
          <div className="field">
            <span className="label">Types</span>
            <Menu
              look={types.length > 0 ? "on" : ""}
              items={[...EVENT_TYPES].map((type) => ({
                label: type,
                checked: types.includes(type),
                onSelect: () => toggle(type),
              }))}
            >
              {types.length === 0 ? "All types" : `${types.length} types`}
            </Menu>
          </div>
        </search>
        {isPaused && <Notice tone="warn">Paused. New events are shown when you resume.</Notice>}
        {link.state === "stale" && <Notice tone="bad">{link.why}</Notice>}
        <Panel title={countOf(shown.length, "event")}>
          {!begun ? (
            <Loading />
          ) : shown.length === 0 ? (
            <Empty title="No matching events">
              <p>New events appear here.</p>
            </Empty>
          ) : (
            <EventList events={shown} />
          )}
          {begun && !oldest && shown.length < MOST_KEPT && (
            <div className="empty">
              <Button onClick={() => setSearch({ reach: String(reach * 4) })}>Earlier events</Button>
            </div>
          )}
        </Panel>
      </div>
    </>
  );
}
