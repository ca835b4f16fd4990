import { toJsonString } from "@bufbuild/protobuf";
import { type Execution, type Job, JobService, JobStateSchema } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobSpecSchema, JobTypeSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import { useParams } from "@tanstack/react-router";
import { lazy, Suspense, useRef, useState } from "react";
import { ReasonDialog } from "../../actions/reason-dialog.tsx";
import { PageLink } from "../../app/link.tsx";
import { clientOf } from "../../live/clients.ts";
import { useStream } from "../../live/follow.ts";
import { useRead } from "../../live/queries.ts";
import { useTokenNames } from "../../live/token-names.ts";
import { useRights } from "../../session/session.ts";
import { RequestIds } from "../../state/bulk.ts";
import { command } from "../../state/cli-command.ts";
import { actorName } from "../../state/events/event-groups.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { isRevertible } from "../../state/revertible.ts";
import { countOf } from "../../state/units.ts";
import { enumWord } from "../../state/words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Failure, Loading, Notice, Read } from "../../ui/notices.tsx";
import { Facts, PageHead, Panel } from "../../ui/panel.tsx";
import { Reason, StateMark } from "../../ui/state-mark.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { ExecutionLog } from "./execution-log.tsx";
import { ExecutionExport, ExecutionTable, executionWord, useExecutions } from "./execution-table.tsx";
import { WaitList } from "./wait-list.tsx";

const JobForm = lazy(() => import("./job-form.tsx").then((module) => ({ default: module.JobForm })));
const jobs = clientOf(JobService);
const WITHIN = <PageLink to="/jobs">Jobs</PageLink>;
/** Maximum number of executions to choose from for the output. */
const MOST_CHOICES = 200;
type Verb = "scale" | "restart" | "revert" | "stop";

/** One job: its state with the reason, its executions, and its specification. */
export function JobPage() {
  const { name = "" } = useParams({ strict: false }) as { readonly name?: string };
  // Set the key, so that the state of one job is never shown under another name.
  return <NamedJob key={name} name={name} />;
}

function NamedJob({ name }: { readonly name: string }) {
  const rights = useRights();
  const names = useTokenNames();
  const [live, setLive] = useState<Job | null>(null);
  const [asked, setAsked] = useState<Verb | null>(null);
  const [edited, setEdited] = useState<Job | null>(null);
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
        {rights.submit && word !== "ACTIVE" && <Button onClick={() => setEdited(job)}>Submit again</Button>}
        {rights.submit && word === "ACTIVE" && (
          <>
            <Button onClick={() => setEdited(job)}>Edit</Button>
            <Button onClick={() => setAsked("scale")}>Scale</Button>
            {isRevertible(job) ? (
              <Button onClick={() => setAsked("revert")}>Revert</Button>
            ) : (
              <Button onClick={() => setAsked("restart")}>Restart</Button>
            )}
            <Button look="danger" onClick={() => setAsked("stop")}>
              Stop
            </Button>
          </>
        )}
        <CopyCommandButton
          text={command("job", "describe", name)}
          more={[command("job", "why", name), command("job", "logs", name, "-f")]}
        />
      </PageHead>
      <div className="page-body">
        {job.update?.halted && <Notice tone="bad">The update halted: {job.update.message}</Notice>}
        <div className="grid">
          <Panel title="Status">
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
                [
                  "Submitted by",
                  <span key="actor" title={job.actor}>
                    {actorName(job.actor, names)}
                  </span>,
                ],
                ["Submitted", <ExactTime key="created" ms={toMs(job.createTime)} />],
              ]}
            />
          </Panel>
          <Panel title="Why">
            <Read from={why}>
              {({ summary, history, refusals, waits }) => (
                <div className="stack">
                  <p>{summary}</p>
                  <WaitList waits={waits} />
                  {refusals.map(({ reason, message, nodes }) => (
                    <Notice key={reason} tone="warn">
                      {countOf(Number(nodes), "node")}: {message} <Reason of={reason} />
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
        {rights.submit && executions !== null && executions.length > 0 && <JobOutput executions={executions} />}
        <Panel title="Specification">
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach a scrollable element. */}
          <pre className="output" tabIndex={0}>
            {job.spec === undefined ? "" : toJsonString(JobSpecSchema, job.spec, { prettySpaces: 2 })}
          </pre>
        </Panel>
      </div>
      {edited?.spec !== undefined && (
        <Suspense fallback={null}>
          <JobForm job={{ spec: edited.spec, etag: edited.etag }} onClose={() => setEdited(null)} />
        </Suspense>
      )}
      {asked !== null && <JobDialog verb={asked} job={job} onClose={() => setAsked(null)} />}
    </>
  );
}

/** The live output of one of the job's executions: the newest, unless the user chooses another. */
function JobOutput({ executions }: { readonly executions: readonly Execution[] }) {
  const [chosen, setChosen] = useState("");
  const shown = executions.find(({ id }) => id === chosen) ?? executions[0];
  if (shown === undefined) return null;
  return (
    <Panel title="Output" flush>
      <div className="row" style={{ padding: "8px 16px 0" }}>
        <Choice
          label="Execution"
          value={shown.id}
          onChange={setChosen}
          options={executions
            .slice(0, MOST_CHOICES)
            .map((one) => [one.id, `${one.id} (index ${one.index}, ${executionWord(one).toLowerCase()})`])}
        />
      </div>
      <ExecutionLog id={shown.id} />
    </Panel>
  );
}

function JobDialog({ verb, job, onClose }: { readonly verb: Verb; readonly job: Job; readonly onClose: () => void }) {
  const name = job.spec?.name ?? "";
  const [count, setCount] = useState(String(job.wanted));
  const requestIds = useRef(new RequestIds());
  const run = (reason: string) => {
    // Include the version and the etag of a revert in the id, because the id stands for everything that is sent, and
    // the job can change while the dialog is open.
    const reverted = verb === "revert" ? [job.readyVersion, job.etag] : [];
    const requestId = requestIds.current.of(verb, count, reason, ...reverted);
    if (verb === "scale") return jobs.scaleJob({ name, count: Number(count), reason, requestId });
    if (verb === "restart") return jobs.restartJob({ name, reason, requestId });
    if (verb === "stop") return jobs.stopJob({ name, reason, requestId });
    return jobs.revertJob({ name, version: job.readyVersion, etag: job.etag, reason, requestId });
  };
  const tells = {
    scale: "The job runs this many executions from now on.",
    revert: `Creates a version with the specification of version ${job.readyVersion}, the last one that became ready.`,
    restart: "All executions are replaced, following the job's update policy.",
    stop: "All executions are stopped. Submit the job again to start it.",
  }[verb];
  const label = { scale: "Scale", restart: "Restart", revert: "Revert", stop: "Stop" }[verb];
  const words = { scale: [name, count], restart: [name], revert: [name, String(job.readyVersion)], stop: [name] }[verb];
  return (
    <ReasonDialog
      title={`${label} ${name}`}
      verb={label}
      danger={verb === "stop"}
      ready={/^\d+$/.test(count)}
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
