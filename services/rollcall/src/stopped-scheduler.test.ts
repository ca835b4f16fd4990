import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import {
  accessTokenHash,
  currentRevision,
  ensureAccessToken,
  readAllocations,
  readEvents,
  readLease,
  SCHEDULER_LEASE,
  type Store,
} from "@rollcall/store";
import { addWorkNode, createTestDatabase, eventually, sendBearer, type TestDatabase } from "@rollcall/testkit";
import { endAll, RollcallProcess } from "./testing/rollcall-process.ts";

const TOKEN = "a-submitter-of-the-test";
const NODES = ["n1", "n2", "n3"];

describe("a scheduler that is stopped", () => {
  let database: TestDatabase;
  let store: Store;
  let leader: RollcallProcess;
  let standby: RollcallProcess;
  let jobs: Client<typeof JobService>;

  beforeAll(async () => {
    database = await createTestDatabase();
    store = database.store;
    for (const id of NODES) await addWorkNode(store, id);
    const token = { id: randomUUID(), name: "t", role: "submitter", hash: accessTokenHash(TOKEN) };
    await ensureAccessToken(store.db, token);
    leader = serve();
    await leader.logged("scheduler became the leader");
    standby = serve();
    const { port } = await standby.logged("serving");
    const baseUrl = `http://127.0.0.1:${port}`;
    const interceptors = [sendBearer(TOKEN)];
    jobs = createClient(JobService, createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors }));
  });

  afterAll(async () => {
    await endAll();
    await database.drop();
  });

  const serve = () =>
    new RollcallProcess(["serve", "scheduler", "--port", "0", "--probe-port", "0"], { DATABASE_URL: database.url });

  const submit = (name: string, count: number) => {
    const spec = create(JobSpecSchema, {
      ...{ name, count, type: JobType.SERVICE, resources: { millicores: 100 } },
      task: { case: "process", value: { command: ["sleep", "infinity"] } },
      queueTimeout: durationFromMs(3_600_000),
    });
    return jobs.submitJob({ spec });
  };

  const placed = async () =>
    [...(await readAllocations(store.db, NODES)).values()].reduce((sum, { executions }) => sum + executions, 0);

  it("should be replaced by the standby, and write nothing when it resumes", async () => {
    await submit("before", 6);
    await eventually(async () => expect(await placed()).toBe(6));
    const stopped = (await readLease(store.db, SCHEDULER_LEASE))?.instance ?? "";
    leader.kill("SIGSTOP");
    await submit("later", 6);
    await standby.logged("scheduler became the leader");
    await eventually(async () => expect(await placed()).toBe(12));
    const revision = await currentRevision(store.db);
    leader.kill("SIGCONT");
    await eventually(() => expect(leader.out).toMatch(/task lease (?:lost|in doubt)/));
    await submit("after", 6);
    await eventually(async () => expect(await placed()).toBe(18));
    const { events } = await readEvents(store.db, { after: revision, limit: 1_000 });
    expect(events.filter(({ actor }) => actor === `scheduler:${stopped}`)).toEqual([]);
    expect((await readLease(store.db, SCHEDULER_LEASE))?.instance).not.toBe(stopped);
  });

  it("should take over again when the other is killed", async () => {
    await standby.killed();
    await leader.logged("scheduler became the leader", {}, 1);
  });
});
