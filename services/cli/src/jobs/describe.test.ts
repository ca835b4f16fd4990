import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { ExecutionSchema, ExecutionState, JobSchema, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { paintNothing } from "../output/style.ts";
import { lines } from "../testing/run.ts";
import { NOW_MS } from "../testing/sample-nodes.ts";
import { jobPanel } from "./describe.ts";

const LOOK = { paint: paintNothing, columns: 0, nowMs: NOW_MS };

describe("jobPanel()", () => {
  it("should show the job, what it asks for, and its executions", () => {
    const job = create(JobSchema, {
      spec: {
        ...{ name: "web", type: JobType.SERVICE, selector: "zone=a" },
        resources: { millicores: 500, memoryBytes: 268_435_456n, gpus: 1, ports: [{ label: "http" }] },
        task: { case: "process", value: { command: ["python3", "-m", "http.server"] } },
      },
      ...{ version: 2, state: JobState.ACTIVE, wanted: 3, actor: "token:x" },
      executions: { ready: 2, failed: 1 },
      update: { done: 1, total: 3 },
      updateTime: timestampFromMs(NOW_MS - 60_000),
    });
    const execution = create(ExecutionSchema, {
      ...{ id: "01h", job: "web", version: 2, index: 0, nodeId: "n1", ports: { http: 20_000 } },
      ...{ state: ExecutionState.FAILED, reason: "EXITED", observation: { exitCode: 3 } },
      createTime: timestampFromMs(NOW_MS),
    });
    expect(jobPanel(job, [execution], LOOK)).toBe(
      lines(
        "web  service  active for 1m",
        "",
        "Executions  2 of 3 ready, 1 failed",
        "Update      1 of 3 updated",
        "Version     2, submitted by token x",
        "Runs        python3 -m http.server",
        "Nodes       zone=a",
        "Resources   0.5 cores, 256 MiB memory, 1 GPU, ports http=dynamic",
        "",
        "ID   VERSION  INDEX  NODE  STATE   PORTS       PLACED                ENDED  DETAIL",
        "01h  2        0      n1    failed  http=20000  2026-08-06 12:00:00Z  -      exited, exit code 3",
      ),
    );
  });

  it("should show a job without known fields", () => {
    expect(jobPanel(create(JobSchema, { message: "why" }), [], LOOK)).toBe(
      lines("-  -  -", "            why", "", "Executions  0 of 0 ready", "Version     0, submitted by -"),
    );
  });
});
