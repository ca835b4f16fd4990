import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { JobType } from "../../libs/api/src/gen/rollcall/work/v1/work_pb.ts";
import { commandBlocks } from "../support/readme-blocks.ts";
import { workspaceRoot } from "../support/workspace.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "declared-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

const FLEET = `owner: fleet
---
kind: HealthPolicy
name: default
spec:
  values: {infoInterval: 1m30s}
---
kind: HealthPolicy
name: group/spot
spec:
  selector: spot
  values:
    unhealthyAfter: 2m
    unknownAfter: 10m
---
kind: Webhook
name: ops
spec:
  url: https://receiver.example/hook
  types: [node.approved]
`;

/** A job that fits no node. */
const JOB = `owner: jobs
---
kind: Job
name: huge
spec: {type: service, count: 2, resources: {cores: 3000}, process: {command: [serve, "1.10"]}}
`;

describe("apply and diff", () => {
  it("should work as docs/declared-state.md describes", async () => {
    const page = readFileSync(join(workspaceRoot, "docs/declared-state.md"), "utf8");
    const file = write("page.yaml", /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? "");
    const commands = commandBlocks(page).flatMap(({ commands: text }) => text.trim().split("\n"));
    expect(commands.length).toBeGreaterThan(3);
    for (const command of commands) {
      const line = command.replace(/^rollcall /, "").replace("fleet.yaml", file);
      const { code, err } = await rig.run(line.split(/\s+/));
      expect([command, code, err]).toEqual([command, line.startsWith("diff") ? 1 : 0, expect.anything()]);
    }
    await rig.run(["apply", "-f", write("none.yaml", "[]"), "--owner", "page", "--prune", "--yes"]);
  });

  it("should create what a file declares, list it line by line, and then find nothing to do", async () => {
    const file = write("fleet.yaml", FLEET);
    const before = await rig.run(["diff", "-f", file]);
    expect(before).toMatchObject({ code: 1, out: expect.stringContaining("health-policy/default created\n") });
    const made = await rig.run(["apply", "-f", file]);
    expect(made).toMatchObject({ code: 0, err: expect.stringContaining("3 are created") });
    expect(made.out.split("\n")).toEqual([
      "health-policy/default created",
      "health-policy/group/spot created",
      "webhook/ops created",
      expect.stringMatching(/^webhook\/ops secret whsec_\S+$/),
      "",
    ]);
    const again = await rig.run(["apply", "-f", file]);
    expect(again.out).toBe(
      "health-policy/default unchanged\nhealth-policy/group/spot unchanged\nwebhook/ops unchanged\n",
    );
    expect(await rig.run(["diff", "-f", file])).toMatchObject({ code: 0, out: "" });
  });

  it("should show what was edited by hand, field by field", async () => {
    const file = write("fleet.yaml", FLEET);
    await rig.run(["apply", "-f", file]);
    await rig.run("webhook set ops --description hand");
    const { code, out } = await rig.run(["diff", "-f", file]);
    expect([code, out]).toEqual([
      1,
      'webhook/ops updated\n  description: "hand" -> "" (edited since it was applied)\n',
    ]);
    expect((await rig.run(["apply", "-f", file])).out).toContain("webhook/ops updated\n");
  });

  it("should fail a dry run of changes that would be refused", async () => {
    const spec = "spec: {url: 'https://receiver.example'}";
    const own = write("own.yaml", `{owner: one, kind: Webhook, name: owned, ${spec}}`);
    const foreign = write("foreign.yaml", `{owner: other, kind: Webhook, name: owned, ${spec}}`);
    expect((await rig.run(["apply", "-f", own])).code).toBe(0);
    for (const more of [["--dry-run"], []]) {
      const { code, err } = await rig.run(["apply", "-f", foreign, ...more]);
      expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/owned[\s\S]*belongs to one/) });
    }
    const taken = await rig.run(["apply", "-f", foreign, "--take-over", "--dry-run"]);
    expect(taken.code).toBe(0);
  });

  it("should say that a stopped job is started again, and which of its fields change", async () => {
    const text = JOB.replace("huge", "stopped").replace("owner: jobs", "owner: starters");
    const file = write("stopped.yaml", text);
    expect((await rig.run(["apply", "-f", file])).out).toBe("job/stopped created\n");
    expect(await rig.run("job stop stopped")).toMatchObject({ code: 0 });
    const plan = await rig.run(["apply", "-f", file, "--dry-run"]);
    expect(plan.out).toBe("job/stopped started again\n1 would be started again\n");
    const other = write("other.yaml", text.replace("count: 2", "count: 3"));
    expect((await rig.run(["diff", "-f", other])).out).toBe("job/stopped started again\n  count: 2 -> 3\n");
    const done = await rig.run(["apply", "-f", file]);
    expect(done).toMatchObject({ code: 0, out: "job/stopped started again\n" });
    expect(done.err).toMatch(/^1 are started again$/m);
    expect((await rig.run(["apply", "-f", file])).out).toBe("job/stopped unchanged\n");
    const none = write("none.yaml", "[]");
    expect(await rig.run(["apply", "-f", none, "--owner", "starters", "--prune", "--yes"])).toMatchObject({ code: 0 });
  });

  it("should prune only when it is confirmed, and only what the owner applied", async () => {
    await rig.run(["apply", "-f", write("fleet.yaml", FLEET)]);
    const less = write("less.yaml", FLEET.split("---").slice(0, 2).join("---"));
    expect((await rig.run(["apply", "-f", less])).out).toBe("health-policy/default unchanged\n");
    const unconfirmed = await rig.run(["apply", "-f", less, "--prune"]);
    expect(unconfirmed).toMatchObject({ code: 2, err: expect.stringContaining("webhook/ops") });
    const pruned = await rig.run(["apply", "-f", less, "--prune", "--yes"]);
    expect(pruned.out).toBe("health-policy/default unchanged\nhealth-policy/group/spot pruned\nwebhook/ops pruned\n");
    expect((await rig.run(["webhook", "show", "ops"])).code).toBe(1);
  });

  it("should not prune objects that were added after the question was asked", async () => {
    await rig.run(["apply", "-f", write("fleet.yaml", FLEET)]);
    const less = write("less.yaml", FLEET.split("---").slice(0, 2).join("---"));
    const later = write(
      "later.yaml",
      "{owner: fleet, kind: Webhook, name: late, spec: {url: 'https://receiver.example'}}",
    );
    const ask = async () => {
      await rig.run(["apply", "-f", later]);
      return "y";
    };
    const refused = await rig.run(["apply", "-f", less, "--prune"], { ask });
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("webhook/late") });
    expect((await rig.run(["webhook", "show", "ops"])).code).toBe(0);
    const pruned = await rig.run(["apply", "-f", less, "--prune"], { ask: async () => "y" });
    expect(pruned).toMatchObject({ code: 0, out: expect.stringContaining("webhook/late pruned") });
  });

  it("should report every error in the files with its line, before it changes anything", async () => {
    const nested = join(folder, "nested");
    mkdirSync(nested, { recursive: true });
    const bad = join(nested, "bad.yaml");
    writeFileSync(
      bad,
      [
        "- {kind: Webhook, name: new, spec: {url: 'https://receiver.example'}}",
        "- kind: Webhook",
        "  name: new",
        "  spec: {url: 5, typ: [a]}",
        "- {kind: Token, name: t, spec: {}}",
        "- {kind: HealthPolicy, name: groups/x, spec: {values: {infoInterval: soon}}}",
      ].join("\n"),
    );
    const { code, err } = await rig.run(["apply", "-f", nested]);
    expect(code).toBe(2);
    for (const problem of [
      ":2:3: name: Webhook/new is declared twice",
      ":4:15: spec.url: should be a string",
      ":4:18: spec.typ: unknown key; did you mean types?",
      ":5:10: kind: should be one of HealthPolicy, NodeLabels, Webhook",
      ":6:3: name: should be default, group/NAME or node/ID",
      "spec.values.infoInterval: should be a duration such",
    ]) {
      expect(err).toContain(problem);
    }
    expect((await rig.run(["webhook", "show", "new"])).code).toBe(1);
  });

  it("should follow the links of a directory, as in a mounted ConfigMap, and refuse a broken one", async () => {
    const mounted = join(folder, "mounted");
    mkdirSync(join(mounted, "..data"), { recursive: true });
    for (const name of ["a", "b"]) {
      const text = `{owner: linked, kind: Webhook, name: ${name}, spec: {url: 'https://receiver.example'}}`;
      writeFileSync(join(mounted, "..data", `${name}.yaml`), text);
    }
    symlinkSync("..data/a.yaml", join(mounted, "a.yaml"));
    symlinkSync("..data/b.yaml", join(mounted, "b.yaml"));
    const { out } = await rig.run(["apply", "-f", mounted, "--dry-run"]);
    expect(out).toContain("webhook/a created\nwebhook/b created\n");
    rmSync(join(mounted, "..data", "b.yaml"));
    const dangling = await rig.run(["apply", "-f", mounted, "--prune", "--yes"]);
    expect(dangling).toMatchObject({ code: 2, err: expect.stringContaining("cannot read") });
    expect(dangling.err).toContain("b.yaml");
  });

  it("should exit from diff with 1 for a difference, 2 for wrong usage and 3 for a failure", async () => {
    const differing = write("differing.yaml", "{kind: Webhook, name: absent, spec: {url: 'https://receiver.example'}}");
    const failing = write("failing.yaml", "{kind: NodeLabels, name: nowhere, spec: {labels: {rack: r1}}}");
    const codes = [];
    for (const args of [
      ["-f", differing],
      ["-f", failing],
      ["-f", join(folder, "absent.yaml")],
    ]) {
      codes.push((await rig.run(["diff", ...args])).code);
    }
    expect(codes).toEqual([1, 3, 2]);
    expect((await rig.run(["diff", "-f", failing])).err).toContain("there is no node nowhere");
    expect((await rig.run(["apply", "-f", failing])).code).toBe(1);
  });

  it("should find an object that two files declare, and keys without a value, before anything is sent", async () => {
    const one = write("one.yaml", "{kind: Webhook, name: both, spec: {url: 'https://receiver.example'}}");
    const two = write("two.yaml", "{kind: Webhook, name: both, spec: {url: 'https://receiver.example/two'}}");
    const { code, err } = await rig.run(["apply", "-f", one, two]);
    expect([code, err]).toEqual([2, expect.stringMatching(/two\.yaml:1:1: name: Webhook\/both is declared twice/)]);
    const empty = write(
      "empty.yaml",
      "{kind: Webhook, name: empty, spec: {url: 'https://receiver.example', description}}",
    );
    const refused = await rig.run(["apply", "-f", empty]);
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining("description: is empty")]);
  });

  it("should create jobs, and report a problem of one with its line", async () => {
    const file = write(
      "job.yaml",
      `${JOB}---\nkind: Job\nname: wrong\nspec: {type: service, proces: {}, count: many}\n`,
    );
    const refused = await rig.run(["apply", "-f", file]);
    expect(refused.code).toBe(2);
    for (const problem of [
      "9:23: spec.proces: unknown key; did you mean process?",
      "9:42: spec.count: should be a whole number from 0 to 4294967295",
      "9:7: spec: process or docker is required",
    ]) {
      expect(refused.err).toContain(problem);
    }
    const right = write("job.yaml", JOB);
    expect((await rig.run(["apply", "-f", right])).out).toBe("job/huge created\n");
    expect((await rig.run("job list")).out).toMatch(/^huge +service +active +1 /m);
    const other = write("job.yaml", JOB.replace("count: 2", "count: 3"));
    const { out } = await rig.run(["diff", "-f", other]);
    expect(out).toBe("job/huge updated\n  count: 2 -> 3\n");
    const gone = ["apply", "-f", write("none.yaml", "[]"), "--owner", "jobs", "--prune", "--yes"];
    expect((await rig.run(gone)).out).toBe("job/huge pruned\n");
    expect((await rig.run("job list")).out).toMatch(/^huge +service +stopped /m);
  });

  it("should refuse an unknown node", async () => {
    const file = write("labels.yaml", "{kind: NodeLabels, name: nowhere, spec: {labels: {rack: r1}}}");
    const { code, err } = await rig.run(["apply", "-f", file]);
    expect([code, err]).toEqual([1, expect.stringContaining("there is no node nowhere")]);
  });
});

