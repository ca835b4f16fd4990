import { describe, expect, it } from "@jest/globals";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { computeNode } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();

function addPending(...ids: readonly string[]): void {
  for (const id of ids) {
    const node = computeNode(id);
    if (node.membership) node.membership.state = MembershipState.PENDING;
    server.add(node);
  }
}

describe("node approve and the like, of many nodes", () => {
  it("should show the nodes and do it to those alone, when the answer is yes", async () => {
    addPending("n1", "n2");
    const asked: string[] = [];
    const answer = await runAgainst(server, "node approve --filter-approval pending -m fine", {
      ask: async (question) => {
        asked.push(question);
        addPending("n3");
        return "y";
      },
    });
    expect(asked).toEqual(["approve 2 nodes? [y/N] "]);
    expect(answer).toEqual({
      code: 0,
      out: lines("NODE  OUTCOME", "n1    Ok", "n2    Ok"),
      err: lines("NODE  APPROVAL  STATUS   OUTCOME", "n1    PENDING   HEALTHY  Ok", "n2    PENDING   HEALTHY  Ok"),
    });
    expect(server.calls).toEqual(["ApproveNode [] fine dry", "ApproveNode [n1,n2] fine"]);
    expect(server.nodes.get("n3")?.membership?.state).toBe(MembershipState.PENDING);
  });

  it("should do nothing when the answer is anything else", async () => {
    addPending("n1", "n2");
    const surroundings = { ask: async () => "" };
    const { code, err } = await runAgainst(server, "node reject n1 n2", surroundings);
    expect([code, err.split("\n").at(-2)]).toEqual([1, "nothing was done"]);
    expect(server.calls).toEqual(["RejectNode [n1,n2] dry"]);
  });

  it("should want --yes where nobody can be asked, and not ask for one node", async () => {
    addPending("n1", "n2");
    const refused = await runAgainst(server, "node delete --all");
    expect(refused.code).toBe(2);
    expect(refused.err).toContain("delete 2 nodes?");
    expect(refused.err).toContain("--yes");
    const one = await runAgainst(server, "node delete n1 n1 --filter-approval pending");
    expect(one).toMatchObject({ code: 0, err: "" });
    expect((await runAgainst(server, "node delete --all --yes")).code).toBe(0);
    expect(server.nodes.size).toBe(0);
  });

  it("should report each node's outcome, and exit with 1 when one was refused", async () => {
    addPending("n1");
    server.add(computeNode("n2"));
    const answer = await runAgainst(server, "node approve n1 n2 n3 --yes");
    expect(answer).toEqual({
      code: 1,
      out: lines("NODE  OUTCOME", "n1    Ok", "n2    node n2 already approved", "n3    node n3 not found"),
      err: "failed to approve 1 of 3 nodes\n",
    });
    const { out } = await runAgainst(server, "node cordon n1 n2 --yes --output json");
    expect(JSON.parse(out)).toMatchObject({
      outcomes: [{ nodeId: "n1", node: { id: "n1" } }, { nodeId: "n2" }],
    });
  });

  it("should say what it would do", async () => {
    addPending("n1");
    const answer = await runAgainst(server, "node approve n1 --dry-run");
    expect(answer.code).toBe(0);
    expect(answer.out).toContain("n1    PENDING   HEALTHY  Ok");
    expect(server.nodes.get("n1")?.membership?.state).toBe(MembershipState.PENDING);
  });

  it("should say so when no node matches, which is no failure", async () => {
    const answer = await runAgainst(server, "node cordon --labels zone=a");
    expect(answer).toEqual({ code: 0, out: "", err: "no node matches\n" });
  });

  it.each([
    ["node approve", "name the nodes"],
    ["node approve n1 --all", "--all means every node"],
    ["node approve --filter-status healthy,connected", "not both"],
    ["node approve --filter-approval perhaps", "cannot use 'perhaps'"],
    ["node approve n1 n2 --etag x", "--etag is for one node"],
    ["node approve --labels= --filter-approval pending", "--labels is empty"],
    ["node label n1", "which labels"],
    ["node label n1 a=1 a=2", "a is set twice"],
    ["node ban n1 --key SHA256:x", "alone"],
  ])("should refuse %j as wrong usage", async (line, message) => {
    const answer = await runAgainst(server, line);
    expect(answer).toMatchObject({ code: 2, out: "" });
    expect(answer.err).toContain(message);
    expect(server.calls).toEqual([]);
  });
});

describe("node label", () => {
  it("should tell nodes, labels to set and labels to remove apart", async () => {
    addPending("n1", "n2");
    expect(await runAgainst(server, "node label n1 zone=a empty= old-")).toMatchObject({
      code: 0,
      out: "Ok\n",
    });
    const many = await runAgainst(server, "node label n1 n2 zone=b --yes");
    expect(many.code).toBe(0);
    expect(server.calls).toEqual([
      'SetNodeLabels [{"zone":"a","empty":""},["old"]] n1',
      'SetNodeLabels [{"zone":"b"},[]] [n1,n2]',
    ]);
  });
});

describe("node ban, unban and bans", () => {
  it("should ban and unban a node, an id and a key", async () => {
    addPending("n1");
    for (const line of ["node ban n1 -m stolen", "node unban n1"]) {
      expect(await runAgainst(server, line)).toEqual({ code: 0, out: "Ok\n", err: "" });
    }
    expect(server.calls).toEqual(["BanNode n1 stolen", "UnbanNode n1"]);
  });

  it("should say so when it is an id that no node has", async () => {
    expect(await runAgainst(server, "node ban ghost")).toEqual({
      code: 0,
      out: "Ok\n",
      err: "there is no node ghost: its id is banned\n",
    });
  });

  it("should list the bans", async () => {
    server.admin.bans = [
      { nodeId: "n1", fingerprint: "SHA256:abc", reason: "stolen", actor: "token:t1" },
      { nodeId: "ghost", actor: "token:t1", createTime: { seconds: 0n } },
    ];
    expect((await runAgainst(server, "node bans")).out).toBe(
      lines(
        "NODE   KEY         SINCE                     ACTOR     REASON",
        "n1     SHA256:abc  -                         token:t1  stolen",
        "ghost  -           1970-01-01T00:00:00.000Z  token:t1  -",
      ),
    );
    const { out } = await runAgainst(server, "node bans --output csv");
    expect(out.split("\r\n")[1]).toBe("n1,SHA256:abc,,token:t1,stolen");
  });
});
