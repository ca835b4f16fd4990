import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { describeError } from "@rollcall/errors";
import { needsRoot } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import { runInto } from "./testing/rollcall-process.ts";
import { WorkFixture } from "./testing/work-fixture.ts";

// Only root can run executions as another user.
const { describe: asRoot } = needsRoot();

const rows = (count: number, row: string) => Buffer.from(`${row}\n`.repeat(count));

/** Output of programs that looks like fields of messages, or is not text. */
const OUTPUTS: readonly (readonly [name: string, script: string, output: Buffer])[] = [
  ["rows of stars", `yes '${"*".repeat(79)}' | head -600`, rows(600, "*".repeat(79))],
  ["a number again and again", "yes 2 | head -100000", rows(100_000, "2")],
  ["blank lines", "yes '' | head -70000", rows(70_000, "")],
  ["rows of colons", `yes '${":".repeat(72)}' | head -900`, rows(900, ":".repeat(72))],
  ["a matrix of 0 and 1", "yes '0 1 1 0 1 0 0 1' | head -5000", rows(5_000, "0 1 1 0 1 0 0 1")],
  [
    "all bytes",
    `i=0; while [ $i -lt 256 ]; do printf "\\\\$(printf %o $i)"; i=$((i+1)); done`,
    Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
  ],
];

asRoot("the output of ordinary programs", () => {
  let fixture: WorkFixture;
  const directory = mkdtempSync(join(tmpdir(), "rollcall-output-"));

  beforeAll(async () => {
    fixture = await WorkFixture.start();
    await fixture.startAgent("printer");
  });

  afterAll(async () => {
    await fixture.dispose();
    rmSync(directory, { recursive: true });
  });

  /** Run a command. Returns its exit code, standard error and standard output. */
  async function outputOf(...words: readonly string[]) {
    const file = join(directory, "out");
    const out = openSync(file, "w");
    const end = await runInto(out, fixture.wordsFor(words)).finally(() => closeSync(out));
    return { ...end, output: readFileSync(file) };
  }

  it.each(OUTPUTS)("should be read back to the byte by job logs: %s", async (name, script, output) => {
    const job = `logs-${name.replaceAll(" ", "-")}`;
    await fixture.client.jobs.submitJob({
      spec: {
        ...{ name: job, type: JobType.BATCH, queueTimeout: { seconds: 60n } },
        task: { case: "process", value: { command: ["sh", "-c", script] } },
      },
    });
    await until(`the end of ${job}`, async () => {
      return (await fixture.client.jobs.getJob({ name: job })).job?.state === JobState.COMPLETED;
    });
    const { code, err, output: seen } = await outputOf("job", "logs", job);
    expect([code, err, seen.equals(output)]).toEqual([0, "", true]);
  });

  it.each(OUTPUTS)("should be written to the byte by run: %s", async (name, script, output) => {
    const words = [
      "run",
      "--queue-timeout",
      "60s",
      "--name",
      `run-${name.replaceAll(" ", "-")}`,
      "--",
      "sh",
      "-c",
      script,
    ];
    const { code, output: seen } = await outputOf(...words);
    expect([code, seen.equals(output)]).toEqual([0, true]);
  });

  it("should belong to this command, not to an earlier one of the same name", async () => {
    const run = (text: string) => outputOf("run", "--queue-timeout", "60s", "--name", "reused", "--", "echo", text);
    for (const text of ["one", "two", "two"]) {
      const { code, err, output } = await run(text);
      expect([code, output.toString()]).toEqual([0, `${text}\n`]);
      expect(new Set([...err.matchAll(/execution (\w+)/g)].map(([, id]) => id)).size).toBe(1);
    }
  });

  it("should run with the largest environment a job can have, whatever it contains", async () => {
    const values = [":".repeat(240), "\n".repeat(240), '[{,"\\'.repeat(48), "0 1 ".repeat(60)];
    // Variables of nearly 64 KiB. As JSON, with escaped line feeds and quotes, they are a quarter larger.
    const env = Object.fromEntries(
      Array.from({ length: 250 }, (_, at) => [`V${at}`, values[at % values.length] ?? ""]),
    );
    await fixture.client.jobs.submitJob({
      spec: {
        ...{ name: "environment", type: JobType.BATCH, queueTimeout: { seconds: 60n } },
        task: {
          case: "process",
          // The dollar signs are doubled, because Rollcall replaces a variable after a single dollar sign.
          value: { command: ["sh", "-c", 'printf "%s" "$$V0$$V1$$V2$$V3$$V249"'], env },
        },
      },
    });
    await until("the end of environment", async () => {
      return (await fixture.client.jobs.getJob({ name: "environment" })).job?.state === JobState.COMPLETED;
    });
    const { code, output } = await outputOf("job", "logs", "environment");
    expect([code, output.toString()]).toEqual([0, `${values.join("")}${env.V249}`]);
  });

  it.each([
    ["a job", 700, /INVALID_REQUEST|65,?536|64 KiB/],
    ["a message", 12_000, /larger than/],
  ] as const)("should be refused with the right reason if it is too large for %s", async (_, count, reason) => {
    const env = Object.fromEntries(Array.from({ length: 200 }, (_unused, at) => [`V${at}`, ":".repeat(count)]));
    const refused = await fixture.client.jobs
      .submitJob({
        spec: { name: "large", type: JobType.BATCH, task: { case: "process", value: { command: ["true"], env } } },
      })
      .then(() => null, describeError);
    expect(refused?.message).toMatch(reason);
  });

  it.each([
    [1, ["job", "logs", "logs-rows-of-stars"]],
    [1, ["job", "logs", "--follow", "logs-rows-of-stars"]],
    [75, ["run", "--queue-timeout", "60s", "--", "echo", "x"]],
    [75, ["run", "--queue-timeout", "60s", "--", "sh", "-c", "echo x; sleep 600"]],
    [75, ["run", "--queue-timeout", "60s", "--detach", "--", "true"]],
    [3, ["run", "--queue-timeout", "60s", "--", "sh", "-c", "exit 3"]],
  ])("should exit with code %i, and report why output cannot be written: %j", async (code, words) => {
    const full = openSync("/dev/full", "w");
    const end = await runInto(full, fixture.wordsFor(words)).finally(() => closeSync(full));
    const cause = /^cannot write \/dev\/full \(standard output\): no space left on device$/gm;
    expect([end.code, end.err.match(cause) ?? []]).toEqual([code, code === 3 ? [] : [expect.any(String)]]);
  });

  it("should end run and stop its job when the reader of its output is gone", async () => {
    const words = ["run", "--queue-timeout", "60s", "--name", "endless", "--", "sh", "-c", "yes | head -c 1G"];
    const { code, err } = await runInto("closed pipe", fixture.wordsFor(words));
    expect([code, err]).toEqual([75, expect.stringContaining("its reader has closed the pipe\n")]);
    await until("the job to be stopped", async () => {
      return (await fixture.client.jobs.getJob({ name: "endless" })).job?.state === JobState.STOPPED;
    });
  });

  it("should be read back, and leave its node connected, if it exceeds the flood limit of a connection", async () => {
    const { code, err, output } = await outputOf(
      "run",
      "--queue-timeout",
      "60s",
      "--",
      "sh",
      "-c",
      "yes 12 | head -c 12000000",
    );
    expect([code, output.equals(rows(4_000_000, "12"))]).toEqual([0, true]);
    expect(err).not.toContain("connection lost");
  });
});
