import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { ExecutionState } from "../../../libs/api/src/gen/rollcall/scheduler/v1/job_pb.ts";
import { JobType } from "../../../libs/api/src/gen/rollcall/work/v1/work_pb.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { processesOf } from "../../../services/rollcall/src/testing/processes.ts";
import { endProcess, RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "../../support/checkout.ts";
import { commandBlocks } from "../../support/readme-blocks.ts";
import { workspaceRoot } from "../../support/workspace.ts";
import { runShell } from "./run-shell.ts";

jest.setTimeout(600_000);

/** Thresholds that are longer than a restore on a busy machine plus the retry delays of agents. */
const PATIENT = [
  "Orchestrator.NodeManager.DisconnectTimeout=120s",
  "Orchestrator.NodeManager.UnknownTimeout=240s",
].flatMap((setting) => ["--set", setting]);
const RUNS_WORK = process.getuid?.() === 0 ? ["--executors", "process", "--work-user", "nobody"] : [];
const PASSPHRASE = "correct horse battery staple";

describe("rollcall backup and restore", () => {
  let fixture: UpFixture;
  let root: string;
  let up: RollcallProcess;
  let archive: string;
  let second: string;

  beforeAll(async () => {
    fixture = await createUpFixture();
    root = dirname(fixture.dataDirectory);
    archive = join(root, "whole.backup");
    second = join(root, "second");
    await writeFile(join(root, "passphrase"), `${PASSPHRASE}\n`, { mode: 0o600 });
    up = await fixture.up(...PATIENT);
    fixture.agent("worker", ...RUNS_WORK);
    await fixture.client.becomes("worker", "APPROVED CONNECTED HEALTHY");
    await fixture.client.becomes(hostname(), "APPROVED CONNECTED HEALTHY");
  });

  afterAll(async () => {
    for (const { pid } of await processesOf(root)) endProcess(pid);
    await fixture.dispose();
  });

  async function rollcall(...words: readonly string[]) {
    const run = new RollcallProcess(words);
    return { code: await run.exit(), out: run.out, err: run.err };
  }

  const secret = () => ["--passphrase-file", join(root, "passphrase")];
  const client = (...words: readonly string[]) =>
    rollcall(...words, "--server", fixture.server, "--token-file", join(fixture.dataDirectory, "admin-token"));

  async function submit(name: string): Promise<string> {
    const mark = join(root, `${name}-${randomUUID()}`);
    const command = ["sh", "-c", "while :; do sleep 0.2; done", mark];
    const task = { case: "process", value: { command } } as const;
    await fixture.client.jobs.submitJob({
      spec: {
        name,
        type: JobType.SERVICE,
        count: 1,
        constraints: { node: "worker" },
        queueTimeout: { seconds: 120n },
        task,
      } as never,
    });
    await until(`${name} to run`, async () => {
      const { executions } = await fixture.client.jobs.listExecutions({ job: name });
      return executions.some(({ state }) => state === ExecutionState.READY);
    });
    return mark;
  }

  const pidsOf = async (mark: string) =>
    (await processesOf(mark)).filter(({ command }) => command.startsWith("sh -c")).map(({ pid }) => pid);

  it("should back up a cluster under load, and bring it back elsewhere as if it had only restarted", async () => {
    const kept = RUNS_WORK.length === 0 ? "" : await submit("kept");
    let isLoaded = true;
    const load = async () => {
      while (isLoaded) {
        await fixture.client.admin.cordonNode({ node: "worker" });
        await fixture.client.admin.uncordonNode({ node: "worker" });
      }
    };
    const loading = load();
    const { code, out, err } = await rollcall(
      ...["backup", archive, "--data-dir", fixture.dataDirectory, ...secret(), "-o", "json"],
    ).finally(() => {
      isLoaded = false;
    });
    await loading;
    expect([code, err]).toEqual([0, ""]);
    const written = JSON.parse(out);
    expect(written).toMatchObject({ file: archive, isEncrypted: true, files: expect.arrayContaining(["admin-token"]) });

    // Make a change that the backup does not contain.
    const later = RUNS_WORK.length === 0 ? "" : await submit("later");
    const pids = { kept: await pidsOf(kept), later: await pidsOf(later) };
    const events = await client("events", "--last", "1", "-o", "json");
    expect(events.code).toBe(0);
    const { resumeToken } = JSON.parse(events.out);
    expect(await up.killed("SIGTERM")).toBe(0);

    const restored = await rollcall("restore", archive, "--data-dir", second, ...secret(), "-o", "json");
    expect([restored.code, restored.err]).toEqual([0, ""]);
    expect(JSON.parse(restored.out)).toMatchObject({
      auditProblem: null,
      setAside: null,
      clusterId: written.clusterId,
    });
    expect(JSON.parse(restored.out).newLogId).not.toBe(written.logId);
    up = await fixture.up("--data-dir", second, ...PATIENT);
    for (const id of ["worker", hostname()]) {
      await fixture.client.becomes(id, "APPROVED CONNECTED HEALTHY");
      expect(await fixture.client.healthHistory(id)).not.toContain("UNHEALTHY");
      expect(await fixture.client.healthHistory(id)).not.toContain("UNKNOWN");
    }
    const refused = await client("events", "--follow", "--since", resumeToken);
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringMatching(/the database was restored and has a new event log/),
    ]);
    const verified = await client("audit", "verify");
    expect([verified.code, verified.out]).toEqual([0, expect.stringMatching(/^The audit log is intact/)]);
    if (RUNS_WORK.length === 0) return;
    await until("the later execution to be shown as ORPHANED", async () => {
      const { executions } = await fixture.client.jobs.listExecutions({});
      return executions.some(({ state }) => state === ExecutionState.ORPHANED);
    });
    await until("the kept execution to run on", async () => {
      const { executions } = await fixture.client.jobs.listExecutions({ job: "kept" });
      return executions.some(({ state }) => state === ExecutionState.READY);
    });
    expect({ kept: await pidsOf(kept), later: await pidsOf(later) }).toEqual(pids);
  });

  it("should refuse a database in use or with data, and replace the data on request", async () => {
    const inUse = await rollcall("restore", archive, "--data-dir", second, ...secret());
    expect([inUse.code, inUse.err]).toEqual([1, expect.stringContaining("rollcall up is already running")]);
    expect(await up.killed("SIGTERM")).toBe(0);
    const full = await rollcall("restore", archive, "--data-dir", second, ...secret());
    expect([full.code, full.err]).toEqual([1, expect.stringContaining("already has Rollcall tables: pass --replace")]);
    const replaced = await rollcall("restore", archive, "--data-dir", second, ...secret(), "--replace");
    expect([replaced.code, replaced.out]).toEqual([0, expect.stringContaining("The audit log is intact")]);
  });

  it("should verify an archive, and refuse a damaged one before it touches anything", async () => {
    const whole = await rollcall("backup", "verify", archive, ...secret());
    expect([whole.code, whole.out]).toEqual([0, expect.stringMatching(/^The archive is intact\.\n/)]);
    const damaged = join(root, "damaged.backup");
    await cp(archive, damaged);
    const bytes = await readFile(damaged);
    bytes.writeUInt8((bytes.at(-30) ?? 0) ^ 1, bytes.length - 30);
    await writeFile(damaged, bytes);
    const broken = await rollcall("backup", "verify", damaged, ...secret());
    expect([broken.code, broken.err]).toEqual([1, expect.stringContaining("the archive is damaged")]);
    const third = join(root, "third");
    const refused = await rollcall("restore", damaged, "--data-dir", third, ...secret());
    expect([refused.code, existsSync(third)]).toEqual([1, false]);
  });

  it("should take the data of an older Postgres aside, and put it back when the restore fails", async () => {
    const versionFile = join(second, "postgres/data/PG_VERSION");
    await writeFile(versionFile, "17\n");
    const refused = fixture.launch("--data-dir", second);
    expect(await refused.exit()).toBe(1);
    expect(refused.out).toMatch(/was created by Postgres 17, but the packaged version is 18: back it up with/);
    const plain = await rollcall("restore", archive, "--data-dir", second, ...secret());
    expect([plain.code, plain.err]).toEqual([1, expect.stringContaining("was created by Postgres 17")]);
    const moved = await rollcall("restore", archive, "--data-dir", second, ...secret(), "--replace");
    expect([moved.code, moved.out]).toEqual([0, expect.stringContaining(join(second, "postgres/data-17"))]);
    expect(readFileSync(versionFile, "utf8").trim()).toBe("18");
    up = await fixture.up("--data-dir", second, ...PATIENT);
    await fixture.client.becomes("worker", "APPROVED CONNECTED HEALTHY");
    expect(await up.killed("SIGTERM")).toBe(0);
  });

  it("should say what happened after a restore was killed, and never start on half of one", async () => {
    const postgres = join(second, "postgres");
    const [versionFile, password] = [join(postgres, "data/PG_VERSION"), join(postgres, "password")];
    const aside = join(postgres, "data-16");
    await writeFile(versionFile, "16\n");
    // The restore reads this file after it has moved the old data aside. If the file is a pipe, the restore blocks
    // until someone writes to it.
    const words = await readFile(password, "utf8");
    await rm(password);
    await runShell('mkfifo "$FIFO"', { cwd: root, env: { FIFO: password } });
    const cut = new RollcallProcess(["restore", archive, "--data-dir", second, ...secret(), "--replace"]);
    await until("the old data to be aside", () => existsSync(aside));
    expect(await cut.killed("SIGKILL")).toBe("SIGKILL");
    await rm(password);
    await writeFile(password, words, { mode: 0o600 });

    const message = new RegExp(`a restore of ${archive} was interrupted: run .* again; or go back to .*${aside}`);
    const start = fixture.launch("--data-dir", second);
    expect([await start.exit(), start.out]).toEqual([1, expect.stringMatching(message)]);
    for (const verb of [
      ["backup", join(root, "half.backup")],
      ["restore", archive, ...secret()],
    ]) {
      const refused = await rollcall(...verb, "--data-dir", second);
      expect([refused.code, refused.err]).toEqual([1, expect.stringMatching(message)]);
    }
    expect([existsSync(join(postgres, "data")), existsSync(aside)]).toEqual([false, true]);

    const again = await rollcall("restore", archive, "--data-dir", second, ...secret(), "--replace");
    expect([again.code, again.out]).toEqual([0, expect.stringContaining(`older Postgres is in ${aside}`)]);
    up = await fixture.up("--data-dir", second, ...PATIENT);
    await fixture.client.becomes("worker", "APPROVED CONNECTED HEALTHY");
    expect(await up.killed("SIGTERM")).toBe(0);
  });

  it("should say so when the files of the data directory cannot be written, and start after another restore", async () => {
    const token = join(second, "admin-token");
    await rm(token);
    await mkdir(token);
    const half = await rollcall("restore", archive, "--data-dir", second, ...secret(), "--replace");
    expect([half.code, half.err]).toEqual([1, expect.stringContaining(`the files of ${second} are not: EISDIR`)]);
    const start = fixture.launch("--data-dir", second);
    expect([await start.exit(), start.out]).toEqual([
      1,
      expect.stringMatching(/without the files of the data directory/),
    ]);
    await rm(token, { recursive: true });
    const whole = await rollcall("restore", archive, "--data-dir", second, ...secret(), "--replace");
    expect([whole.code, readFileSync(token, "utf8")]).toEqual([0, expect.stringMatching(/\S/)]);
  });

  it("should run the commands of docs/backup.md", async () => {
    const blocks = commandBlocks(readFileSync(join(workspaceRoot, "docs/backup.md"), "utf8"));
    expect(blocks.map(({ name }) => name)).toEqual(["backup", "encrypt", "verify", "restore", "prune"]);
    const checkout = layOutCheckout(second);
    try {
      up = await fixture.up("--data-dir", second, ...PATIENT);
      for (const { commands } of blocks) await runShell(commands, { cwd: checkout, env: { HOME: checkout } });
    } finally {
      await rm(checkout, { recursive: true, force: true });
    }
  });
});
