import { describe, expect, it } from "@jest/globals";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { computeNode } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();

describe("node approve, reject and the like", () => {
  it.each([
    ["reject", "RejectNode"],
    ["delete", "DeleteNode"],
    ["cordon", "CordonNode"],
    ["uncordon", "UncordonNode"],
    ["mark-unhealthy", "MarkNodeUnhealthy"],
    ["clear-mark", "ClearNodeMark"],
  ])("should print Ok after %s, and send the reason and the request id", async (verb, method) => {
    server.add(computeNode("n1"));
    const answer = await runAgainst(server, `node ${verb} n1 -m broken --request-id r1`);
    expect(answer).toEqual({ code: 0, out: "Ok\n", err: "" });
    expect(server.calls).toEqual([`${method} n1 broken r1`]);
  });

  it("should approve a pending node", async () => {
    const node = computeNode("n1");
    if (node.membership) node.membership.state = MembershipState.PENDING;
    server.add(node);
    expect((await runAgainst(server, "node approve n1")).out).toBe("Ok\n");
    expect(node.membership?.state).toBe(MembershipState.APPROVED);
  });

  it("should say that there is nothing to change, and fail for that with --strict alone", async () => {
    server.add(computeNode("n1"));
    expect(await runAgainst(server, "node approve n1")).toEqual({
      code: 0,
      out: "Ok\n",
      err: "nothing to change: node n1 already approved\n",
    });
    expect(JSON.parse((await runAgainst(server, "node approve n1 -o json")).out)).toMatchObject({ id: "n1" });
    expect(await runAgainst(server, "node approve n1 --strict")).toEqual({
      code: 1,
      out: "",
      err: "failed to approve node n1: node n1 already approved\n",
    });
    expect((await runAgainst(server, "node approve n1 n1 --all --yes --strict")).code).toBe(2);
  });

  it("should print the node when a format is asked for", async () => {
    server.add(computeNode("n1"));
    const { out } = await runAgainst(server, "node cordon n1 --output json");
    expect(JSON.parse(out)).toMatchObject({
      id: "n1",
      scheduling: { state: "SCHEDULING_STATE_INELIGIBLE" },
    });
  });
});
