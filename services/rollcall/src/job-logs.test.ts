import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { type JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { needsRoot } from "@rollcall/testkit/needs";
import { until } from "@rollcall/testkit/time";
import { runInto } from "./testing/rollcall-process.ts";
import { WorkFixture } from "./testing/work-fixture.ts";

// Only root can run executions as another user.
const { describe: asRoot } = needsRoot();

const MIB = 1_048_576;
/** The number of missing bytes in a line on standard error. */
const MISSING = /^([\d,]+) bytes of the standard output of execution \w+ (?:before this )?are (?:no longer|missing)/gm;

type SpecInit = Extract<MessageInitShape<typeof JobSpecSchema>, { readonly $typeName?: never }>;

type JobChanges = SpecInit & { readonly output?: { readonly maxFileBytes: bigint; readonly maxFiles: number } };

asRoot("the output of a job", () => {
  let fixture: WorkFixture;
  const directory = mkdtempSync(join(tmpdir(), "rollcall-job-logs-"));

  beforeAll(async () => {
    // Open the directory for executions, which run as another user and look for a file in it.
    chmodSync(directory, 0o711);
    fixture = await WorkFixture.start();
    for (const name of ["east", "west"]) await fixture.startAgent(name);
  });

  afterAll(async () => {
    await fixture.dispose();
    rmSync(directory, { recursive: true });
  });

  async function outputOf(...words: readonly string[]) {
    const file = join(directory, "out");
    const out = openSync(file, "w");
    const end = await runInto(out, fixture.wordsFor(words)).finally(() => closeSync(out));
    return { ...end, output: readFileSync(file) };
  }

  async function linesOf(...words: readonly string[]) {
    const { code, err, output } = await outputOf("job", "logs", ...words);
    const text = output.toString();
    return { code, err, text, lines: text.split("\n").slice(0, -1) };
  }

  async function submit(name: string, script: string, { output, ...changes }: JobChanges = {}) {
    await fixture.client.jobs.submitJob({
      spec: {
        ...{ name, type: JobType.BATCH, queueTimeout: { seconds: 60n }, retry: { attempts: 0 } },
        task: { case: "process", value: { command: ["sh", "-c", script], ...(output && { output }) } },
        ...changes,
      },
    });
  }

  async function completed(name: string): Promise<void> {
    await until(`the end of ${name}`, async () => {
      return (await fixture.client.jobs.getJob({ name })).job?.state === JobState.COMPLETED;
    });
  }

  const missingIn = (err: string) =>
    [...err.matchAll(MISSING)].reduce((sum, [, bytes = ""]) => sum + Number(bytes.replaceAll(",", "")), 0);

  it("should report how much of it is no longer kept, and print the rest", async () => {
    const output = { maxFileBytes: BigInt(MIB), maxFiles: 2 };
    await submit("large", "yes 1234567 | head -c 8000000", { output });
    await completed("large");
    const { code, err, output: seen } = await outputOf("job", "logs", "large");
    const missing = missingIn(err);
    expect(code).toBe(0);
    expect(err).toMatch(/^[\d,]+ bytes of the standard output of execution \w{26} before this are no longer kept\n$/);
    expect(missing).toBeGreaterThan(8_000_000 - 3 * MIB);
    expect(seen.length + missing).toBe(8_000_000);
    // The part of the output that is still stored has no gap.
    const tail = await linesOf("large", "--tail", "3");
    expect([tail.code, tail.err, tail.text]).toEqual([0, "", "1234567\n".repeat(3)]);
    const all = await linesOf("large", "--tail", "2000000");
    expect([all.code, missingIn(all.err) + all.text.length]).toEqual([0, 8_000_000]);
  });

  it("should be complete if run exits with 0, otherwise be reported with its missing bytes", async () => {
    const total = 60_000_000;
    const words = ["run", "--queue-timeout", "60s", "--", "sh", "-c", `yes 1234567 | head -c ${total}`];
    const { code, err, output } = await outputOf(...words);
    expect({ bytes: output.length + missingIn(err), err }).toEqual({ bytes: total, err });
    expect(code).toBe(missingIn(err) === 0 ? 0 : 75);
    expect(err).not.toContain("has no output");
  });

  it("should be shown for all executions with a prefix, and for one execution as written", async () => {
    await submit("many", 'echo "first $$ROLLCALL_INDEX"; printf "last $$ROLLCALL_INDEX"', { count: 3 });
    await completed("many");
    const all = await linesOf("many");
    expect([all.code, all.err]).toEqual([0, ""]);
    const expected = [0, 1, 2].flatMap((index) => [`many.${index} | first ${index}`, `many.${index} | last ${index}`]);
    expect([...all.lines].sort()).toEqual(expected);
    const ends = await linesOf("many", "--tail", "1");
    expect([...ends.lines].sort()).toEqual([0, 1, 2].map((index) => `many.${index} | last ${index}`));
    const [one] = await fixture.executions({ name: "many" });
    const alone = await linesOf(one?.id ?? "");
    expect(alone.text).toBe(`first ${one?.index}\nlast ${one?.index}`);
    expect((await linesOf("many", "--stderr")).text).toBe("");
  });

  it("should be shown with timestamps, and since a given time", async () => {
    const begin = Date.now();
    await submit("timed", "echo early; echo early too >&2; sleep 4; echo late");
    await completed("timed");
    const end = Date.now();
    const { code, lines } = await linesOf("timed", "--timestamps");
    expect(code).toBe(0);
    const times = lines.map((line) => Date.parse(line.split(" ")[0] ?? ""));
    expect(lines.map((line) => line.replace(/^\S+ /, ""))).toEqual(["early", "late"]);
    // Times have a resolution of one second.
    const [early = 0, late = 0] = times;
    expect(early).toBeGreaterThanOrEqual(begin - 1_000);
    expect(late - early).toBeGreaterThanOrEqual(2_000);
    expect(late).toBeLessThanOrEqual(end);
    const since = await linesOf("timed", "--since", new Date(late).toISOString());
    expect([since.code, since.text, since.err]).toEqual([0, "late\n", ""]);
    const recent = await linesOf("timed", "--since", "1h", "--tail", "1");
    expect([recent.text, recent.err]).toEqual(["late\n", "early too\n"]);
    expect((await linesOf("timed", "--since", new Date(end + 3_600_000).toISOString())).text).toBe("");
  });

  it("should be followed through executions that start later, to the end of the job", async () => {
    const sign = join(directory, "go");
    const script = `echo "try of $$ROLLCALL_INDEX"; while ! test -e ${sign}; do sleep 0.2; done; exit 1`;
    await submit("later", script, { count: 2, retry: { attempts: 1 } });
    // Lines have a prefix once there is more than one execution, and the leader may place one after the other.
    await until("both executions", async () => {
      return (await fixture.client.jobs.listExecutions({ job: "later" })).executions.length === 2;
    });
    const following = fixture.rollcall("job", "logs", "--follow", "later");
    await until("both replicas", () => following.out.includes("later.0 | try") && following.out.includes("later.1 |"));
    closeSync(openSync(sign, "w"));
    expect(await following.exit()).toBe(0);
    const lines = following.out.split("\n").slice(0, -1).sort();
    expect(lines).toEqual(
      [0, 1].flatMap((index) => [
        expect.stringMatching(new RegExp(`^later\\.${index} +\\| try of ${index}$`)),
        expect.stringMatching(new RegExp(`^later\\.${index}/\\w{6} +\\| try of ${index}$`)),
      ]),
    );
  });

  it.each([
    [["--tail", "64Ki"], /cannot use '64Ki' as tail value/],
    [["--since", "yesterday"], /cannot use 'yesterday' as since value/],
  ])("should refuse %j", async (words, message) => {
    const { code, err } = await linesOf("many", ...words);
    expect([code, err]).toEqual([2, expect.stringMatching(message)]);
  });
});
