import { describe, expect, it } from "@jest/globals";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { agentLabels, computeNode, orchestratorNode } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();
const list = (options: string, surroundings = {}) => runAgainst(server, `node list ${options}`.trim(), surroundings);

describe("node list", () => {
  it("should print ID, TYPE, APPROVAL and STATUS first, and what health knows last", async () => {
    server.add(computeNode("n1"), orchestratorNode("up-host-7700"), computeNode("n2"));
    server.beat("n1", 2400);
    const { code, out, err } = await list("");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toBe(
      lines(
        "ID            TYPE           APPROVAL  STATUS     SCHEDULING  LABELS           CORES  MEMORY    GPUS  LAST SEEN  CONNECTION",
        "n1            Compute        APPROVED  HEALTHY    ELIGIBLE    gpu=h100,zone=a  16     64.0 GiB  2     2s ago     CONNECTED",
        "n2            Compute        APPROVED  HEALTHY    ELIGIBLE    gpu=h100,zone=a  16     64.0 GiB  2     -          CONNECTED",
        "up-host-7700  Control-plane  APPROVED  CONNECTED  ELIGIBLE    -                -      -         -     -          CONNECTED",
      ),
    );
    expect(server.calls.at(-1)).toBe("ListNodeHealth n1,n2,up-host-7700");
  });

  it("should read on after short pages, also of what health knows", async () => {
    const ids = ["n1", "n2", "n3", "n4", "n5"];
    server.add(...ids.map((id) => computeNode(id)));
    for (const id of ids) server.beat(id, 2400);
    server.mostOfPage = 3;
    const csv = (await list("--output csv --hide-header")).out;
    expect(
      csv
        .trim()
        .split("\r\n")
        .map((row) => row.split(",")[0]),
    ).toEqual(ids);
    expect(csv).not.toContain(",,");
    server.mostOfPage = 1;
    const json = JSON.parse((await list("--output json --limit 4")).out);
    expect(json.nodes.map((node: { id: string }) => node.id)).toEqual(ids.slice(0, 4));
    const table = (await list("--hide-header")).out;
    expect(table.match(/2s ago/g)).toHaveLength(5);
  });

  it("should print RFC 4180 for programs", async () => {
    server.add(computeNode("n1"));
    server.beat("n1", 2400);
    const { out } = await list("--output csv");
    expect(out).toBe(
      "id,type,approval,status,scheduling,labels,cores,memory_bytes,gpus,last_seen,connection\r\n" +
        'n1,Compute,APPROVED,HEALTHY,ELIGIBLE,"gpu=h100,zone=a",16,68719476736,2,2026-08-06T11:59:57.600Z,CONNECTED\r\n',
    );
  });

  it("should print a ListNodesResponse as JSON and as YAML, and ask health for nothing", async () => {
    server.add(computeNode("n1"), computeNode("n2"));
    const json = JSON.parse((await list("--output json")).out);
    expect(json.nodes.map((node: { id: string }) => node.id)).toEqual(["n1", "n2"]);
    expect(json.nodes[0].membership.state).toBe("MEMBERSHIP_STATE_APPROVED");
    expect(json.nextPageToken).toBe("");
    expect((await list("--output yaml")).out).toMatch(/^nodes:\n {2}- id: n1\n/);
    expect(server.calls.some((call) => call.startsWith("ListNodeHealth"))).toBe(false);
  });

  it("should print the groups that --show names, in their own order", async () => {
    server.add(computeNode("n1"));
    const { out } = await list("--show version,labels");
    expect(out).toBe(
      lines(
        "ID  TYPE     APPROVAL  STATUS   LABELS           VERSION  ARCHITECTURE  OS",
        "n1  Compute  APPROVED  HEALTHY  gpu=h100,zone=a  0.1.0    x64           Debian GNU/Linux 12",
      ),
    );
  });

  it("should show why a node is not approved", async () => {
    const node = computeNode("n1");
    if (node.membership) {
      node.membership.state = MembershipState.REJECTED;
      node.membership.message = "wrong rack";
    }
    server.add(node);
    expect((await list("--show reasons --hide-header")).out).toBe(
      "n1  Compute  REJECTED  HEALTHY  2026-08-06 09:00:00Z  AUTO_APPROVED  wrong rack\n",
    );
  });

  it("should send filters, order and selector as the API wants them", async () => {
    await list(
      "--labels zone=a,gpu --filter-approval pending,APPROVED --filter-status unhealthy --filter-type compute --order-by memory --order-reversed --limit 7 --next-token t0",
    );
    expect(JSON.parse(server.calls[0]?.slice("ListNodes ".length) ?? "")).toEqual({
      labelSelector: "zone=a,gpu",
      memberships: [1, 2],
      statuses: [2],
      types: [2],
      orderBy: "memory desc",
      pageSize: 7,
      pageToken: "t0",
    });
  });

  it.each([
    [
      "--filter-approval x",
      `cannot use 'x' as filter-approval value, should be one of: ["approved" "pending" "rejected"]`,
    ],
    [
      "--filter-status up",
      `cannot use 'up' as filter-status value, should be one of: ["healthy" "unhealthy" "unknown" "connected" "disconnected"]`,
    ],
    ["--output xml", `cannot use 'xml' as output value, should be one of: ["table" "wide" "name" "json" "yaml" "csv"]`],
    [
      "--order-by available_cpu",
      "cannot order by available_cpu: what is free on a node is not recorded; --order-by cores orders by what it has in total",
    ],
    ["--limit -1", "cannot use '-1' as limit value, should be a whole number of 0 or more"],
    ["--timeout soon", "cannot use 'soon' as timeout value, should be a duration such as 500ms, 15s or 1m"],
  ])("should refuse %s before it asks anybody", async (options, message) => {
    expect(await list(options)).toEqual({ code: 2, out: "", err: `${message}\n` });
    expect(server.calls).toEqual([]);
  });

  it("should read page after page without --limit", async () => {
    server.add(...Array.from({ length: 450 }, (_, at) => computeNode(`n${String(at).padStart(3, "0")}`)));
    const { out, err } = await list("--hide-header");
    expect(err).toBe("");
    const ids = out
      .trimEnd()
      .split("\n")
      .map((line) => line.split(" ")[0]);
    expect(ids).toHaveLength(450);
    expect(new Set(ids).size).toBe(450);
    expect(server.calls.filter((call) => call.startsWith("ListNodes "))).toHaveLength(3);
    expect(server.calls.filter((call) => call.startsWith("ListNodeHealth"))).toHaveLength(3);
  });

  it("should stop at --limit, tell the next token on standard error, and go on from it", async () => {
    server.add(...["n1", "n2", "n3"].map((id) => computeNode(id)));
    const first = await list("--limit 2 --show labels --hide-header");
    expect(first.out.match(/^n\d/gm)).toEqual(["n1", "n2"]);
    expect(first.err).toBe("more nodes: --next-token t2\n");
    const second = await list("--limit 2 --next-token t2 --show labels --hide-header");
    expect(second).toEqual({
      code: 0,
      out: "n3  Compute  APPROVED  HEALTHY  gpu=h100,zone=a\n",
      err: "",
    });
  });

  it("should go on without health, with one warning", async () => {
    server.add(...Array.from({ length: 201 }, (_, at) => computeNode(`n${at}`)));
    server.healthAway = true;
    const { code, out, err } = await list("");
    expect(code).toBe(0);
    expect(out.split("\n")[1]).toMatch(/^n0 .* 2 {5}- {10}CONNECTED$/);
    expect(err).toBe("warning: last seen and usage are missing: the service is ending\n");
  });

  it("should cut long labels short unless --wide", async () => {
    server.add(computeNode("n1", { labels: agentLabels({ k: "v".repeat(60) }) }));
    expect((await list("--show labels --hide-header")).out).toBe(
      `n1  Compute  APPROVED  HEALTHY  k=${"v".repeat(29)}…\n`,
    );
    expect((await list("--show labels --hide-header --wide")).out).toContain("v".repeat(60));
  });

  it("should colour states on a terminal, unless told not to", async () => {
    server.add(computeNode("n1"));
    const terminal = { columns: 120, rows: 40 };
    expect((await list("", { terminal })).out).toContain("\u001b[32mHEALTHY");
    for (const options of ["--no-color", "--no-style"]) {
      expect((await list(options, { terminal })).out).not.toContain("\u001b[");
    }
    expect((await list("", { terminal, env: { NO_COLOR: "1" } })).out).not.toContain("\u001b[");
  });

  it("should let no text of a node reach the terminal as an escape sequence", async () => {
    server.add(computeNode("n1", { labels: agentLabels({ k: "\u001b[2Jx" }) }));
    expect((await list("--show labels --hide-header")).out).toContain("k=\ufffd[2Jx");
  });
});
