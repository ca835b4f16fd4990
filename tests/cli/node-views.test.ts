import { afterEach, describe, expect, it } from "@jest/globals";
import { until } from "../../libs/testkit/src/index.ts";
import { FaultProxy } from "../../libs/testkit/src/wire/fault-proxy.ts";
import { lines } from "../../services/cli/src/testing/run.ts";
import { INFO } from "../../services/registry/src/testing/test-node.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();
const terminal = { columns: 150, rows: 7 };
const AWAY = "--health 127.0.0.1:1";

afterEach(() => rig.removeNodes());

/** The usage of processors, and of half of 64 GiB of memory. */
const usage = (cpuPercent: number) => ({ cpuPercent, memoryUsedMib: 32_768, memoryTotalMib: 65_536 });

describe("node describe", () => {
  it("should show a node on one screen, also as `node status`", async () => {
    await rig.connect("n1", { ...INFO, labels: { zone: "a" } });
    for (const verb of ["describe", "status"]) {
      const { code, out, err } = await rig.run(`node ${verb} n1`);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out).toMatch(/^n1 {2}Compute {2}can take work\n\nApproval {4}approved .* auto approved\n/);
      expect(out).toMatch(/^Contact {5}last seen \d+s ago, heartbeat every 15s, unhealthy after 1m/m);
      expect(out).toMatch(/^Memory {6}16\.0 GiB, /m);
      expect(out).toMatch(/^Key {9}SHA256:/m);
      expect(out).toMatch(/^Labels {6}zone=a {2}\(agent\)$/m);
    }
  });

  it("should print the complete node for programs", async () => {
    await rig.register("n1", { ...INFO, labels: { zone: "a" } });
    expect((await rig.run("node describe n1 -o yaml")).out).toMatch(
      /^id: n1\ntype: NODE_TYPE_COMPUTE\nmembership:\n {2}state: MEMBERSHIP_STATE_APPROVED\n/,
    );
    expect((await rig.run("node describe n1")).out).toMatch(/^Registered {2}\S+ \S+, from 127\.0\.0\.1$/m);
    const listed = JSON.parse((await rig.run("node list --output json")).out);
    expect(listed.nodes.map((node: { joinedFrom?: string }) => node.joinedFrom)).toContain("127.0.0.1");
    const json = JSON.parse((await rig.run("node describe n1 --output json")).out);
    expect(json).toMatchObject({ id: "n1", labels: [{ key: "zone", value: "a", tier: "LABEL_TIER_AGENT" }] });
    expect((await rig.run("node describe n1 -o name")).out).toBe("n1\n");
    expect(await rig.run("node describe n1 --output csv")).toEqual({
      code: 2,
      out: "",
      err: `cannot use 'csv' as output value, should be one of: ["table" "name" "json" "yaml"]\n`,
    });
  });

  it("should show the available data without health", async () => {
    await rig.register("n1");
    const { code, out, err } = await rig.run(`node describe n1 ${AWAY}`);
    expect(code).toBe(0);
    expect(out).toContain("Contact     last seen -\n");
    expect(err).toMatch(/^warning: last seen and usage are missing: /);
  });

  it("should accept a prefix from a person, and only exact ids from scripts", async () => {
    await rig.register("web-12");
    for (const verb of ["describe", "why", "health"]) {
      expect(await rig.run(`node ${verb} web-1`)).toMatchObject({ code: 0, out: expect.stringContaining("web-12") });
      for (const format of ["json", "yaml"]) {
        const { code, out, err } = await rig.run(`node ${verb} web-1 -o ${format}`);
        expect([code, out]).toEqual([1, ""]);
        expect(err).toContain("node web-1 not found; did you mean web-12?");
      }
    }
    for (const line of ["node watch web-1 --count 1", "job executions --node web-1", "policy show --node web-1"]) {
      const { code, err } = await rig.run(line);
      expect([line, code]).toEqual([line, 1]);
      expect(err).toContain("did you mean web-12?");
    }
  });

  it("should refuse an unknown node and an ambiguous prefix, and require exactly one node", async () => {
    await rig.register("n1");
    await rig.register("n2");
    expect((await rig.run("node describe x")).err).toMatch(/^failed to describe node x: node x not found/);
    expect((await rig.run("node describe n")).err).toMatch(/n1, n2.*use a longer prefix/);
    expect((await rig.run("node describe")).code).toBe(2);
    expect((await rig.run("node describe n1 n2")).code).toBe(2);
  });
});

