import { type Job, JobService, JobStateSchema } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobTypeSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import { lazy, Suspense, useMemo, useRef, useState } from "react";
import { useSearch, useSetSearch } from "../../app/address.ts";
import { PageLink } from "../../app/link.tsx";
import { clientOf } from "../../live/clients.ts";
import { useStream } from "../../live/follow.ts";
import { useRights } from "../../session/session.ts";
import { command } from "../../state/cli-command.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { SnapshotMap } from "../../state/snapshot-map.ts";
import { isoTime } from "../../state/time-words.ts";
import { countOf } from "../../state/units.ts";
import { enumWord } from "../../state/words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { Choice } from "../../ui/field.tsx";
import { Empty, Loading } from "../../ui/notices.tsx";
import { PageHead, Panel } from "../../ui/panel.tsx";
import { StateMark } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";
import { jobPath } from "./execution-table.tsx";

const JobForm = lazy(() => import("./job-form.tsx").then((module) => ({ default: module.JobForm })));

/** Lists every job, live. */
export function JobsPage() {
  const search = useSearch();
  const setSearch = useSetSearch();
  const [known, setKnown] = useState<ReadonlyMap<string, Job>>(new Map());
  const snapshot = useRef(new SnapshotMap<Job>());
  const [done, setDone] = useState(false);
  const [isSubmitting, setSubmitting] = useState(false);
  const rights = useRights();
  useStream("jobs", () => ({
    open: (signal) => {
      snapshot.current.restart();
      return clientOf(JobService).watchJobs({}, { signal });
    },
    onMessage: ({ jobs, snapshotDone, deletedJobs }) => {
      const came = jobs.map((job) => [job.spec?.name ?? "", job] as const);
      snapshot.current.apply(came, snapshotDone);
      setKnown(snapshot.current.remove(deletedJobs));
      if (snapshotDone) setDone(true);
    },
  }));
  const state = (search.state ?? "").toUpperCase();
  const wanted = search.q ?? "";
  const shown = useMemo(
    () =>
      [...known.values()]
        .filter((job) => state === "" || jobWord(job) === state)
        .filter(({ spec }) => (spec?.name ?? "").includes(wanted))
        .sort((a, b) => ((a.spec?.name ?? "") < (b.spec?.name ?? "") ? -1 : 1)),
    [known, state, wanted],
  );
  return (
    <>
      <PageHead title="Jobs">
        {rights.submit && (
          <Button look="primary" onClick={() => setSubmitting(true)}>
            Submit a job
          </Button>
        )}
        <input
          className="input short"
          type="search"
          aria-label="Search job names"
          placeholder="Search"
          defaultValue={wanted}
          onChange={(event) => setSearch({ q: event.target.value })}
        />
        <Choice
          label="State"
          hideLabel
          value={state}
          onChange={(value) => setSearch({ state: value.toLowerCase() || undefined })}
          options={[
            ["", "All states"],
            ["ACTIVE", "Active"],
            ["STOPPED", "Stopped"],
            ["COMPLETED", "Completed"],
            ["FAILED", "Failed"],
          ]}
        />
        <ExportMenu name="jobs" of={() => shown.map(valuesOf)} />
        <CopyCommandButton text={command("job", "list", ...(state === "" ? [] : ["--states", state.toLowerCase()]))} />
      </PageHead>
      <div className="page-body">
        <Panel title={countOf(shown.length, "job")} flush>
          {!done ? (
            <Loading />
          ) : shown.length === 0 ? (
            <Empty title="No jobs">
              <p>
                <code>rollcall job run FILE</code> submits one.
              </p>
            </Empty>
          ) : (
            <DataTable
              label="Jobs"
              rows={shown}
              keyOf={({ spec }) => spec?.name ?? ""}
              columns={[
                {
                  title: "Job",
                  cell: ({ spec }) => <PageLink to={jobPath(spec?.name ?? "")}>{spec?.name ?? ""}</PageLink>,
                },
                { title: "Type", cell: ({ spec }) => enumWord(JobTypeSchema, spec?.type).toLowerCase() },
                { title: "State", cell: (job) => <StateMark word={jobWord(job)} title={job.message} /> },
                { title: "Version", right: true, cell: ({ version }) => version },
                {
                  title: "Ready",
                  right: true,
                  cell: ({ executions, wanted }) => `${executions?.ready ?? 0} / ${wanted}`,
                },
                { title: "Waiting", right: true, cell: ({ executions }) => executions?.waiting ?? 0 },
                { title: "Lost", right: true, cell: ({ executions }) => executions?.lost ?? 0 },
                { title: "Failed", right: true, cell: ({ executions }) => executions?.failed ?? 0 },
                {
                  title: "Message",
                  cell: ({ message, update }) => <span className="breaks">{update?.message || message}</span>,
                },
                { title: "Changed", cell: ({ updateTime }) => <Time ms={toMs(updateTime)} /> },
              ]}
            />
          )}
        </Panel>
      </div>
      <Suspense fallback={null}>{isSubmitting && <JobForm job={null} onClose={() => setSubmitting(false)} />}</Suspense>
    </>
  );
}

function valuesOf(job: Job) {
  const { spec, version, wanted, executions, message, updateTime } = job;
  return {
    name: spec?.name ?? "",
    type: enumWord(JobTypeSchema, spec?.type).toLowerCase(),
    state: jobWord(job),
    version,
    wanted,
    ready: executions?.ready ?? 0,
    waiting: executions?.waiting ?? 0,
    lost: executions?.lost ?? 0,
    failed: executions?.failed ?? 0,
    message,
    changed: isoTime(toMs(updateTime)),
  };
}

/** The name of a job's state. */
function jobWord(job: Job): string {
  return enumWord(JobStateSchema, job.state);
}
