import { afterEach, describe, expect, it } from "@jest/globals";
import { addNode } from "../../libs/testkit/src/index.ts";
import { INFO } from "../../services/registry/src/testing/test-node.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();
const list = (options: string, surroundings = {}) => rig.run(`node list ${options}`.trim(), surroundings);

afterEach(() => rig.removeNodes());

/** Split each line into words. */
function words(out: string): string[][] {
  return out
    .trimEnd()
    .split(/\r?\n/)
    .map((line) => line.split(/ {2,}/));
}

function idsOf(out: string): string[] {
  return words(out).map(([id = ""]) => id);
}

describe("node list", () => {
  it("should list the machines, and the processes of the control plane only with --all", async () => {
    await rig.connect("n1", { ...INFO, labels: { zone: "a", gpu: "h100" } });
    await rig.register("n2");
    const { code, out, err } = await list("");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const headings = "ID TYPE APPROVAL STATUS SCHEDULING LABELS CORES MEMORY GPUS LAST-SEEN CONNECTION".split(" ");
    const [heading, n1, n2, ...others] = words(out);
    expect(heading).toEqual(headings.map((title) => title.replace("-", " ")));
    const ago = expect.stringMatching(/^\d+s ago$/);
    const first = ["n1", "Compute", "approved", "healthy", "eligible", "gpu=h100,zone=a", "8", "16.0 GiB", "0"];
    expect(n1).toEqual([...first, ago, "connected"]);
    expect(n2?.slice(0, 6)).toEqual(["n2", "Compute", "approved", "unknown", "eligible", "-"]);
    expect(others).toEqual([]);
    const all = words((await list("--all --hide-header")).out);
    expect(all).toContainEqual(expect.arrayContaining(["Control-plane", "approved", "connected"]));
    expect(all).toHaveLength(3);
    for (const word of ["control-plane", "requester", "Orchestrator"]) {
      const { out: some } = await list(`--type ${word} --hide-header`);
      expect(words(some)).toEqual([expect.arrayContaining(["Control-plane"])]);
    }
    expect(idsOf((await list("--type compute,requester -o name")).out)).toHaveLength(3);
  });

  it("should print RFC 4180, names, and a ListNodesResponse for programs", async () => {
    await rig.connect("n1", { ...INFO, labels: { zone: "a", gpu: "h100" } });
    const csv = (await list("-o csv")).out.split("\r\n");
    expect(csv[0]).toBe("id,type,approval,status,scheduling,labels,cores,memory_bytes,gpus,last_seen,connection");
    expect(csv[1]).toMatch(
      /^n1,Compute,APPROVED,HEALTHY,ELIGIBLE,"gpu=h100,zone=a",8,17179869184,0,\d{4}-\S+Z,CONNECTED$/,
    );
    expect((await list("--output name")).out).toBe("n1\n");
    const json = JSON.parse((await list("-o json")).out);
    expect(json).toMatchObject({ nodes: [{ id: "n1" }], nextPageToken: "" });
    expect(json.nodes[0].membership.state).toBe("MEMBERSHIP_STATE_APPROVED");
    expect((await list("-o yaml")).out).toMatch(/^nodes:\n {2}- id: n1\n/);
  });

  it("should print the groups that --show names, in their own order, and all of them with -o wide", async () => {
    await rig.register("n1", { ...INFO, os: { name: "Debian", architecture: "x64" } });
    const shown = words((await list("--show version,connection")).out);
    expect(shown).toEqual([
      ["ID", "TYPE", "APPROVAL", "STATUS", "CONNECTION", "VERSION", "ARCHITECTURE", "OS"],
      ["n1", "Compute", "approved", "unknown", "disconnected", "0.1.0", "x64", "Debian"],
    ]);
    const wide = (await list("-o wide")).out;
    for (const title of ["LABELS", "VERSION", "REASON", "MESSAGE"]) expect(wide).toContain(title);
  });

  it("should show why a node is not approved", async () => {
    await rig.register("n1");
    await rig.run(["node", "reject", "n1", "-m", "wrong rack"]);
    expect((await list("--show reasons --hide-header")).out).toMatch(
      /^n1 {2}Compute {2}rejected {2}unknown {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}operator rejected {2}wrong rack\n$/,
    );
  });

  it("should filter and order", async () => {
    await addNode(rig.store, "a1", { labels: { zone: "a" }, memoryBytes: 1e9 });
    await addNode(rig.store, "a2", { labels: { zone: "a", gpu: "" }, memoryBytes: 9e9 });
    await addNode(rig.store, "b1", { labels: { zone: "b" }, membership: "PENDING" });
    const ids = async (options: string) => idsOf((await list(`${options} -o name`)).out);
    expect(await ids("--labels zone=a --order-by memory --order-reversed")).toEqual(["a2", "a1"]);
    expect(await ids("--labels zone=a,!gpu")).toEqual(["a1"]);
    expect(await ids("--filter-approval pending,rejected")).toEqual(["b1"]);
    expect(await ids("--filter-status unknown,disconnected")).toEqual(["a1", "a2", "b1"]);
    expect(await ids("--filter-status healthy")).toEqual([""]);
    expect(await ids("--filter-status unknown --filter-connection connected")).toEqual([""]);
    expect(await ids("--filter-connection disconnected --search zone=B")).toEqual(["b1"]);
    await rig.run("node cordon a2");
    expect(await ids("--filter-scheduling ineligible --filter-approval approved")).toEqual(["a2"]);
  });

  it.each([
    [
      "--filter-approval x",
      `cannot use 'x' as filter-approval value, should be one of: ["approved" "pending" "rejected"]`,
    ],
    [
      "--filter-status up",
      `cannot use 'up' as filter-status value, should be one of: ["healthy" "unhealthy" "unknown" "connected" ` +
        `"disconnected"]`,
    ],
    [
      "--filter-connection up",
      `cannot use 'up' as filter-connection value, should be one of: ["connected" "disconnected"]`,
    ],
    ["--deleted --search a", "--deleted and filters cannot be combined"],
    ["--type gpu", `cannot use 'gpu' as type value, should be one of: ["compute" "control-plane"]`],
    ["--output xml", `cannot use 'xml' as output value, should be one of: ["table" "wide" "name" "json" "yaml" "csv"]`],
    [
      "--order-by available_cpu",
      "cannot order by available_cpu: free resources are not stored; --order-by cores orders by the total",
    ],
    ["--limit -1", "cannot use '-1' as limit value, should be a whole number, 0 or greater"],
    ["--timeout soon", "cannot use 'soon' as timeout value, should be a duration such as 500ms, 15s or 1m"],
    ["--deleted --labels a=b", "--deleted and filters cannot be combined"],
  ])("should refuse %s before it makes a call", async (options, message) => {
    // A call would fail, because nothing listens on that port.
    const env = { ROLLCALL_SERVER: "127.0.0.1:1" };
    expect(await list(options, { env })).toEqual({ code: 2, out: "", err: `${message}\n` });
  });

  it("should read page after page without --limit, and from page to page with it", async () => {
    const ids = await rig.addNodes(210);
    expect(idsOf((await list("--hide-header")).out)).toEqual(ids);
    const first = await list("--limit 2 --show labels --hide-header");
    expect(idsOf(first.out)).toEqual(["n000", "n001"]);
    const [, token = ""] = /^for more nodes, use --next-token (\S+)\n$/.exec(first.err) ?? [];
    const second = await list(`--limit 201 --next-token ${token} -o name`);
    expect(idsOf(second.out)).toEqual(ids.slice(2, 203));
    const json = JSON.parse((await list("--limit 4 -o json")).out);
    expect(json.nodes).toHaveLength(4);
    expect(json.nextPageToken).not.toBe("");
  });

  it("should continue without health, with one warning", async () => {
    await rig.addNodes(201);
    const { code, out, err } = await list("--health 127.0.0.1:1");
    expect(code).toBe(0);
    expect(out.split("\n")[1]).toMatch(/^n000 .* {2}- +disconnected$/);
    expect(err).toBe(
      "warning: last seen and usage are missing: cannot reach the health service at 127.0.0.1:1: connection refused\n",
    );
  });

  it("should fit a terminal: drop the columns that matter least, never fold, and cut no wide table", async () => {
    await rig.register("n1", { ...INFO, labels: { k: "v".repeat(60) } });
    expect((await list("--show labels --hide-header")).out).toContain(`k=${"v".repeat(29)}…`);
    expect((await list("--show labels --hide-header --wide")).out).toContain("v".repeat(60));
    const terminal = { columns: 80, rows: 24 };
    const fitting = [await list("--no-color", { terminal }), await list("", { env: { COLUMNS: "80" } })];
    for (const { out } of fitting) {
      expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
      expect(words(out)[0]).toEqual(["ID", "APPROVAL", "STATUS", "SCHEDULING", "CORES", "MEMORY", "GPUS", "LAST SEEN"]);
    }
    expect((await list("-o wide --no-color", { terminal })).out).toContain("v".repeat(60));
  });

  it("should colour states on a terminal by default", async () => {
    await addNode(rig.store, "n1");
    const terminal = { columns: 120, rows: 40 };
    expect((await list("", { terminal })).out).toContain("\u001b[33munknown");
    for (const options of ["--no-color", "--no-style"]) {
      expect((await list(options, { terminal })).out).not.toContain("\u001b[");
    }
    expect((await list("", { terminal, env: { NO_COLOR: "1" } })).out).not.toContain("\u001b[");
  });
});

describe("node list --deleted", () => {
  it("should print when, by whom and why nodes were deleted, and their last states", async () => {
    await rig.register("gone");
    await rig.run(["node", "delete", "gone", "-m", "sold"]);
    const [heading, row] = words((await list("--deleted")).out);
    expect(heading).toEqual([
      "ID",
      "TYPE",
      "DELETED",
      "ACTOR",
      "REASON",
      "MESSAGE",
      "APPROVAL",
      "STATUS",
      "CONNECTION",
    ]);
    const [time, actor] = [expect.stringMatching(/^\d{4}-.*Z$/), "token admin"];
    expect(row).toEqual([
      "gone",
      "Compute",
      time,
      actor,
      "operator deleted",
      "sold",
      "approved",
      "unknown",
      "disconnected",
    ]);
    await rig.register("gone-too");
    await rig.run("node delete gone-too");
    const some = await list("--deleted --limit 1 -o json");
    expect(JSON.parse(some.out)).toMatchObject({ deletedNodes: [{ nodeId: "gone-too" }] });
    expect(JSON.parse(some.out).nextPageToken).not.toBe("");
  });
});
