import { describe, expect, it } from "@jest/globals";
import { createMetrics, renderMetrics } from "@rollcall/process";
import { ManualClock } from "@rollcall/testkit";
import { captureLog } from "@rollcall/testkit/log-capture";
import { ConnectionTally } from "./connection-tally.ts";

function setUp() {
  const clock = new ManualClock();
  const { log, lines } = captureLog();
  const metrics = createMetrics({ defaults: false });
  const tally = new ConnectionTally("agents", { log, metrics, clock });
  const said = () => lines.splice(0).map(({ reason, connections, from }) => ({ reason, connections, from }));
  return { clock, tally, metrics, said };
}

describe("ConnectionTally", () => {
  it("should log the first event immediately, and then a count once a minute", () => {
    const { clock, tally, said } = setUp();
    tally.add("flood", "10.0.0.1");
    tally.say();
    expect(said()).toEqual([{ reason: "flood", connections: 1, from: ["10.0.0.1"] }]);
    for (let count = 0; count < 5; count += 1) tally.add("flood", "10.0.0.2");
    tally.add("shed", "10.0.0.3");
    clock.advance(59_999);
    tally.say();
    expect(said()).toEqual([{ reason: "shed", connections: 1, from: ["10.0.0.3"] }]);
    clock.advance(1);
    tally.say();
    expect(said()).toEqual([{ reason: "flood", connections: 5, from: ["10.0.0.2"] }]);
    clock.advance(120_000);
    tally.say();
    expect(said()).toEqual([]);
  });

  it("should name three addresses, and only count harmless events", async () => {
    const { tally, metrics, said } = setUp();
    for (let host = 1; host <= 5; host += 1) tally.add("refused_port", `10.0.0.${host}`);
    for (let count = 0; count < 3; count += 1) tally.add("idle", "10.0.0.1");
    tally.say();
    expect(said()).toEqual([{ reason: "refused_port", connections: 5, from: ["10.0.0.1", "10.0.0.2", "10.0.0.3"] }]);
    const text = await renderMetrics(metrics);
    expect(text).toContain('rollcall_connections_ended_total{port="agents",reason="idle"} 3');
    expect(text).toContain('rollcall_connections_ended_total{port="agents",reason="refused_port"} 5');
  });
});
