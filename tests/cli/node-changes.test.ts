import { afterEach, describe, expect, it } from "@jest/globals";
import { getNode, readEvents } from "../../libs/store/src/index.ts";
import { addNode } from "../../libs/testkit/src/index.ts";
import { lines } from "../../services/cli/src/testing/run.ts";
import { INFO } from "../../services/registry/src/testing/test-node.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

afterEach(() => rig.removeNodes());

async function addPending(...ids: readonly string[]): Promise<void> {
  for (const id of ids) await addNode(rig.store, id, { membership: "PENDING" });
}

async function membershipOf(id: string): Promise<string | undefined> {
  return (await getNode(rig.store.db, id))?.membership.state;
}

/** Read the events about a node, their types, and the last event. */
async function eventsOf(subject: string) {
  const { events } = await readEvents(rig.store.db, { after: 0n, limit: 1_000, subject });
  return { events, types: events.map(({ type }) => type), last: events.at(-1) };
}

describe("node approve, reject and the like, of one node", () => {
  it.each([
    ["reject", "", "node.rejected", "rejected"],
    ["delete", "", "node.deleted", "deleted"],
    ["cordon", "", "node.scheduling.changed", "cordoned"],
    ["uncordon", "cordon", "node.scheduling.changed", "uncordoned"],
    ["mark-unhealthy", "", "node.health.changed", "marked unhealthy"],
    ["clear-mark", "mark-unhealthy", "node.health.changed", "no longer marked"],
    ["rotate-key", "", "node.key.rotation.required", "must replace its key"],
    ["ban", "", "node.banned", "banned"],
    ["unban", "ban", "node.unbanned", "unbanned; it stays rejected until it is approved"],
  ])("should print the result of %s, with the reason in the log", async (verb, before, type, result) => {
    const id = `one-${verb}`;
    await rig.register(id);
    if (before !== "") await rig.run(`node ${before} ${id}`);
    const answer = await rig.run(`node ${verb} ${id} -m broken --request-id ${verb}`);
    expect(answer).toEqual({ code: 0, out: `Ok: ${id} ${result}\n`, err: "" });
    expect((await eventsOf(id)).events).toContainEqual(expect.objectContaining({ type, message: "broken" }));
    // Repeating a request changes nothing. It is not refused because the state is already reached.
    const again = await rig.run(`node ${verb} ${id} -m broken --request-id ${verb}`);
    expect(again).toEqual({ code: 0, out: `Ok: ${id} ${result}\n`, err: "" });
  });

  it("should accept only exact ids, and suggest the node that was likely meant", async () => {
    await addPending("pending-12");
    const { code, out, err } = await rig.run("node approve pending-1");
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain("failed to approve node pending-1: node pending-1 not found; did you mean pending-12?");
    expect(await membershipOf("pending-12")).toBe("PENDING");
  });

  it.each([
    ["approve", "", "was already approved", "node n1 is already approved"],
    ["reject", "reject", "was already rejected", "node n1 is already rejected"],
    ["cordon", "cordon", "was already cordoned", "node n1 is already cordoned"],
    ["uncordon", "", "was not cordoned", "node n1 is not cordoned"],
    ["mark-unhealthy", "mark-unhealthy", "was already marked unhealthy", "node n1 is already marked unhealthy"],
    ["clear-mark", "", "was not marked", "node n1 is not marked"],
    ["ban", "ban", "was already banned", "node n1 is already banned"],
    ["unban", "", "was not banned", "node n1 is not banned"],
    ["rotate-key", "rotate-key", "was already asked to replace its key", "node n1 was already asked to rotate its key"],
  ])("should take a repeated %s for done, and fail with --strict", async (verb, before, already, message) => {
    await rig.register("n1");
    if (before !== "") await rig.run(`node ${before} n1`);
    const { types } = await eventsOf("n1");
    const done = await rig.run(`node ${verb} n1`);
    expect(done).toMatchObject({ code: 0, out: `Ok: n1 ${already}\n` });
    const name = await rig.run(`node ${verb} n1 -o name`);
    expect(name).toMatchObject({ code: 0, out: "n1\n" });
    expect(name.err).toContain(`nothing to change: ${message}`);
    const strict = await rig.run(`node ${verb} n1 --strict`);
    expect(strict).toMatchObject({ code: 1, out: "" });
    expect(strict.err).toContain(`failed to ${verb} node n1: ${message}`);
    expect((await eventsOf("n1")).types).toEqual(types);
    await rig.run("node unban n1");
  });

  it("should print the node if a format is requested, changed or not", async () => {
    await rig.register("n1");
    for (const code of [0, 0]) {
      const { out, ...answer } = await rig.run("node cordon n1 -o json");
      expect(answer.code).toBe(code);
      expect(JSON.parse(out)).toMatchObject({ id: "n1", scheduling: { state: "SCHEDULING_STATE_INELIGIBLE" } });
    }
    expect((await rig.run("node uncordon n1 -o name")).out).toBe("n1\n");
  });

  it("should refuse an unknown node, and leave nodes whose ids begin alike", async () => {
    await rig.register("web-1");
    await rig.register("web-12");
    const gone = await rig.run("node delete nothing");
    expect(gone.code).toBe(1);
    expect(gone.err).toMatch(/^failed to delete node nothing: node nothing not found/);
    // A script that repeats the deletion gets the same refusal.
    expect((await rig.run("node delete web-1")).out).toBe("Ok: web-1 deleted\n");
    const again = await rig.run("node delete web-1");
    expect(again.code).toBe(1);
    expect(again.err).toMatch(/^failed to delete node web-1: node web-1 not found; did you mean web-12\?\n/);
    for (const line of ["node cordon web-1", "node ban web-1", "node drain web-1 --detach", "node label web-1 a=b"]) {
      expect(await rig.run(line)).toMatchObject({ code: 1, out: "" });
    }
    const many = await rig.run("node cordon web-1 web --yes");
    expect(many.code).toBe(1);
    expect(many.out).toMatch(/^web-1 +node web-1 not found; did you mean web-12\?$/m);
    expect(await getNode(rig.store.db, "web-12")).toMatchObject({ membership: { state: "APPROVED" }, holds: [] });
  });

  it("should refuse a node that has changed since its etag", async () => {
    await rig.register("n1");
    const { etag } = JSON.parse((await rig.run("node describe n1 -o json")).out);
    expect((await rig.run(`node cordon n1 --etag ${etag}`)).code).toBe(0);
    expect((await rig.run(`node uncordon n1 --etag ${etag}`)).code).toBe(1);
  });
});