describe("node why", () => {
  it("should explain a state, and what would change it", async () => {
    await rig.connect("n1");
    await rig.run(["node", "cordon", "n1", "-m", "disk swap"]);
    const { code, out } = await rig.run("node why n1");
    expect(code).toBe(0);
    expect(out).toMatch(/^\d{4}-\S+ \S+Z {2}joined the cluster, from \S+: auto approved\n {22}by the node$/m);
    expect(out).toMatch(/Z {2}became healthy: heartbeat received\n {22}by the control plane$/m);
    expect(out).toMatch(
      /Z {2}became ineligible, held by operator: operator cordoned, disk swap\n {22}by token admin$/m,
    );
    expect(out).toMatch(/\nlast seen \d+s ago; unhealthy in \d+s unless it sends a heartbeat\n/);
    expect(out).toMatch(
      /cordoned it \(disk swap\)\. It is connected and healthy\.\n {2}operator cordoned since .*\n {2}to change that: rollcall node uncordon n1\n$/,
    );
    expect(out).not.toContain("replica");
    const some = (await rig.run("node why n1 --limit 1 --since 1h")).out;
    expect(some).toMatch(/^\(earlier entries omitted: use --limit to show more\)\n.*became ineligible/);
  });

  it("should report when a silent node becomes UNKNOWN after a goodbye", async () => {
    const stream = await rig.connect("n1");
    stream.send({ case: "goodbye", value: { reason: "stopped" } });
    await rig.client.becomes("n1", "APPROVED DISCONNECTED UNHEALTHY");
    const { out } = await rig.run("node why n1");
    expect(out).toMatch(/\nlast seen \d+s ago; not connected: .*; unknown in \dm unless it reconnects\n/);
  });

  it("should print the answer for programs, and work without health", async () => {
    await rig.register("w1");
    const { out } = await rig.run("node why w1 --output json");
    expect(JSON.parse(out)).toMatchObject({ node: { id: "w1" }, entries: [{ event: { actor: "node:w1" } }] });
    const alone = await rig.run(`node why w1 ${AWAY}`);
    expect(alone.code).toBe(0);
    expect(alone.out).not.toContain("last seen");
    expect(alone.err).toMatch(/^warning: /);
    expect((await rig.run("node why w1 --limit 0")).code).toBe(2);
  });
});

