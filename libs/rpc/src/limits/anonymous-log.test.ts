import { describe, expect, it } from "@jest/globals";
import { createMetrics, renderMetrics } from "@rollcall/process";
import { captureLog } from "@rollcall/testkit/log-capture";
import { ManualClock } from "@rollcall/testkit/time";
import { FirstLines } from "../../test/test-counts.ts";
import { AnonymousLog } from "./anonymous-log.ts";

function rig(counts: FirstLines | null) {
  const clock = new ManualClock();
  const { log, lines } = captureLog();
  const metrics = createMetrics({ defaults: false });
  const anonymousClients = new AnonymousLog({ log, clock, metrics, counts });
  const write = (peer: string, what: string, times = 1) => {
    for (let time = 0; time < times; time += 1) {
      anonymousClients.write({ level: "warn", peer, what, fields: { reason: what }, message: "refused" });
    }
  };
  const told = () => lines.map(({ time: _, level: __, ...fields }) => fields);
  return { clock, anonymousClients, write, told, metrics };
}

describe("AnonymousLog", () => {
  it("should write first lines immediately, and count the others at the end of the interval", async () => {
    const { clock, write, told, metrics } = rig(new FirstLines());
    write("192.0.2.1:1", "TLS", 4);
    write("192.0.2.2:1", "TLS");
    const first = [
      { msg: "refused", peer: "192.0.2.1:1", reason: "TLS" },
      { msg: "refused", peer: "192.0.2.2:1", reason: "TLS" },
    ];
    expect(told()).toEqual(first);
    await clock.pass(60_000);
    const summary = {
      msg: "log lines about anonymous clients omitted",
      address: "192.0.2.1",
      reason: "TLS",
      lines: 3,
    };
    expect(told()).toEqual([...first, summary]);
    expect(clock.sleepers).toBe(0);
    expect(await renderMetrics(metrics)).toContain("rollcall_log_lines_left_out_total 3");
  });

  it("should start a new interval with the next line", async () => {
    const { clock, write, told } = rig(new FirstLines());
    write("192.0.2.1:1", "TLS", 2);
    await clock.pass(60_000);
    write("192.0.2.1:1", "TLS", 3);
    await clock.pass(60_000);
    expect(told().filter(({ msg }) => msg === "log lines about anonymous clients omitted")).toMatchObject([
      { lines: 1 },
      { lines: 2 },
    ]);
  });

  it("should report remaining counts when it is closed, without waiting", async () => {
    const { clock, anonymousClients, write, told } = rig(new FirstLines());
    write("192.0.2.1:1", "TLS", 2);
    await clock.pass(1_000);
    anonymousClients.close();
    await clock.pass(0);
    expect(told().at(-1)).toMatchObject({ lines: 1 });
    expect(clock.sleepers).toBe(0);
  });

  it("should write every line if nothing is counted", () => {
    const { write, told } = rig(null);
    write("192.0.2.1:1", "TLS", 4);
    expect(told()).toHaveLength(4);
  });
});