describe("node approve and the like, of many nodes", () => {
  it("should show the nodes and change only those when the answer is yes", async () => {
    await addPending("n1", "n2");
    const asked: string[] = [];
    const answer = await rig.run("node approve --filter-approval pending -m fine", {
      ask: async (question) => {
        asked.push(question);
        await addPending("n3");
        return "y";
      },
    });
    expect(asked).toEqual(["approve 2 nodes? [y/N] "]);
    expect(answer).toEqual({
      code: 0,
      out: lines("NODE  OUTCOME", "n1    Ok", "n2    Ok"),
      err: lines("NODE  APPROVAL  STATUS   OUTCOME", "n1    pending   unknown  Ok", "n2    pending   unknown  Ok"),
    });
    expect((await eventsOf("n1")).last).toMatchObject({ type: "node.approved", message: "fine" });
    expect(await membershipOf("n3")).toBe("PENDING");
  });

  it("should do nothing on any other answer", async () => {
    await addPending("n1", "n2");
    const { code, err } = await rig.run("node reject n1 n2", { ask: async () => "" });
    expect([code, err.split("\n").at(-2)]).toEqual([1, "nothing was changed"]);
    expect(await membershipOf("n1")).toBe("PENDING");
  });

  it("should ask about one node that options chose, and need --yes without a terminal", async () => {
    await addPending("n1");
    const refused = await rig.run("node delete --all");
    expect(refused).toMatchObject({ code: 2, out: "" });
    expect(refused.err).toMatch(/^cannot ask whether to delete 1 node .*--yes/);
    const asked: string[] = [];
    await rig.run("node delete --filter-approval pending", {
      ask: async (question) => {
        asked.push(question);
        return "n";
      },
    });
    expect(asked).toEqual(["delete 1 node? [y/N] "]);
    const named = await rig.run("node delete n1 n1 --filter-approval pending");
    expect(named).toMatchObject({ code: 0, err: "" });
    expect(await membershipOf("n1")).toBeUndefined();
  });

  it("should not change the processes of the control plane unless their type is named", async () => {
    await addPending("n1");
    expect(await rig.run("node delete --all --yes")).toEqual({
      code: 0,
      out: lines("NODE  OUTCOME", "n1    Ok"),
      err: "",
    });
    const { code, out } = await rig.run("node delete --type control-plane --yes");
    expect(code).toBe(1);
    expect(out).toMatch(/stop that process/);
  });

  it("should report each node's outcome, and exit with 1 when one was refused", async () => {
    await addPending("n1");
    await addNode(rig.store, "n2");
    const answer = await rig.run("node approve n1 n2 n3 --yes");
    const hint = "hint: `rollcall node list` shows all nodes; `rollcall node list --deleted` those that are gone";
    expect(answer).toMatchObject({ code: 1, err: `failed to approve 1 of 3 nodes\n${hint}\n` });
    expect(answer.out).toMatch(
      /^NODE {2}OUTCOME\nn3 {4}node n3 not found\nn1 {4}Ok\nn2 {4}node n2 is already approved\n$/,
    );
    expect((await rig.run("node approve n1 n2 --yes")).code).toBe(0);
    expect((await rig.run("node approve n1 n2 --yes --strict")).err).toBe("failed to approve 2 of 2 nodes\n");
    const { out } = await rig.run("node cordon n1 n2 --yes -o json");
    expect(JSON.parse(out)).toMatchObject({ outcomes: [{ nodeId: "n1", node: { id: "n1" } }, { nodeId: "n2" }] });
    expect((await rig.run("node uncordon n1 n2 --yes -o name")).out).toBe("n1\nn2\n");
  });

  it("should print the result of a dry run, and change nothing", async () => {
    await addPending("n1");
    const answer = await rig.run("node approve n1 --dry-run");
    expect(answer.code).toBe(0);
    expect(answer.out).toContain("n1    pending   unknown  Ok");
    expect(await membershipOf("n1")).toBe("PENDING");
  });

  it("should report that no nodes match, and exit with 0", async () => {
    for (const more of ["", " --yes", " --dry-run"]) {
      const answer = await rig.run(`node cordon --labels zone=a${more}`);
      expect(answer).toEqual({ code: 0, out: "", err: "no nodes match\n" });
    }
    expect((await rig.run("node cordon --labels zone=a --yes -o json")).err).toBe("no nodes match\n");
  });

  it.each([
    ["node approve", "name the nodes"],
    ["node approve n1 --all", "--all cannot be combined"],
    ["node approve --filter-status healthy,connected", "cannot combine health and connection"],
    ["node approve --filter-approval perhaps", "cannot use 'perhaps'"],
    ["node approve n1 n2 --etag x", "--etag requires exactly one"],
    ["node approve --labels= --filter-approval pending", "--labels is empty"],
    ["node label n1", "no labels given"],
    ["node label n1 a=1 a=2", "a is set twice"],
    ["node ban n1 --key SHA256:x", "cannot be combined with each other"],
  ])("should refuse %j as wrong usage, before it makes a call", async (line, message) => {
    const answer = await rig.run(line, { env: { ROLLCALL_SERVER: "127.0.0.1:1" } });
    expect(answer).toMatchObject({ code: 2, out: "" });
    expect(answer.err).toContain(message);
  });
});

