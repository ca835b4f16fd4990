import { beforeAll, describe, expect, it } from "@jest/globals";
import { until } from "../../libs/testkit/src/index.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

beforeAll(async () => {
  for (const id of ["n1", "n2", "n3"]) await rig.register(id);
  await rig.run(["node", "cordon", "n1", "-m", "a, b"]);
  const env = { ROLLCALL_TOKEN: await rig.createToken("viewer") };
  await rig.run("node approve n2 -m try", { env });
  // Wait, because a refusal is written to the audit log shortly after the call was answered.
  await until("the refusal to be written", async () => (await targetsOf("--outcome ROLE_TOO_LOW")).length > 0);
});

async function targetsOf(options: string): Promise<string[]> {
  const { out } = await rig.run(`audit list ${options} -o json`);
  return JSON.parse(out).entries.map(({ target }: { target: string }) => target);
}

describe("audit list", () => {
  it("should print the log, the newest entries first", async () => {
    const { code, out } = await rig.run("audit list");
    expect(code).toBe(0);
    const [heading, ...rows] = out.trimEnd().split("\n");
    expect(heading).toMatch(/^SEQ +TIME +ACTOR +METHOD +TARGET +OUTCOME +ADDRESS +REASON$/);
    expect(rows[0]).toMatch(/^5 +\d{4}-\S+ \S+Z +token viewer +ApproveNode +n2 +role too low +127\.0\.0\.1:\d+ +try$/);
    expect(rows[1]).toMatch(/ CordonNode +n1 +OK .* a, b$/);
    expect(rows).toHaveLength(5);
    const narrow = (await rig.run("audit list", { env: { COLUMNS: "80" } })).out.split("\n");
    expect(Math.max(...narrow.map(({ length }) => length))).toBeLessThanOrEqual(80);
  });

  it("should filter, order and stop at the limit, with a token for the rest", async () => {
    expect(await targetsOf("--outcome ROLE_TOO_LOW")).toEqual(["n2"]);
    expect(await targetsOf("--method CordonNode --target n1")).toEqual(["n1"]);
    expect(await targetsOf("--actor node:n3 --since 1h")).toEqual(["n3"]);
    expect(await targetsOf("--until 2020-01-01")).toEqual([]);
    expect(await targetsOf("--oldest-first --limit 2")).toEqual(["n1", "n2"]);
    const { nextPageToken } = JSON.parse((await rig.run("audit list --limit 2 -o json")).out);
    expect(nextPageToken).not.toBe("");
  });

  it("should print request ids in CSV and in wide tables", async () => {
    const rows = (await rig.run("audit list -o csv --method CordonNode")).out.split("\r\n");
    expect(rows[0]).toBe("sequence,time,actor,method,target,outcome,address,reason,request_id");
    expect(rows[1]).toMatch(/^4,\S+Z,token:\S+,rollcall\.admin\.v1\.AdminService\/CordonNode,n1,OK,\S+,"a, b",\S+$/);
    expect((await rig.run("audit list -o wide")).out).toMatch(/^SEQ .* REQUEST$/m);
  });

  it.each(["--since yesterday", "--until 2026-13-01", "--limit few"])("should refuse %s", async (option) => {
    const { code, err } = await rig.run(`audit list ${option}`, { env: { ROLLCALL_SERVER: "127.0.0.1:1" } });
    expect(code).toBe(2);
    expect(err).toContain("cannot use");
  });
});

describe("audit verify", () => {
  it("should verify the whole log, print its head, and find that head again", async () => {
    const { code, out } = await rig.run("audit verify");
    expect(code).toBe(0);
    const [, head = ""] = /^The audit log is intact: 5 entries\.\nHead: (5:[0-9a-f]{64})\n/.exec(out) ?? [];
    const again = await rig.run(`audit verify --expect-head ${head}`);
    expect(again.out).toContain("5 entries, and entry 5 is as expected.");
    const other = await rig.run(`audit verify --expect-head 5:${"ab".repeat(32)}`);
    expect(other).toMatchObject({ code: 1, err: expect.stringContaining("the chain itself does not show where") });
  });

  it.each(["3", "x:y", `3:${"ab".repeat(32)}0`])("should refuse a head of %s", async (head) => {
    const { code, err } = await rig.run(`audit verify --expect-head ${head}`);
    expect(code).toBe(2);
    expect(err).toContain("should be SEQ:HASH");
  });

  it("should name the first broken entry and fail, for programs too", async () => {
    await rig.store.db.updateTable("audit_log").set({ target: "n9" }).where("sequence", "=", 3n).execute();
    const { code, out, err } = await rig.run("audit verify");
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(/^the audit log is broken at entry 3: .*\nthe 2 entries before it are intact/);
    const json = await rig.run("audit verify --output json");
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({ problem: { sequence: "3" } });
  });
});

// This test must be the last one, because it removes entries that earlier tests read.
describe("audit export and prune", () => {
  it("should write the log as JSON Lines, and remove what was written, with the log still intact", async () => {
    const { code, out, err } = await rig.run("audit export");
    expect(code).toBe(0);
    const entries = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(entries.map(({ sequence }) => sequence)).toEqual(entries.map((_, index) => String(index + 1)));
    const [, head = ""] = /through (\d+:[0-9a-f]{64})\n$/.exec(err) ?? [];
    expect(head).toBe(`${entries.length}:${entries.at(-1).hash}`);

    const wrong = await rig.run(`audit prune --through ${entries.length}:${"0".repeat(64)}`);
    expect([wrong.code, wrong.err]).toEqual([
      1,
      expect.stringContaining("has no entry 5 with this hash: export it again"),
    ]);

    const pruned = await rig.run(`audit prune --through ${head} -m kept-elsewhere`);
    expect([pruned.code, pruned.out]).toEqual([
      0,
      expect.stringContaining(`the log now starts after ${head}\nSignature of the new start: `),
    ]);
    const verified = await rig.run("audit verify");
    expect([verified.code, verified.out]).toEqual([0, expect.stringContaining(`It begins after ${head}, signature `)]);
    expect((await rig.run(`audit verify --expect-head ${head}`)).code).toBe(0);
    const gone = await rig.run(`audit verify --expect-head 1:${entries[0].hash}`);
    expect([gone.code, gone.err]).toEqual([1, expect.stringContaining("entry 1 was removed")]);
    const rest = (await rig.run("audit export --after 5")).out.trimEnd().split("\n");
    const methods = rest.map((line) => JSON.parse(line)).map(({ method, outcome }) => `${method} ${outcome}`);
    expect(methods).toContainEqual(expect.stringMatching(/PruneAuditLog OK$/));
    expect((await rig.run(`audit prune --through ${head}`)).out).toContain("Removed 0 entries");
  });
});