describe("node health", () => {
  it("should draw the last samples of one node, and list all that are held", async () => {
    const stream = await rig.connect("n1");
    const numaNodes = [3, 1].map((memoryUsedMib, id) => ({ id, cpuPercent: 80, memoryUsedMib, memoryTotalMib: 4 }));
    for (const percent of [10, 50, 95]) await stream.beatAcknowledged({ ...usage(percent), numaNodes });
    const { code, out } = await rig.run("node health n1 --no-color", { terminal: { columns: 55, rows: 24 } });
    expect(code).toBe(0);
    expect(out).toMatch(/^n1 {2}healthy\nContact {3}last seen \d+s ago, heartbeat every 15s/);
    expect(out).toMatch(/^CPU +.*▁▅█ {2}95%$/m);
    expect(out).toMatch(/^Memory +.*▅▅▅ {2}50% {2}32\.0 GiB of 64\.0 GiB used$/m);
    expect(out).toMatch(/^NUMA 1 +▇▇▇ {2}80%\n {2}memory +▃▃▃ {2}25% {2}1\.0 MiB of 4\.0 MiB used$/m);
    await rig.connect("n2");
    const table = (await rig.run("node health")).out;
    expect(table).toMatch(/^ID +HEALTH +LAST SEEN +CPU +MEMORY +TEMP +GPU +GPU MEMORY +NUMA MEMORY$/m);
    expect(table).toMatch(/^n1 +healthy +\d+s ago .*▁▅█ 95% .* 75%$/m);
    expect(table).toMatch(/^n2 +healthy +\d+s ago +- +- +- +- +- +-$/m);
    expect((await rig.run("node health -o csv")).out).toMatch(/\r\nn1,HEALTHY,\S+Z,95\.0,50\.0,,,,75\.0\r\n/);
    expect((await rig.run("node health -o name")).out).toBe("n1\nn2\n");
    const all = JSON.parse((await rig.run("node health --output json")).out);
    expect(all.nodes.map(({ nodeId }: { nodeId: string }) => nodeId)).toEqual(["n1", "n2"]);
    const one = JSON.parse((await rig.run("node health n1 --output json")).out);
    expect(one.nodeHealth.samples.length).toBeGreaterThanOrEqual(3);
    expect(one.nodeHealth.samples.at(-1).usage.numaNodes[0]).toMatchObject({ cpuPercent: 80, memoryUsedMib: 3 });
  });

  it("should not fail on a node that has reported nothing yet", async () => {
    await rig.register("n1");
    expect((await rig.run("node health n1")).out).toMatch(/^n1 {2}unknown\nContact {3}last seen -\n/);
  });

  it("should redraw one node on each update, resume after an outage, and end with Ctrl-C", async () => {
    const proxy = await FaultProxy.start(Number(rig.address.split(":")[1]));
    const stream = await rig.connect("n1");
    const ctrlC = new AbortController();
    let isBroken = false;
    const { code, out } = await rig.run("node health n1 --follow --no-color", {
      env: { ROLLCALL_SERVER: `127.0.0.1:${proxy.port}` },
      interrupted: ctrlC.signal,
      onOutput: (all) => {
        if (all.includes("90%")) ctrlC.abort();
        else if (all.includes("10%") && !isBroken) {
          isBroken = true;
          proxy.reset();
        } else stream.beat(usage(isBroken ? 90 : 10));
      },
    });
    await proxy.close();
    expect(code).toBe(130);
    expect(out).toMatch(/^CPU .* 10%$[\s\S]*^cannot reach the health service at [\s\S]*^CPU .* 90%$/m);
  });

  it("should follow one node, for people", async () => {
    expect((await rig.run("node health --follow")).code).toBe(2);
    expect((await rig.run("node health n1 --follow --output json")).code).toBe(2);
  });
});

describe("node watch", () => {
  it("should print one snapshot after the other without a terminal", async () => {
    await rig.connect("n1");
    const { code, out, err } = await rig.run("node watch --interval 1ms --count 2");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out.match(/^\d{4}-\S+ \S+Z {2}every 0\.001s$/gm)).toHaveLength(2);
    expect(out.match(/^n1 +Compute +approved +healthy/gm)).toHaveLength(2);
    expect(out).not.toContain("\u001b");
  });

  it("should redraw in place on a terminal, and restore it on Ctrl-C", async () => {
    await rig.register("n1");
    const ctrlC = new AbortController();
    const { code, out } = await rig.run("node watch --interval 1ms", {
      terminal,
      interrupted: ctrlC.signal,
      onOutput: (all) => {
        if (all.split("\u001b[H").length > 3) ctrlC.abort();
      },
    });
    expect(code).toBe(130);
    expect(out.startsWith("\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[H")).toBe(true);
    expect(out.endsWith("\u001b[?7h\u001b[?25h\u001b[?1049l")).toBe(true);
  });

  it("should show as many nodes as the terminal has lines", async () => {
    for (let at = 0; at < 9; at += 1) await rig.register(`n${at}`);
    const { out } = await rig.run("node watch --count 1 --no-color", { terminal });
    expect(out.match(/n\d +Compute/g)).toHaveLength(3);
    expect(out).toContain("and more");
  });

  it("should fail like any other verb when it cannot start, and continue after a later failure", async () => {
    const gone = await rig.run("node watch n1", { terminal });
    expect(gone).toMatchObject({ code: 1, out: "" });
    expect(gone.err).toMatch(/^failed to watch node n1: node n1 not found/);
    await rig.register("n1");
    const ctrlC = new AbortController();
    let [isGone, isBack] = [false, false];
    const { code, out } = await rig.run("node watch n1 --interval 50ms", {
      interrupted: ctrlC.signal,
      onOutput: (all) => {
        const failure = all.lastIndexOf("failed to watch node n1: node n1 not found");
        if (!isGone) {
          isGone = true;
          void rig.removeNodes();
        } else if (failure >= 0 && !isBack) {
          isBack = true;
          void rig.register("n1");
        } else if (isBack && all.lastIndexOf("n1  Compute") > failure) ctrlC.abort();
      },
    });
    expect(code).toBe(130);
    expect(out).toMatch(/^n1 {2}Compute[\s\S]*^failed to watch node n1[\s\S]*^n1 {2}Compute/m);
  });

  it("should show inside the frame that health does not answer", async () => {
    await rig.register("n1");
    const { out, err } = await rig.run(`node watch --count 1 ${AWAY}`);
    expect(err).toBe("");
    expect(out).toContain("warning: last seen and usage are missing: cannot reach the health service");
  });
});

