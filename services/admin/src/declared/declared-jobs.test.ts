import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  DeclaredStateService,
  StateAction,
  StateActionSchema,
} from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { getJob, saveJobEdit } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { type PolicyRig, startPolicyRig } from "../testing/policy-rig.ts";
import { eventsOf } from "../testing/record.ts";
import { createToken } from "../testing/rig.ts";

let rig: PolicyRig;
let declared: Client<typeof DeclaredStateService>;

const as = async (role: "viewer" | "operator" | "submitter" | "admin") =>
  rig.clientOf(DeclaredStateService, (await createToken(rig.store, role)).text);

beforeAll(async () => {
  rig = await startPolicyRig(await createTestDatabase());
  declared = await as("admin");
});

beforeEach(async () => {
  await rig.clear();
  for (const table of ["declared_objects", "job_versions", "jobs"] as const) {
    await rig.store.db.deleteFrom(table).execute();
  }
});

afterAll(() => rig.close());

const job = (
  name: string,
  more: { readonly count?: number; readonly command?: string; readonly type?: JobType } = {},
) => {
  const { count, command = "serve", type = JobType.SERVICE } = more;
  const process = { command: [command], env: { MODE: "prod" } };
  const task = { case: "process", value: process } as const;
  // A job that needs more than any node has, because a declared job need not fit on a node yet.
  const spec = {
    name,
    type,
    ...(count === undefined ? {} : { count }),
    task,
    resources: { millicores: 3_000_000 },
    retry: {},
    annotations: { "a.b": "c" },
  };
  return { object: { case: "job", value: { spec } } } as const;
};
const policy = {
  object: {
    case: "healthPolicy",
    value: { scope: { scope: { case: "default", value: true } }, values: { infoInterval: durationFromMs(7_000) } },
  },
} as const;

const actionsOf = ({ changes }: { readonly changes: readonly { object: string; action: StateAction }[] }) =>
  Object.fromEntries(changes.map(({ object, action }) => [object, StateActionSchema.value[action]?.localName]));
const stateOf = async (name: string) => {
  const found = await getJob(rig.store.db, name);
  return found === null ? null : [found.state, found.version, found.count];
};
const set = (name: string, edit: Parameters<typeof saveJobEdit>[2]) =>
  rig.store.transaction((tx) => saveJobEdit(tx, name, edit));

