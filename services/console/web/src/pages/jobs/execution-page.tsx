import { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { isEndSeen } from "@rollcall/domain";
import { useParams } from "@tanstack/react-router";
import { useState } from "react";
import { ReasonDialog } from "../../actions/reason-dialog.tsx";
import { NodeLink, PageLink } from "../../app/link.tsx";
import { clientOf } from "../../live/clients.ts";
import { useRead } from "../../live/queries.ts";
import { useRights } from "../../session/session.ts";
import { command } from "../../state/cli-command.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { Empty, Read } from "../../ui/notices.tsx";
import { Facts, PageHead, Panel } from "../../ui/panel.tsx";
import { Reason, StateMark } from "../../ui/state-mark.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { ExecutionLog } from "./execution-log.tsx";
import { executionWord, jobPath } from "./execution-table.tsx";
import { WaitList } from "./wait-list.tsx";

const jobs = clientOf(JobService);

/** One execution: its state with the reason, and its output. */
export function ExecutionPage() {
  const { id = "" } = useParams({ strict: false }) as { readonly id?: string };
  const rights = useRights();
  const [stopping, setStopping] = useState(false);
  const read = useRead(["execution", id], (signal) => jobs.getExecution({ execution: id }, { signal }), {
    on: ["job."],
  });
  const job = read.data?.execution?.job ?? "";
  const why = useRead(
    ["execution-why", id],
    (signal) => jobs.explainExecution({ subject: { case: "execution", value: id } }, { signal }),
    { on: ["job."] },
  );
  return (
    <>
      <PageHead
        title={`Execution ${id}`}
        within={job === "" ? <PageLink to="/jobs">Jobs</PageLink> : <PageLink to={jobPath(job)}>{job}</PageLink>}
      >
        {rights.submit && (
          <Button look="danger" onClick={() => setStopping(true)}>
            Stop
          </Button>
        )}
        <CopyCommandButton text={command("job", "why", id)} more={[command("job", "logs", id, "-f")]} />
      </PageHead>
      <div className="page-body">
        <div className="grid">
          <Panel title="Status">
            <Read from={read}>
              {({ execution }) =>
                execution === undefined ? (
                  <Empty title="Not found" />
                ) : (
                  <Facts
                    of={[
                      ["State", <StateMark key="state" word={executionWord(execution)} />],
                      ["Reason", execution.reason === "" ? "" : <Reason key="reason" of={execution.reason} />],
                      ["Message", execution.message],
                      [
                        "Job",
                        <PageLink key="job" to={jobPath(execution.job)}>
                          {execution.job}
                        </PageLink>,
                      ],
                      ["Version, index", `${execution.version}, ${execution.index}`],
                      ["Node", execution.nodeId === "" ? "" : <NodeLink key="node" id={execution.nodeId} />],
                      [
                        "Ports",
                        Object.entries(execution.ports)
                          .map(([label, port]) => `${label} ${port}`)
                          .join(", "),
                      ],
                      ["GPUs", execution.gpuUuids.join(", ")],
                      ["Exit code", isEndSeen(execution.reason) ? (execution.observation?.exitCode ?? "") : "unknown"],
                      ["Signal", isEndSeen(execution.reason) ? (execution.observation?.signal ?? "") : "unknown"],
                      ["Placed", <ExactTime key="placed" ms={toMs(execution.createTime)} />],
                      [
                        "Ended",
                        execution.endTime === undefined ? "" : <ExactTime key="ended" ms={toMs(execution.endTime)} />,
                      ],
                      [
                        "Replaces",
                        execution.previousId === "" ? (
                          ""
                        ) : (
                          <PageLink key="before" to={`/executions/${execution.previousId}`}>
                            {execution.previousId}
                          </PageLink>
                        ),
                      ],
                      [
                        "Replaced by",
                        execution.replacedById === "" ? (
                          ""
                        ) : (
                          <PageLink key="after" to={`/executions/${execution.replacedById}`}>
                            {execution.replacedById}
                          </PageLink>
                        ),
                      ],
                    ]}
                  />
                )
              }
            </Read>
          </Panel>
          <Panel title="Why">
            <Read from={why}>
              {({ summary, history, waits }) => (
                <div className="stack">
                  <p>{summary}</p>
                  <WaitList waits={waits} />
                  <ul className="stack tight small" style={{ paddingLeft: 16 }}>
                    {[...history].reverse().map(({ time, text }) => (
                      <li key={`${time?.seconds} ${time?.nanos} ${text}`} className="breaks">
                        <Time ms={toMs(time)} /> {text}
                      </li>
                    ))}
                  </ul>
                </div>
              )}
            </Read>
          </Panel>
        </div>
        <Panel title="Output" flush>
          {rights.submit ? (
            <ExecutionLog id={id} />
          ) : (
            <Empty title="Your role does not allow this">
              <p>Reading output requires the submitter or admin role.</p>
            </Empty>
          )}
        </Panel>
      </div>
      {stopping && (
        <ReasonDialog
          title={`Stop execution ${id}`}
          verb="Stop"
          danger
          commandOf={(reason) => command("job", "stop", "--execution", id, ...(reason === "" ? [] : ["-m", reason]))}
          run={(reason) => jobs.stopExecution({ execution: id, reason, requestId: crypto.randomUUID() })}
          onClose={() => setStopping(false)}
        >
          <p className="soft">A service or daemon job starts a replacement.</p>
        </ReasonDialog>
      )}
    </>
  );
}