describe("node label", () => {
  it("should set and remove labels of one node, and of many", async () => {
    await rig.register("n1", { ...INFO, labels: { rack: "7" } });
    await rig.register("n2");
    expect(await rig.run("node label n1 zone=a empty= rack=8")).toEqual({ code: 0, out: "Ok: n1 labelled\n", err: "" });
    expect((await rig.run("node list --show labels --hide-header")).out).toContain("empty,rack=8,zone=a");
    expect(await rig.run("node label n1 rack- empty-")).toEqual({
      code: 0,
      out: "Ok: n1 labelled\n",
      err: "rack=7 is in effect now, set by agent\n",
    });
    expect((await rig.run("node label n1 n2 zone=b --yes")).code).toBe(0);
    expect((await rig.run("node list --labels zone=b -o name")).out).toBe("n1\nn2\n");
  });

  it("should say that there is nothing to change, and refuse that with --strict", async () => {
    await rig.register("n1");
    await rig.run("node label n1 zone=a");
    const text = "the labels of node n1 are already as requested\n";
    for (const words of ["zone=a", "other-"]) {
      const out = "Ok: n1 already has the requested labels\n";
      expect(await rig.run(`node label n1 ${words}`)).toEqual({ code: 0, out, err: "" });
      const err = `nothing to change: ${text}`;
      expect(await rig.run(`node label n1 ${words} -o name`)).toEqual({ code: 0, out: "n1\n", err });
      const refusal = `failed to label node n1: ${text}`;
      expect(await rig.run(`node label n1 ${words} --strict`)).toEqual({ code: 1, out: "", err: refusal });
    }
    expect((await rig.run("node label n1 zone=b --strict")).code).toBe(0);
  });

  it("should say which of many nodes need no change, and refuse those with --strict", async () => {
    for (const id of ["n1", "n2"]) await rig.register(id);
    await rig.run("node label n1 zone=a");
    const outcomes = (out: string) => out.split("\n").map((line) => line.trim().split(/ {2,}/));
    const said = [["NODE", "OUTCOME"], ["n1", "nothing to change"], ["n2", "Ok"], [""]];
    const many = await rig.run("node label n1 n2 zone=a --yes");
    expect({ ...many, out: outcomes(many.out) }).toEqual({ code: 0, out: said, err: "" });
    const again = await rig.run("node label n1 n2 zone=a --strict --yes");
    expect(again).toMatchObject({ code: 1, err: expect.stringMatching(/^failed to label 2 of 2 nodes/) });
    // Without a terminal, the command cannot ask for confirmation.
    expect((await rig.run("node label n1 n2 zone=a")).code).toBe(0);
    expect((await rig.run("node label n1 n2 zone=a --request-id r1 --yes")).out).toContain("Ok");
  });

  it("should say that a label is the node's own", async () => {
    await rig.register("n1", { ...INFO, labels: { rack: "7" } });
    const { code, err } = await rig.run("node label n1 rack-");
    expect(code).toBe(1);
    expect(err).toMatch(/^failed to label node n1: .*rack=7 from the node itself/);
  });
});

