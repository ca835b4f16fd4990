import type { Event } from "@rollcall/api/rollcall/events/v1/events_pb";
import { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { clientOf, registry } from "../../live/clients.ts";
import { showEvent } from "../../live/events-read.ts";
import { useRead } from "../../live/queries.ts";
import { useTokenNames } from "../../live/token-names.ts";
import { actorName } from "../../state/events/event-groups.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { Empty, Notice, Read } from "../../ui/notices.tsx";
import { Panel } from "../../ui/panel.tsx";
import { Reason, Shape } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";
import { WaitList } from "../jobs/wait-list.tsx";

const jobs = clientOf(JobService);

/** Explains a node's state: a sentence, what holds it, and its history. */
export function TimelineTab({ id }: { readonly id: string }) {
  const why = useRead(["why", id], (signal) => registry.explainNode({ node: id, limit: 200 }, { signal }), {
    on: ["node."],
    subject: id,
  });
  const work = useRead(
    ["node-waits", id],
    (signal) => jobs.explainExecution({ subject: { case: "node", value: id } }, { signal }),
    { on: ["node.", "job."] },
  );
  return (
    <Panel title="Why">
      <Read from={why}>
        {({ summary, obstacles, entries, hasEarlier }) => (
          <div className="stack">
            <p>{summary}</p>
            {obstacles.map(({ state, reason, text, remedy, since, until }) => (
              <Notice key={`${state} ${reason}`} tone="warn">
                <strong>{text}</strong> <Reason of={reason} />
                {since !== undefined && (
                  <div className="soft small">
                    started <Time ms={toMs(since)} />
                    {until !== undefined && (
                      <>
                        {" "}
                        (latest end: <Time ms={toMs(until)} />)
                      </>
                    )}
                  </div>
                )}
                {remedy !== "" && <div>{remedy}</div>}
              </Notice>
            ))}
            <WaitList waits={work.data?.waits ?? []} />
            {entries.length === 0 ? (
              <Empty title="No history is stored" />
            ) : (
              <ol className="timeline">
                {[...entries].reverse().map(({ event, text }) => (
                  <Entry key={event?.id ?? text} event={event} text={text} />
                ))}
              </ol>
            )}
            {hasEarlier && <p className="soft small">Earlier events are not shown.</p>}
          </div>
        )}
      </Read>
    </Panel>
  );
}

function Entry({ event, text }: { readonly event: Event | undefined; readonly text: string }) {
  const names = useTokenNames();
  if (event === undefined) return null;
  const shown = showEvent(event);
  return (
    <li>
      <Shape tone={shown.tone} />
      <Time ms={shown.atMs} />
      <div className="what">
        <span title={[shown.type, shown.reason].join(" ")}>{text}</span>
        <div className="soft small" title={shown.actor}>
          {actorName(shown.actor, names)}
        </div>
      </div>
    </li>
  );
}