describe("a declared job", () => {
  it("should be submitted, whether it fits or not, and then match its declaration", async () => {
    const request = { objects: [policy, job("web", { count: 2 })], owner: "team", reason: "from a file" };
    const made = { "health-policy/default": "CREATE", "job/web": "CREATE" };
    expect(actionsOf(await declared.planState(request))).toEqual(made);
    expect(await stateOf("web")).toBeNull();
    expect(actionsOf(await declared.applyState(request))).toEqual(made);
    expect(await stateOf("web")).toEqual(["ACTIVE", 1, 2]);
    const told = await eventsOf(rig.store, "web");
    expect(told).toMatchObject([{ type: "job.submitted", message: "from a file" }]);
    expect(Object.values(actionsOf(await declared.applyState(request)))).toEqual(["UNCHANGED", "UNCHANGED"]);
    expect(await eventsOf(rig.store, "web")).toEqual(told);
  });

  it("should show what differs field by field, and become a new version or another count", async () => {
    await declared.applyState({ objects: [job("web")], owner: "team" });
    await set("web", { count: 5, spec: { ...Object((await getJob(rig.store.db, "web"))?.spec), count: 5 } });
    const request = { objects: [job("web", { command: "other" })], owner: "team" };
    const { changes } = await declared.planState(request);
    expect(changes).toMatchObject([
      {
        object: "job/web",
        action: StateAction.UPDATE,
        differences: [
          { field: "count", before: "5", after: "1", edited: true },
          { field: "process.command", before: '["serve"]', after: '["other"]', edited: false },
        ],
      },
    ]);
    await declared.applyState(request);
    expect(await stateOf("web")).toEqual(["ACTIVE", 2, 1]);
    expect(actionsOf(await declared.planState(request))).toEqual({ "job/web": "UNCHANGED" });
  });

  it("should run nothing with a count of 0, and one execution without a count", async () => {
    const none = { objects: [job("web", { count: 0 })], owner: "team" };
    await declared.applyState(none);
    expect(await stateOf("web")).toEqual(["ACTIVE", 1, 0]);
    expect(actionsOf(await declared.planState(none))).toEqual({ "job/web": "UNCHANGED" });
    const one = { objects: [job("web")], owner: "team" };
    expect((await declared.planState(one)).changes).toMatchObject([
      { differences: [{ field: "count", before: "0", after: "1" }] },
    ]);
    await declared.applyState(one);
    expect(await stateOf("web")).toEqual(["ACTIVE", 1, 1]);
  });

  it("should restart if it was stopped, but not because it has ended", async () => {
    const request = { objects: [job("batch", { type: JobType.BATCH }), job("web")], owner: "team" };
    await declared.applyState(request);
    await set("batch", { state: "COMPLETED" });
    await set("web", { state: "STOPPED" });
    const starting = { "job/batch": "UNCHANGED", "job/web": "START" };
    expect(actionsOf(await declared.planState(request))).toEqual(starting);
    const again = await declared.applyState(request);
    expect(actionsOf(again)).toEqual(starting);
    expect([await stateOf("batch"), await stateOf("web")]).toEqual([
      ["COMPLETED", 1, 1],
      ["ACTIVE", 1, 1],
    ]);
    const other = { objects: [job("batch", { type: JobType.BATCH, command: "other" })], owner: "team" };
    const { changes } = await declared.planState(other);
    const differences = [{ field: "process.command", before: '["serve"]', after: '["other"]' }];
    expect(changes).toMatchObject([{ object: "job/batch", action: StateAction.START, differences }]);
    expect(actionsOf(await declared.applyState(other))).toEqual({ "job/batch": "START" });
    expect(await stateOf("batch")).toEqual(["ACTIVE", 2, 1]);
  });

  it("should be stopped when its owner prunes it, and be forgotten when it has ended", async () => {
    await declared.applyState({ objects: ["a", "b", "c", "kept"].map((name) => job(name)), owner: "team" });
    await declared.applyState({ objects: [job("theirs")], owner: "other" });
    await set("b", { state: "STOPPED" });
    await set("c", { state: "FAILED" });
    const request = { objects: [job("kept")], owner: "team", prune: true };
    const done = { "job/a": "PRUNE", "job/b": "FORGET", "job/c": "FORGET", "job/kept": "UNCHANGED" };
    expect(actionsOf(await declared.planState(request))).toEqual(done);
    expect(await stateOf("a")).toEqual(["ACTIVE", 1, 1]);
    expect(actionsOf(await declared.applyState(request))).toEqual(done);
    expect((await Promise.all(["a", "c", "kept", "theirs"].map(stateOf))).map((it) => it?.[0])).toEqual([
      ...["STOPPED", "FAILED", "ACTIVE", "ACTIVE"],
    ]);
    expect((await eventsOf(rig.store, "a")).at(-1)).toMatchObject({ type: "job.changed", reason: "JOB_STOPPED" });
    expect(actionsOf(await declared.applyState(request))).toEqual({ "job/kept": "UNCHANGED" });
  });

  it("should accept the role submitter", async () => {
    const bySubmitter = await as("submitter");
    expect(actionsOf(await bySubmitter.applyState({ objects: [job("web")] }))).toEqual({ "job/web": "CREATE" });
    for (const [role, object, required] of [
      ["submitter", policy, "operator"],
      ["operator", job("other"), "submitter"],
      ["viewer", job("other"), "submitter"],
    ] as const) {
      const refused = (await as(role)).applyState({ objects: [object] });
      expect(await refusalOf(refused)).toMatchObject({ reason: "ROLE_TOO_LOW", metadata: { required, role } });
    }
    expect(await stateOf("other")).toBeNull();
    const { reason, message } = await refusalOf((await as("viewer")).applyState({ owner: "team", prune: true }));
    expect([reason, message]).toEqual(["ROLE_TOO_LOW", expect.not.stringContaining("job/")]);
  });

  it("should be refused with all its violations, in addition to those of other objects", async () => {
    const objects = [
      job("web", { command: "" }),
      job("no name"),
      { object: { case: "job", value: { spec: {} } } } as const,
    ];
    const { reason, violations } = await refusalOf(declared.applyState({ objects, owner: "team" }));
    expect(reason).toBe("INVALID_DECLARED_STATE");
    expect(violations?.map(({ field }) => field)).toEqual(
      expect.arrayContaining(["objects[0].job.spec.process.command[0]", "objects[1].job.spec.name"]),
    );
    expect(await stateOf("web")).toBeNull();
  });
});
