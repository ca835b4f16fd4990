import { readFileSync } from "node:fs";
import { equals } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { JobSpecSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import fc from "fast-check";
import { parseDocument, stringify } from "yaml";
import { type FiledJob, parseJobFile } from "./job-file.ts";
import { readByteCount, readDurationMs } from "./job-file-values.ts";
import { writeDuration, writeJob } from "./write-job.ts";

const EVERYTHING = `name: all
type: batch
count: 7
selector: zone in (a, b), !gpu
matchAgentLabels: true
constraints: {node: n1, gpuModel: h100, gpuIndices: [0, 2], minAgentVersion: 0.2.0, os: linux, architecture: x64}
resources: {cores: 250m, memory: 1536Mi, disk: 1000000001, gpus: 2, ports: {http: dynamic, metrics: 9100}}
process:
  command: [sh, -c, "echo \\"$A\\"\\n"]
  env: {A: "1.10", B: "true", C: ""}
  secretEnv: {TOKEN: file}
  directory: /srv
  user: nobody
  stop: {signal: SIGINT, grace: 90s}
  output: {maxFileSize: 1Mi, maxFiles: 2}
check: {command: [test, -e, ready], interval: 1500ms, timeout: 2s, failures: 4}
loss: {lostAfter: 0s, stopOnAgentAfter: 1h, replace: false, reconcile: keep-original}
retry: {attempts: 0, backoff: constant, interval: 250ms, max: 1d}
update: {maxParallel: 2, minReadyTime: 10s, readyDeadline: 5m}
placement: {strategy: spread, maxPerNode: 3}
queueTimeout: 61s
maxRunTime: 12h
annotations: {a.b/c: "null"}
`;

function jobsOf(text: string): readonly FiledJob[] {
  const file = parseJobFile(text);
  if (!file.ok) throw new Error(JSON.stringify(file.problems));
  return file.jobs;
}

const page = readFileSync(new URL("../../../../docs/job-file.md", import.meta.url), "utf8");
const examples = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = ""]) => text);

describe("writeJob()", () => {
  it.each([EVERYTHING, "{name: least, type: ops, process: {command: [x]}, retry: {}}", ...examples])(
    "should write a job so that it is read back unchanged: %.20s",
    (text) => {
      for (const { spec } of jobsOf(text)) {
        const written = stringify({ name: spec.name, ...Object(writeJob(spec)) });
        expect(jobsOf(written).map((job) => equals(JobSpecSchema, job.spec, spec))).toEqual([true]);
      }
    },
  );

  it("should write values as people do", () => {
    const [job] = jobsOf(EVERYTHING);
    expect(job === undefined ? null : writeJob(job.spec)).toMatchObject({
      resources: { cores: 0.25, memory: "1536Mi", disk: 1_000_000_001, ports: { http: "dynamic", metrics: 9100 } },
      process: { stop: { grace: "90s" }, env: { A: "1.10" } },
      loss: { lostAfter: "0s", replace: false },
      retry: { attempts: 0, interval: "250ms", max: "24h" },
      queueTimeout: "61s",
    });
  });

  it("should write every duration and every size so that it is read back unchanged", () => {
    const scalar = (text: string) => {
      const { contents } = parseDocument(text);
      if (contents === null) throw new Error("it has nothing in it");
      return contents;
    };
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 300_000_000_000 }), (ms) => {
        expect(readDurationMs(scalar(writeDuration(`${ms / 1_000}s`)))).toEqual({ ok: true, value: ms });
      }),
    );
    fc.assert(
      fc.property(fc.maxSafeInteger(), (given) => {
        const bytes = Math.abs(given);
        const job = jobsOf(`{name: a, type: ops, process: {command: [x]}, resources: {memory: ${bytes}}}`)[0];
        const { resources } = Object(job === undefined ? null : writeJob(job.spec));
        const text = String(resources.memory ?? 0);
        expect(readByteCount(scalar(text))).toEqual({ ok: true, value: bytes });
      }),
    );
  });
});
