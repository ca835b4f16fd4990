import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { progressIn } from "../../services/cli/src/testing/run.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

afterEach(() => rig.removeNodes());

describe("node wait", () => {
  it("should wait until nodes are in the states", async () => {
    const waiting = rig.run("node wait n1 n2 --for connected,healthy,approved --timeout 60s");
    // Neither node has registered yet.
    await rig.connect("n1");
    await rig.connect("n2");
    const out = "n1 is connected, healthy, approved\nn2 is connected, healthy, approved\n";
    expect(await waiting).toMatchObject({ code: 0, out });
    expect(await rig.run("node wait n1 --for eligible -o name")).toEqual({ code: 0, out: "n1\n", err: "" });
  });

  it("should not take a node for eligible that is not approved", async () => {
    await rig.register("n1");
    await rig.run("node reject n1 --yes");
    const { code, err } = await rig.run("node wait n1 --for eligible --timeout 300ms");
    expect([code, err]).toEqual([1, expect.stringContaining("it is rejected, disconnected, unknown\n")]);
    const described = await rig.run("node describe n1");
    expect(described).toMatchObject({ code: 0, out: expect.stringMatching(/\nScheduling +- /) });
  });

  it("should notice a drain and a deletion", async () => {
    await rig.connect("n1");
    const drained = rig.run("node wait n1 --for drained --timeout 60s");
    await rig.run("node drain n1 --detach --force");
    expect(await drained).toMatchObject({ code: 0, out: "n1 is drained\n" });
    const deleted = rig.run("node wait n1 --for deleted --timeout 60s");
    await rig.run("node delete n1");
    expect(await deleted).toMatchObject({ code: 0, out: "n1 is deleted\n" });
  });

  it.each([
    [
      ...["n1", "drained", "waiting for node n1 to be drained: it is approved, disconnected, unknown, eligible"],
      "`rollcall node why n1` explains its state",
    ],
    [
      ...["none", "healthy", "waiting for node none to be healthy: it has not registered"],
      "`rollcall node list` shows all nodes",
    ],
  ])("should end when its time is over, and say what it waited for", async (name, state, text, hint) => {
    await rig.register("n1");
    const answer = await rig.run(`node wait ${name} --for ${state} --timeout 300ms`);
    expect(answer).toMatchObject({ code: 1, out: "", err: `timed out after 300ms: ${text}\nhint: ${hint}\n` });
  });

  it("should name the states if none is given", async () => {
    const answer = await rig.run("node wait n1");
    expect(answer).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^name the state to wait for: --for approved\|/),
    });
  });

  it("should show on a terminal that it waits", async () => {
    const terminal = { columns: 80, rows: 24 };
    const line = "node wait none --for healthy --timeout 2s";
    const { err } = await rig.run(line, { terminal, progressAfterMs: 0 });
    expect(progressIn(err)).toContain("|wait for node none to be healthy ... ");
    // The line is removed before the result is printed.
    expect(progressIn(err)).toContain("|timed out after 2s: ");
    expect((await rig.run(line, { progressAfterMs: 0 })).err).not.toContain("\u001b");
  });

  it("should say that a wait without --timeout has no limit", async () => {
    const interrupt = new AbortController();
    const onError = () => interrupt.abort(new Error("interrupted"));
    const { err } = await rig.run("node wait none --for healthy", { interrupted: interrupt.signal, onError });
    const text = "waiting for node none to be healthy: it has not registered";
    expect(err).toContain(`${text}; there is no time limit, --timeout sets one\n`);
  });

  it("should accept only exact ids and known states", async () => {
    await rig.register("web-12");
    expect((await rig.run("node wait web-1 --for deleted")).out).toBe("web-1 is deleted\n");
    for (const states of ["", "idle", "deleted,healthy"]) {
      expect((await rig.run(["node", "wait", "web-12", "--for", states])).code).toBe(2);
    }
  });
});

describe("job wait", () => {
  it("should end at its timeout", async () => {
    await rig.register("n1");
    writeFileSync(
      join(rig.folder, "slow.yaml"),
      "name: slow\ntype: service\nqueueTimeout: 1h\nprocess: {command: [sleep, 1h]}\n",
    );
    expect((await rig.run("job run --detach slow.yaml")).code).toBe(0);
    const answer = await rig.run("job wait slow --timeout 300ms");
    expect(answer).toMatchObject({
      code: 1,
      err: expect.stringContaining("timed out after 300ms: waiting for job slow"),
    });
  });
});