describe("export", () => {
  it("should write state that changes nothing when applied, and an owner's state that removes nothing", async () => {
    await rig.register("exported");
    const labels = "{kind: NodeLabels, name: exported, spec: {labels: {rack: r1, 'a.example/b': ''}}}";
    await rig.run(["apply", "-f", write("fleet.yaml", `${FLEET}---\n${labels}\n`)]);
    await rig.run(["apply", "-f", write("job.yaml", JOB)]);
    await rig.run("node label exported by=hand");
    const whole = await rig.run(["export"]);
    expect([whole.code, whole.err]).toEqual([0, ""]);
    expect(whole.out).toContain("kind: Job\nname: huge\nspec:\n  type: service\n  count: 2\n");
    expect(whole.out).toContain("by: hand");
    expect(whole.out).toContain("infoInterval: 90s");
    const same = await rig.run(["diff", "-f", write("whole.yaml", whole.out)]);
    expect([same.code, same.out, same.err]).toEqual([0, "", ""]);
    const owned = await rig.run(["export", "--owner", "fleet", "-o", "json"]);
    expect(owned.out).not.toContain("huge");
    expect(owned.out).not.toContain("hand");
    const kept = await rig.run(["apply", "-f", write("owned.json", owned.out), "--prune", "--yes"]);
    expect([kept.code, kept.err]).toEqual([0, "5 unchanged\n"]);
    const jobs = await rig.run("export --kinds jobs");
    expect(jobs.out.match(/^kind: .*$/gm)).toEqual(["kind: Job"]);
  });

  it("should write a job that is scaled to 0, and leave it as it is when applied with --prune", async () => {
    await rig.run(["apply", "-f", write("job.yaml", JOB)]);
    expect(await rig.run("job scale huge 0")).toMatchObject({ code: 0 });
    const owned = await rig.run(["export", "--owner", "jobs"]);
    expect([owned.code, owned.err]).toEqual([0, ""]);
    expect(owned.out).toContain("name: huge\nspec:\n  type: service\n  count: 0\n");
    const file = write("owned.yaml", owned.out);
    // A person changed the count after it was applied, so the first application records the new count.
    const applied = await rig.run(["apply", "-f", file, "--prune", "--yes"]);
    expect(applied).toMatchObject({ code: 0, out: "job/huge unchanged\n" });
    expect((await rig.run("job list -o csv --states active")).out).toMatch(/^huge,service,ACTIVE,.*0/m);
    expect((await rig.run(["diff", "-f", file, "--prune"])).out).toBe("");
    await rig.run(["apply", "-f", write("job.yaml", JOB)]);
  });

  it("should leave out objects that a file cannot express, and fail", async () => {
    const task = { case: "process" as const, value: { command: ["x"] } };
    const spec = { name: "odd", type: JobType.DAEMON, queueTimeout: { seconds: 1n, nanos: 1 }, task };
    await rig.client.jobs.submitJob({ spec });
    const { code, out, err } = await rig.run("export --kinds jobs");
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("left out of the export, because a file cannot express them: job/odd"),
    ]);
    expect(out).not.toContain("odd");
  });
});
