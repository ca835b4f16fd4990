import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ExecutionReportSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import { reportPart } from "./convert.ts";

describe("reportPart()", () => {
  it("should keep what executions run with, for a store that does not know them", () => {
    const running = { id: "e1", state: ObservedState.RUNNING, job: "web", ports: { http: 20_001 }, gpuUuids: ["g1"] };
    const report = create(ExecutionReportSchema, { number: 1n, whole: true, observations: [running] });
    expect(reportPart(report).executions).toMatchObject([
      { id: "e1", observed: "RUNNING", job: "web", ports: { http: 20_001 }, gpuUuids: ["g1"] },
    ]);
  });
});
