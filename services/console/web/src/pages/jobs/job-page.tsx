import { toJsonString } from "@bufbuild/protobuf";
import { type Job, JobService, JobStateSchema } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobSpecSchema, JobTypeSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import { useParams } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { ReasonDialog } from "../../actions/reason-dialog.tsx";
import { PageLink } from "../../app/link.tsx";
import { clientOf } from "../../live/clients.ts";
import { useStream } from "../../live/follow.ts";
import { useRead } from "../../live/queries.ts";
import { useRights } from "../../session/session.ts";
import { RequestIds } from "../../state/bulk.ts";
import { command } from "../../state/cli-command.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { countOf } from "../../state/units.ts";
import { enumWord } from "../../state/words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { Field } from "../../ui/field.tsx";
import { Failure, Loading, Notice, Read } from "../../ui/notices.tsx";
import { Facts, PageHead, Panel } from "../../ui/panel.tsx";
import { StateMark } from "../../ui/state-mark.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { ExecutionExport, ExecutionTable, useExecutions } from "./execution-table.tsx";
import { WaitList } from "./wait-list.tsx";

const jobs = clientOf(JobService);
const WITHIN = <PageLink to="/jobs">Jobs</PageLink>;
type Verb = "scale" | "restart" | "revert" | "stop";

/** One job: where it stands and why, its executions, and what was asked for. */
export function JobPage() {
  const { name = "" } = useParams({ strict: false }) as { readonly name?: string };
  // Nothing of one job is shown under the name of another.
  return <NamedJob key={name} name={name} />;
}

function NamedJob({ name }: { readonly name: string }) {
  const rights = useRights();
  const [live, setLive] = useState<Job | null>(null);
  const [asked, setAsked] = useState<Verb | null>(null);
  const read = useRead(["job", name], (signal) => jobs.getJob({ name }, { signal }));
  useStream(name, () => ({
    open: (signal) => jobs.watchJobs({ name }, { signal }),
    onMessage: ({ jobs: came }) => {
      const [job] = came;
      if (job !== undefined) setLive(job);
    },
  }));
  const executions = useExecutions({ job: name });
  const why = useRead(
    ["job-why", name],
    (signal) => jobs.explainExecution({ subject: { case: "job", value: name } }, { signal }),
    { on: ["job."], subject: name },
  );
  const job = live ?? read.data?.job;
  if (job === undefined) {
    return (
      <>
        <PageHead title={name} within={WITHIN} />
        {read.error !== null ? <Failure cause={read.error} onRetry={() => read.refetch()} /> : <Loading />}
      </>
    );
  }
  const word = enumWord(JobStateSchema, job.state);
  return (
    <>
      <PageHead title={name} within={WITHIN}>
        {rights.submit && word === "ACTIVE" && (
          <>
            <Button onClick={() => setAsked("scale")}>Scale</Button>
            <Button onClick={() => setAsked("restart")}>Restart</Button>
            {isRevertible(job) && <Button onClick={() => setAsked("revert")}>Revert</Button>}
            <Button look="danger" onClick={() => setAsked("stop")}>
              Stop
            </Button>
          </>
        )}
        <CopyCommandButton text={command("job", "describe", name)} />
      </PageHead>
      <div className="page-body">
        {job.update?.halted && <Notice tone="bad">The update halted: {job.update.message}</Notice>}
        <div className="grid">
          <Panel title="Where it stands">
            <Facts
              of={[
                ["State", <StateMark key="state" word={word} />],
                ["Message", job.message],
                ["Type", enumWord(JobTypeSchema, job.spec?.type).toLowerCase()],
                ["Version", job.version],
                ["Wanted", job.wanted],
                ["Ready", job.executions?.ready ?? 0],
                ["Waiting", job.executions?.waiting ?? 0],
                ["Update", job.update === undefined ? "" : `${job.update.done} of ${job.update.total}`],
                ["Submitted by", job.actor],
                ["Submitted", <ExactTime key="created" ms={toMs(job.createTime)} />],
              ]}
            />
          </Panel>
          <Panel title="Why" actions={<CopyCommandButton text={command("job", "why", name)} />}>
            <Read from={why}>
              {({ summary, history, refusals, waits }) => (
                <div className="stack">
                  <p>{summary}</p>
                  <WaitList waits={waits} />
                  {refusals.map(({ reason, message, nodes }) => (
                    <Notice key={reason} tone="warn">
                      {countOf(Number(nodes), "node")}: {message} <code>{reason}</code>
                    </Notice>
                  ))}
                  <ul className="stack tight small" style={{ paddingLeft: 16 }}>
                    {[...history].reverse().map(({ time, text, executionId }) => (
                      <li key={`${time?.seconds} ${time?.nanos} ${executionId} ${text}`} className="breaks">
                        <Time ms={toMs(time)} /> {text}
                      </li>
                    ))}
                  </ul>
                </div>
              )}
            </Read>
          </Panel>
        </div>
        <Panel title="Executions" flush actions={<ExecutionExport executions={executions} />}>
          <ExecutionTable executions={executions} />
        </Panel>
        <Panel title="What was asked for">
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys. */}
          <pre className="output" tabIndex={0}>
            {job.spec === undefined ? "" : toJsonString(JobSpecSchema, job.spec, { prettySpaces: 2 })}
          </pre>
        </Panel>
      </div>
      {asked !== null && <JobDialog verb={asked} job={job} onClose={() => setAsked(null)} />}
    </>
  );
}

/** Whether the update halted, and there is a version to return to. */
function isRevertible({ update, version, readyVersion }: Job): boolean {
  return update?.halted === true && readyVersion > 0 && readyVersion !== version;
}

function JobDialog({ verb, job, onClose }: { readonly verb: Verb; readonly job: Job; readonly onClose: () => void }) {
  const name = job.spec?.name ?? "";
  const [count, setCount] = useState(String(job.wanted));
  const requestIds = useRef(new RequestIds());
  const run = (reason: string) => {
    const requestId = requestIds.current.of(verb, count, reason);
    if (verb === "scale") return jobs.scaleJob({ name, count: Number(count), reason, requestId });
    if (verb === "restart") return jobs.restartJob({ name, reason, requestId });
    if (verb === "stop") return jobs.stopJob({ name, reason, requestId });
    return jobs.revertJob({ name, version: job.readyVersion, etag: job.etag, reason, requestId });
  };
  const tells = {
    scale: "So many executions are kept from now on.",
    revert: `A new version gets the specification of version ${job.readyVersion}, the last one that became ready.`,
    restart: "Each execution is replaced, as the job's update policy says.",
    stop: "All executions end. To submit the job again starts it.",
  }[verb];
  const label = { scale: "Scale", restart: "Restart", revert: "Revert", stop: "Stop" }[verb];
  const words = { scale: [name, count], restart: [name], revert: [name, String(job.readyVersion)], stop: [name] }[verb];
  return (
    <ReasonDialog
      title={`${label} ${name}`}
      verb={label}
      danger={verb === "stop"}
      commandOf={(reason) => command("job", verb, ...words, ...(reason === "" ? [] : ["-m", reason]))}
      run={run}
      onClose={onClose}
    >
      <p className="soft">{tells}</p>
      {verb === "scale" && (
        <Field
          label="Executions wanted"
          type="number"
          min={0}
          max={100000}
          value={count}
          onChange={(event) => setCount(event.target.value)}
        />
      )}
    </ReasonDialog>
  );
}
