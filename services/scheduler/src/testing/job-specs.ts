import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type JobSpec, JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";

/** Fields of a job. */
export type JobInit = Exclude<MessageInitShape<typeof JobSpecSchema>, JobSpec>;

/** A service of some executions with a quarter of a core each, which may wait for nodes. */
export function serviceOf(name: string, count: number, rest: JobInit = {}): JobSpec {
  return create(JobSpecSchema, {
    ...{ name, count, type: JobType.SERVICE },
    resources: { millicores: 250 },
    task: { case: "process", value: { command: ["sleep", "infinity"] } },
    queueTimeout: durationFromMs(3_600_000),
    ...rest,
  });
}

/** The types of jobs by the words of job files. */
export const TYPE_OF = {
  batch: JobType.BATCH,
  service: JobType.SERVICE,
  ops: JobType.OPS,
  daemon: JobType.DAEMON,
} as const;