describe("node summary and status", () => {
  it("should count nodes by state, add up what they have, and what they use", async () => {
    const stream = await rig.connect("n1");
    await stream.beatAcknowledged(usage(37));
    await rig.register("n2");
    await rig.run("node reject n2");
    const { code, out, err } = await rig.run("node summary");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain(
      lines(
        "Nodes:         1 connected / 2 total",
        "Approval:      1 approved, 0 pending, 1 rejected",
        "Health:        1 healthy, 0 unhealthy, 1 unknown",
        "Scheduling:    1 eligible, 0 ineligible",
        "Can take work: 1",
        "Cores:         8 available / 8 total",
        "Memory:        16.0 GiB available / 16.0 GiB total",
        "Disk:          1.0 TiB available / 1.0 TiB total",
        "GPUs:          0 available / 0 total",
        "Control plane: 1 connected / 1 total",
      ),
    );
    expect(out).toMatch(/^CPU used: +37% of 8 cores, 1 node reporting\nMemory used: +32\.0 GiB of 64\.0 GiB \(50%\)$/m);
    expect(JSON.parse((await rig.run("node summary --output json")).out)).toMatchObject({ mayTakeWork: 1 });
    const alone = await rig.run(`node summary ${AWAY}`);
    expect(alone.out).toMatch(/Cluster: +\S+\n$/);
    expect(alone.err).toMatch(/^warning: usage is missing: /);
  });

  it.each([
    ["cpu.usable_millis", "cores unknown since"],
    ["memory_bytes", "memory unknown since"],
    ["disk_bytes", "disk unknown since"],
  ])("should agree everywhere that a node whose %s is unknown takes no work", async (fact, reason) => {
    const stream = await rig.connect("n1", { ...INFO, unknownFacts: [{ fact, reason: "the probe failed" }] });
    await stream.beatAcknowledged(usage(1));
    expect((await rig.run("node describe n1")).out).toMatch(/^n1 {2}Compute {2}takes no work\n/);
    const listed = JSON.parse((await rig.run("node list --output json")).out);
    expect(listed.nodes.filter((node: { mayTakeWork?: boolean }) => node.mayTakeWork)).toEqual([]);
    const { out } = await rig.run("node summary");
    expect(out).toContain(lines("Can take work: 0", "Cores:         0 available / 8 total"));
    const why = (await rig.run("node why n1")).out;
    expect(why).toContain("cannot take work: its agent cannot determine its");
    expect(why).toContain(reason);
  });

  it("should show processes, the log, its relay and upkeep", async () => {
    const { out, code } = await rig.run("status");
    expect(code).toBe(0);
    expect(out).toMatch(
      /^Log: +at revision \d+, no events compacted\nRelay to NATS: not configured\nJoining: +approved at once, /m,
    );
    expect(out).toMatch(/^PROCESS +STATUS +FOR +VERSION\nup-\S+ +connected +\d+\w +0\.1\.0$/m);
    await until("upkeep to have run", async () => (await rig.run("status")).out.includes("succeeded"));
    expect((await rig.run("status")).out).toMatch(
      /^UPKEEP +OUTCOME +LAST RUN +TOOK +ROWS +RUNS +BY\n[\s\S]*^collect-nodes +succeeded +\d+\w ago +\d+\w+ +0 +\d+ +up-/m,
    );
    const json = JSON.parse((await rig.run("status --output json")).out);
    expect(json).toMatchObject({
      processes: [{ type: "NODE_TYPE_ORCHESTRATOR" }],
      brake: { brakes: expect.anything() },
    });
    const alone = await rig.run("status --admin 127.0.0.1:1 -o json");
    expect(alone.code).toBe(0);
    expect(JSON.parse(alone.out)).not.toHaveProperty("brake");
  });
});
