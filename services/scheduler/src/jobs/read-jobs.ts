import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  GetJobResponseSchema,
  JobSchema,
  type JobService,
  JobVersionSchema,
  ListJobsResponseSchema,
  ListJobVersionsResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { jobNotFound } from "@rollcall/operations";
import { getJob, readJobs, readJobVersions } from "@rollcall/store";
import { jobTypeFromProto, readPage, readRows } from "@rollcall/wire";
import type { SchedulerServices } from "../scheduler-services.ts";
import {
  type CountedJob,
  countJobExecutions,
  jobStatesFromProto,
  jobToProto,
  jobVersionToProto,
} from "./convert-job.ts";

/** Return one job. */
export function getOneJob({ store }: SchedulerServices): MethodImpl<typeof JobService.method.getJob> {
  return async ({ name }) => {
    const job = await getJob(store.db, name);
    if (job === null) throw await jobNotFound(store.db, name);
    const [counted] = await countJobExecutions(store.db, [job]);
    return create(GetJobResponseSchema, counted === undefined ? {} : { job: jobToProto(counted) });
  };
}

const DEFAULT_JOBS = 100;
const DEFAULT_VERSIONS = 20;

/** Return a page of jobs, ordered by name. */
export function listJobs({ store, pageTokens }: SchedulerServices): MethodImpl<typeof JobService.method.listJobs> {
  return async ({ pageSize, pageToken, states, types }, context) => {
    const listing = `ListJobs ${JSON.stringify([states, types])}`;
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const after = (pageTokens.open(listing, pageToken) as string | null) ?? "";
    const filter = {
      ...(states.length === 0 ? {} : { states: jobStatesFromProto(states) }),
      ...(types.length === 0 ? {} : { types: types.flatMap((type) => jobTypeFromProto(type) ?? []) }),
    };
    const limit = pageSize === 0 ? DEFAULT_JOBS : pageSize;
    const page = await readPage<CountedJob, typeof JobSchema>(context, {
      rows: readRows({
        limit,
        from: after,
        read: async (from, count) => {
          return countJobExecutions(store.db, await readJobs(store.db, { after: from, limit: count, filter }));
        },
        cursorOf: ({ job }) => job.name,
      }),
      ...{ limit, item: JobSchema, toMessage: jobToProto },
    });
    return page.answer(ListJobsResponseSchema, "jobs", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(listing, page.next.job.name),
    });
  };
}

/** Return a page of a job's versions, newest first. */
export function listJobVersions({
  store,
  pageTokens,
}: SchedulerServices): MethodImpl<typeof JobService.method.listJobVersions> {
  return async ({ name, pageSize, pageToken }, context) => {
    const listing = `ListJobVersions ${name}`;
    const below = pageTokens.open(listing, pageToken) as number | null;
    const limit = pageSize === 0 ? DEFAULT_VERSIONS : pageSize;
    if ((await getJob(store.db, name)) === null) throw await jobNotFound(store.db, name);
    const page = await readPage(context, {
      rows: readRows({
        limit,
        from: below,
        read: (from, count) => readJobVersions(store.db, { job: name, below: from, limit: count }),
        cursorOf: ({ version }) => version,
      }),
      ...{ limit, item: JobVersionSchema, toMessage: jobVersionToProto },
    });
    return page.answer(ListJobVersionsResponseSchema, "versions", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(listing, page.next.version),
    });
  };
}
