import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { JobOwnerSchema, type JobService, ListOwnersResponseSchema } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { readOwners } from "@rollcall/store";
import { readPage, readRows } from "@rollcall/wire";
import type { SchedulerServices } from "../scheduler-services.ts";

const DEFAULT_OWNERS = 100;

/** Return a page of job owners with the resources that their jobs use. */
export function listOwners({
  store,
  pageTokens,
  quota,
}: SchedulerServices): MethodImpl<typeof JobService.method.listOwners> {
  return async ({ pageSize, pageToken }, context) => {
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const after = (pageTokens.open("ListOwners", pageToken) as string | null) ?? "";
    const limit = pageSize === 0 ? DEFAULT_OWNERS : pageSize;
    const page = await readPage(context, {
      rows: readRows({
        limit,
        from: after,
        read: (from, count) => readOwners(store.db, { after: from, limit: count }),
        cursorOf: ({ owner }) => owner,
      }),
      ...{ limit, item: JobOwnerSchema },
      toMessage: ({ executions, millicores, ...row }) =>
        create(JobOwnerSchema, { ...row, executions: BigInt(executions), millicores: BigInt(millicores) }),
    });
    return page.answer(ListOwnersResponseSchema, "owners", {
      nextPageToken: page.next === null ? "" : pageTokens.seal("ListOwners", page.next.owner),
      quota: {
        ...(quota.jobs === null ? {} : { jobs: quota.jobs }),
        ...(quota.executions === null ? {} : { executions: BigInt(quota.executions) }),
        ...(quota.millicores === null ? {} : { millicores: BigInt(quota.millicores) }),
      },
    });
  };
}
