import { NodeLink } from "../app/link.tsx";
import type { ShownEvent } from "../live/events-read.ts";
import { Shape } from "./state-mark.tsx";
import { Time } from "./time.tsx";

/** Events, one a line: when, what, about what, why and by whom. */
export function EventList({
  events,
  withSubject,
}: {
  readonly events: readonly ShownEvent[];
  readonly withSubject: boolean;
}) {
  return (
    <ol className="timeline">
      {events.map((event) => (
        <li key={event.id}>
          <Shape tone={event.tone} />
          <Time ms={event.atMs} />
          <div className="what">
            {withSubject && event.type.startsWith("node.") && (
              <>
                <NodeLink id={event.subject} />{" "}
              </>
            )}
            {withSubject && !event.type.startsWith("node.") && <span>{event.subject} </span>}
            <span>{event.type.replace(/^node\./, "").replaceAll(".", " ")}</span>
            {event.change !== "" && <strong> {event.change}</strong>}
            {event.message !== "" && <span className="soft">: {event.message}</span>}
            <div className="soft small">
              {event.reason && <code>{event.reason}</code>} {event.actor}
            </div>
          </div>
        </li>
      ))}
    </ol>
  );
}
