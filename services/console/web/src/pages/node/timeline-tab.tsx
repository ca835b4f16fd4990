import type { Event } from "@rollcall/api/rollcall/events/v1/events_pb";
import { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { clientOf, registry } from "../../live/clients.ts";
import { showEvent } from "../../live/events-read.ts";
import { useRead } from "../../live/queries.ts";
import { command } from "../../state/cli-command.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { Empty, Notice, Read } from "../../ui/notices.tsx";
import { Panel } from "../../ui/panel.tsx";
import { Shape } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";
import { WaitList } from "../jobs/wait-list.tsx";

const jobs = clientOf(JobService);

/** Why a node is as it is: in a sentence, what stands in its way, and what happened to it. */
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
    <Panel title="Why" actions={<CopyCommandButton text={command("node", "why", id)} />}>
      <Read from={why}>
        {({ summary, obstacles, entries, hasEarlier }) => (
          <div className="stack">
            <p>{summary}</p>
            {obstacles.map(({ state, reason, text, remedy, since, until }) => (
              <Notice key={`${state} ${reason}`} tone="warn">
                <strong>{text}</strong> <code>{reason}</code>
                {since !== undefined && (
                  <div className="soft small">
                    since <Time ms={toMs(since)} />
                    {until !== undefined && (
                      <>
                        {" "}
                        until <Time ms={toMs(until)} /> at the latest
                      </>
                    )}
                  </div>
                )}
                {remedy !== "" && <div>{remedy}</div>}
              </Notice>
            ))}
            <WaitList waits={work.data?.waits ?? []} />
            {entries.length === 0 ? (
              <Empty title="Nothing is kept of its past" />
            ) : (
              <ol className="timeline">
                {[...entries].reverse().map(({ event, text }) => (
                  <Entry key={event?.id ?? text} event={event} text={text} />
                ))}
              </ol>
            )}
            {hasEarlier && <p className="soft small">More happened before than is shown.</p>}
          </div>
        )}
      </Read>
    </Panel>
  );
}

function Entry({ event, text }: { readonly event: Event | undefined; readonly text: string }) {
  if (event === undefined) return null;
  const shown = showEvent(event);
  return (
    <li>
      <Shape tone={shown.tone} />
      <Time ms={shown.atMs} />
      <div className="what">
        <span>{shown.type.replace(/^node\./, "").replaceAll(".", " ")}</span> <span className="soft">{text}</span>
        <div className="soft small">
          {shown.reason !== "" && !text.includes(shown.reason) && <code>{shown.reason}</code>} {shown.actor}
        </div>
      </div>
    </li>
  );
}
