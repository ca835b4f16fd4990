import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { type JobService, WatchJobsResponseSchema } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { EventInterest } from "@rollcall/domain";
import { jobNotFound } from "@rollcall/operations";
import { currentRevision, type EventFeed, getJobs, type JobRow, readJobs } from "@rollcall/store";
import { type CountedJob, countJobExecutions, jobToProto } from "../jobs/convert-job.ts";
import type { SchedulerServices } from "../scheduler-services.ts";
import { PendingChanges } from "./pending-changes.ts";

const JOBS_A_MESSAGE = 50;
const MOST_PENDING = 10_000;
const BOOKMARK_MS = 10_000;
/** The shortest time between two counts of a job's executions. */
const PAUSE_MS = 250;
const JOB_INTEREST: EventInterest = {
  types: new Set(["job.submitted", "job.changed", "job.deleted"]),
  displaced: new Set(),
};

/** Send the current jobs, and then each job that has changed or whose executions have changed. */
export function watchJobs({
  store,
  hub,
  clock,
  feed,
}: SchedulerServices & { readonly feed: EventFeed }): MethodImpl<typeof JobService.method.watchJobs> {
  return async function* ({ name }, { signal }) {
    const pending = new PendingChanges<string>(clock, MOST_PENDING);
    const note = (job: string) => {
      if (name === "" || name === job) pending.put(job, job);
    };
    await feed.start();
    const after = await hub.read(signal, () => currentRevision(store.db));
    const following = feed.follow({
      name: "job_watches",
      ...{ interest: JOB_INTEREST, after },
      deliver: (events) => {
        for (const { subject } of events) note(subject);
      },
    });
    following.caughtUp.catch(() => {});
    let leave = () => {};
    try {
      leave = await hub.join((executions) => {
        for (const { execution } of executions) note(execution.job);
      }, signal);
      yield* snapshot(name, signal);
      for (;;) {
        const names = await pending.take(BOOKMARK_MS, signal);
        if (names.length === 0) yield create(WatchJobsResponseSchema);
        for (let from = 0; from < names.length; from += JOBS_A_MESSAGE) {
          const some = names.slice(from, from + JOBS_A_MESSAGE);
          const jobs = await hub.read(signal, async () => counted(await getJobs(store.db, some)));
          const existing = new Set(jobs.map(({ job }) => job.name));
          const deletedJobs = some.filter((job) => !existing.has(job));
          yield message(jobs, { deletedJobs });
        }
        await clock.sleep(PAUSE_MS, signal);
      }
    } finally {
      leave();
      following.leave();
    }
  };

  async function* snapshot(name: string, signal: AbortSignal) {
    let after = "";
    for (;;) {
      const jobs = await hub.read(signal, async () => {
        if (name === "") return counted(await readJobs(store.db, { after, limit: JOBS_A_MESSAGE }));
        const found = await getJobs(store.db, [name]);
        if (found.length === 0) throw await jobNotFound(store.db, name);
        return counted(found);
      });
      const isLast = name !== "" || jobs.length < JOBS_A_MESSAGE;
      yield message(jobs, { snapshotDone: isLast });
      if (isLast) return;
      after = jobs.at(-1)?.job.name ?? after;
    }
  }

  function counted(jobs: readonly JobRow[]): Promise<readonly CountedJob[]> {
    return countJobExecutions(store.db, jobs);
  }
}

function message(
  jobs: readonly CountedJob[],
  rest: { readonly snapshotDone?: boolean; readonly deletedJobs?: string[] },
) {
  return create(WatchJobsResponseSchema, { jobs: jobs.map(jobToProto), ...rest });
}