describe("a request id of node verbs", () => {
  it("should be refused when it was used for another request", async () => {
    for (const id of ["n1", "n2", "n3"]) await rig.register(id);
    const reused = expect.stringMatching(/request id q7[79] was already used for another /);
    for (const [verb, words] of [
      ["cordon", ""],
      ["label", " zone=a"],
    ]) {
      expect(await rig.run(`node ${verb} n1${words} --request-id q77`)).toMatchObject({ code: 0 });
      expect(await rig.run(`node ${verb} n1${words} --request-id q77`)).toMatchObject({ code: 0 });
      expect(await rig.run(`node ${verb} n2${words} --request-id q77`)).toMatchObject({ code: 1, err: reused });
      const many = `node ${verb} n2 n3${words} --request-id`;
      expect(await rig.run(`${many} q77 --yes`)).toMatchObject({ code: 1, err: reused });
      expect(await rig.run(`${many} q78 --yes`)).toMatchObject({ code: 0 });
      expect(await rig.run(`${many} q78 --yes`)).toMatchObject({ code: 0 });
    }
    await rig.run("node uncordon n1");
    // The command is the same at any time, although the time until which it cordons the node is not.
    const until = "node cordon n1 --until 2h --request-id q79";
    for (const _ of ["once", "again"]) expect(await rig.run(until)).toMatchObject({ code: 0 });
    expect((await rig.run("node describe n1")).out).toMatch(/until \d{4}-/);
    expect(await rig.run(until.replace("2h", "3h"))).toMatchObject({ code: 1, err: reused });
    expect(await rig.run("node label n1 zone=b --request-id q77")).toMatchObject({ code: 1, err: reused });
    expect((await rig.run("node list --labels zone=a -o name")).out).toBe("n1\nn2\nn3\n");
  });
});

describe("node ban, unban and bans", () => {
  it("should ban a node, an id and a key, and list the bans", async () => {
    await rig.register("n1");
    await rig.run(["node", "ban", "n1", "-m", "stolen, twice"]);
    expect((await rig.run("node ban ghost")).code).toBe(1);
    expect(await rig.run("node ban --id ghost")).toEqual({ code: 0, out: "Ok: ghost banned\n", err: "" });
    const key = `SHA256:${"k".repeat(43)}`;
    expect((await rig.run(`node ban --key ${key}`)).code).toBe(0);
    const { out } = await rig.run("node bans");
    expect(out).toMatch(/^NODE +KEY +SINCE +ACTOR +REASON\n/);
    expect(out).toMatch(new RegExp(`^- +${key} +\\d{4}-\\S+Z +token admin +-$`, "m"));
    expect(out).toMatch(/^ghost +- /m);
    const csv = (await rig.run("node bans -o csv")).out;
    expect(csv).toMatch(/^n1,SHA256:\S+,\d{4}-\S+Z,token:\S+,"stolen, twice"\r$/m);
    expect((await rig.run("node bans -o name")).out).toContain("ghost\n");
    expect((await rig.run("node unban --id ghost")).out).toBe("Ok: ghost unbanned\n");
    expect((await rig.run(`node unban --key ${key}`)).out).toBe(`Ok: key ${key} unbanned\n`);
    expect((await rig.run("node unban --id ghost")).code).toBe(1);
    await rig.run("node unban n1");
    expect((await rig.run("node bans -o name")).out).not.toMatch(/^(n1|ghost)$/m);
  });
});
