import { inPlural } from "@rollcall/domain";
import { useMemo } from "react";
import { NodeLink, PageLink } from "../app/link.tsx";
import type { ShownEvent } from "../live/events-read.ts";
import { useTokenNames } from "../live/token-names.ts";
import { actorName, groupEvents, subjectNoun } from "../state/events/event-groups.ts";
import { formatCount } from "../state/units.ts";
import { Shape } from "./state-mark.tsx";
import { Time } from "./time.tsx";

/** Maximum number of subjects of a group to list. */
const MOST_NAMED = 200;

/**
 * Events as sentences, newest first. Events with the same cause share a line, which expands to list their subjects.
 * Ids, types and actors are shown on hover.
 */
export function EventList({ events }: { readonly events: readonly ShownEvent[] }) {
  const names = useTokenNames();
  const groups = useMemo(() => groupEvents(events), [events]);
  return (
    <ol className="timeline">
      {groups.map((group) => {
        const [newest] = group;
        return (
          <li key={newest.id}>
            <Shape tone={newest.tone} />
            <Time ms={newest.atMs} />
            <div className="what breaks" title={detailsOf(newest)}>
              {group.length === 1 ? <One event={newest} /> : <Many group={group} />}
              {newest.actor !== "" && (
                <span className="soft small" title={newest.actor}>
                  {" "}
                  by {actorName(newest.actor, names)}
                </span>
              )}
            </div>
          </li>
        );
      })}
    </ol>
  );
}

function One({ event }: { readonly event: ShownEvent }) {
  return (
    <>
      <Subject event={event} /> <span>{event.did}</span>
      {event.cause !== "" && <span className="soft">: {event.cause}</span>}
    </>
  );
}

function Many({ group }: { readonly group: readonly [ShownEvent, ...ShownEvent[]] }) {
  const [newest] = group;
  const subjects = [...new Map(group.map((event) => [event.subject, event])).values()];
  return (
    <details>
      <summary>
        {subjects.length === 1 ? newest.subject : `${formatCount(subjects.length)} ${subjectNoun(newest.type)}`}{" "}
        {subjects.length === 1 ? `${newest.did}, ${formatCount(group.length)} times` : inPlural(newest.did)}
        {newest.cause !== "" && <span className="soft">: {newest.cause}</span>}
      </summary>
      <span className="chips">
        {subjects.slice(0, MOST_NAMED).map((event) => (
          <span key={event.id} className="chip" title={`${event.cause} ${detailsOf(event)}`.trim()}>
            <Subject event={event} />
          </span>
        ))}
      </span>
      {subjects.length > MOST_NAMED && (
        <span className="soft small">and {formatCount(subjects.length - MOST_NAMED)} more</span>
      )}
    </details>
  );
}

function Subject({ event: { type, subject } }: { readonly event: ShownEvent }) {
  if (type.startsWith("node.")) return <NodeLink id={subject} />;
  if (type.startsWith("job.") && subject !== "cluster") {
    return <PageLink to={`/jobs/${encodeURIComponent(subject)}`}>{subject}</PageLink>;
  }
  return <span>{subject}</span>;
}

function detailsOf({ type, reason, actor, id, revision }: ShownEvent): string {
  return [type, reason, actor, `revision ${revision}`, id].filter((part) => part !== "").join(", ");
}
