import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { type JobService, WatchJobsResponseSchema } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { EventInterest } from "@rollcall/domain";
import { jobNotFound } from "@rollcall/operations";
import { currentRevision, type EventFeed, getJobs, readJobs, type StoredJob } from "@rollcall/store";
import { countJobExecutions, jobToProto } from "../jobs/convert-job.ts";
import type { SchedulerServices } from "../scheduler-services.ts";
import { PendingChanges } from "./pending-changes.ts";

const JOBS_A_MESSAGE = 50;
const MOST_PENDING = 10_000;
const BOOKMARK_MS = 10_000;
/** The executions of a job are counted at most so often. */
const PAUSE_MS = 250;
const JOB_INTEREST: EventInterest = {
  types: new Set(["job.submitted", "job.changed", "job.deleted"]),
  displaced: new Set(),
};

/** Send jobs as they are, and then as they, or their executions, change. */
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
    const after = await currentRevision(store.db);
    const following = feed.follow({
      name: "job_watches",
      ...{ interest: JOB_INTEREST, after },
      deliver: (events) => {
        for (const { subject } of events) note(subject);
      },
    });
    following.caughtUp.catch(() => {});
    const leave = await hub.join((executions) => {
      for (const { execution } of executions) note(execution.job);
    });
    try {
      if (name !== "" && (await getJobs(store.db, [name])).length === 0) throw await jobNotFound(store.db, name);
      yield* snapshot(name, signal);
      for (;;) {
        const names = await pending.take(BOOKMARK_MS, signal);
        if (names.length === 0) yield create(WatchJobsResponseSchema);
        for (let from = 0; from < names.length; from += JOBS_A_MESSAGE) {
          const some = names.slice(from, from + JOBS_A_MESSAGE);
          const found = await getJobs(store.db, some);
          const there = new Set(found.map((job) => job.name));
          const deletedJobs = some.filter((job) => !there.has(job));
          yield await message(found, { deletedJobs });
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
      signal.throwIfAborted();
      const jobs =
        name === "" ? await readJobs(store.db, { after, limit: JOBS_A_MESSAGE }) : await getJobs(store.db, [name]);
      const isLast = name !== "" || jobs.length < JOBS_A_MESSAGE;
      yield await message(jobs, { snapshotDone: isLast });
      if (isLast) return;
      after = jobs.at(-1)?.name ?? after;
    }
  }

  async function message(
    jobs: readonly StoredJob[],
    rest: { readonly snapshotDone?: boolean; readonly deletedJobs?: string[] },
  ) {
    const counted = await countJobExecutions(store.db, jobs);
    return create(WatchJobsResponseSchema, { jobs: counted.map(jobToProto), ...rest });
  }
}
