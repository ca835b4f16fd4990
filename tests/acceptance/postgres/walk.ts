import { dirname, join } from "node:path";
import type { Event } from "../../../libs/api/src/gen/rollcall/events/v1/events_pb.ts";
import { JobState } from "../../../libs/api/src/gen/rollcall/scheduler/v1/job_pb.ts";
import { JobType } from "../../../libs/api/src/gen/rollcall/work/v1/work_pb.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { ControlPlaneClient } from "../../../services/rollcall/src/testing/control-plane-client.ts";
import { RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import type { ServeFixture } from "../../../services/rollcall/src/testing/serve-fixture.ts";
import { followEvents } from "./follow-events.ts";

/**
 * Flags for running executions as another user. They are empty unless the user is root, because only root can
 * run them.
 */
const RUNS_WORK = process.getuid?.() === 0 ? ["--executors", "process", "--work-user", "nobody"] : [];

/** The time limit. It is longer than a job waits on a busy machine. */
const PATIENCE_MS = 180_000;

/** Join an agent, approve it while a watch runs, and run a job on it. Returns the agent. */
export async function walk(fixture: ServeFixture, name = "walker"): Promise<RollcallProcess> {
  const agent = await walkIn(fixture, name);
  await runJob(fixture, name);
  return agent;
}

/** Join an agent, and approve it while a watch runs. Returns the agent. */
export async function walkIn(fixture: ServeFixture, name: string): Promise<RollcallProcess> {
  const { addresses, client, tokenFile } = fixture;
  const watch = followEvents(client, name);
  const state = join(dirname(tokenFile), name);
  const agent = new RollcallProcess([
    ...["agent", "--server", addresses.registry, "--name", name, "--state-dir", state],
    ...RUNS_WORK,
  ]);
  await client.becomes(name, "PENDING CONNECTED HEALTHY");
  await client.grantTime(name);
  await client.admin.approveNode({ node: name });
  await client.becomes(name, "APPROVED CONNECTED HEALTHY");
  await until(`the watch to tell that ${name} is approved`, () => {
    if (memberships(watch.seen()).at(-1) === "APPROVED") return true;
    throw new Error(`it heard of ${memberships(watch.seen())}, and ended with ${watch.ends().join("; ")}`);
  });
  watch.stop();
  return agent;
}

/** Run a job on a node until it has ended. Does nothing if this user cannot run executions. */
export async function runJob({ addresses, tokenFile }: ServeFixture, node: string): Promise<void> {
  if (RUNS_WORK.length === 0) return;
  const { jobs } = new ControlPlaneClient({ registry: addresses.scheduler, admin: addresses.admin, tokenFile });
  const name = `job-on-${node}`;
  const task = { case: "process", value: { command: ["true"] } } as const;
  await jobs.submitJob({
    spec: {
      name,
      type: JobType.BATCH,
      count: 1,
      constraints: { node },
      queueTimeout: { seconds: 120n },
      task,
    } as never,
  });
  await until(
    `${name} to be done`,
    async () => {
      const { job } = await jobs.getJob({ name });
      return job?.state === JobState.COMPLETED;
    },
    PATIENCE_MS,
  );
}

/** Return the memberships in the events about a node, oldest first. */
const memberships = (events: readonly Event[]) =>
  events.flatMap(({ after }) => (typeof after?.membership === "string" ? [after.membership] : []));
