import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { needs } from "@rollcall/testkit/needs";
import { buildChecker, checkHistories, describeOperation } from "./checker.ts";
import type { NodeView, OperationName, RecordedOperation } from "./history.ts";

const FRESH: NodeView = { membership: "APPROVED", banned: false, cordoned: false, label: "" };
const CORDONED = { ...FRESH, cordoned: true };
const BANNED = { ...FRESH, membership: "REJECTED", banned: true };
/** The time limit of a test. The first build compiles the checker. */
const LIMIT_MS = 300_000;

const folder = mkdtempSync(join(tmpdir(), "rollcall-checker-"));
const program = join(folder, "checker");
const hasGo = spawnSync("go", ["version"]).status === 0;

function done(operation: OperationName, [callUs, returnUs]: readonly [number, number], seen: NodeView) {
  const value = operation === "label" ? { value: seen.label } : {};
  return { node: "n1", client: 0, operation, ...value, callUs, returnUs, seen };
}

function refused(operation: OperationName, [callUs, returnUs]: readonly [number, number], refusal: string) {
  return { node: "n1", client: 0, operation, callUs, returnUs, refusal };
}

function open(operation: OperationName, callUs: number): RecordedOperation {
  return { node: "n1", client: 0, operation, callUs, returnUs: null };
}

const { describe: describeWithGo } = needs("go", hasGo);

describeWithGo("checkHistories()", () => {
  beforeAll(() => buildChecker(program), LIMIT_MS);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const labelled = (label: string): NodeView => ({ ...FRESH, label });
  it.each<[string, readonly RecordedOperation[]]>([
    ["operations one after the other", [done("cordon", [1, 2], CORDONED), done("read", [3, 4], CORDONED)]],
    ["a concurrent read of the state before", [done("cordon", [1, 9], CORDONED), done("read", [3, 4], FRESH)]],
    ["an unknown outcome that is seen later", [open("cordon", 1), done("read", [5, 6], CORDONED)]],
    [
      "an unknown outcome that takes effect between two reads",
      [open("cordon", 1), done("read", [2, 3], FRESH), done("read", [5, 6], CORDONED)],
    ],
    ["an unknown outcome that never takes effect", [open("ban", 1), done("read", [5, 6], FRESH)]],
    [
      "a ban that outlives its node",
      [
        ...[done("ban", [1, 2], BANNED), done("delete", [3, 4], BANNED), refused("register", [5, 6], "NODE_BANNED")],
        ...[{ node: "n1", client: 0, operation: "unban", callUs: 7, returnUs: 8 } as const],
        done("register", [9, 10], { ...FRESH, membership: "PENDING" }),
      ],
    ],
  ])("should accept %s", async (_, operations) => {
    expect(await checkHistories(program, operations)).toEqual([
      expect.objectContaining({ node: "n1", operations: operations.length, result: "OK" }),
    ]);
  });

  const staleRead = [done("label", [5, 6], labelled("b")), done("read", [7, 8], labelled("a"))];
  const lostWrite = [done("cordon", [3, 4], CORDONED), done("read", [5, 6], FRESH)];
  const doubled = [done("cordon", [1, 2], CORDONED), done("cordon", [3, 4], CORDONED)];
  const undone = [open("cordon", 1), done("read", [3, 4], CORDONED), done("read", [5, 6], FRESH)];
  const unfounded = [refused("approve", [1, 2], "NODE_NOT_FOUND")];
  const early = [done("read", [1, 2], CORDONED)];
  it.each<[string, readonly RecordedOperation[], readonly RecordedOperation[]]>([
    [
      "a stale read",
      [done("label", [1, 2], labelled("a")), ...staleRead, done("read", [9, 10], labelled("b"))],
      staleRead,
    ],
    ["a lost write", [done("read", [1, 2], FRESH), ...lostWrite], lostWrite],
    ["a write that took effect twice", doubled, doubled],
    ["an unknown outcome that took effect and was lost", undone, undone],
    ["a refusal without a cause", unfounded, unfounded],
    ["an operation that is seen before its call", [...early, done("cordon", [3, 4], CORDONED)], early],
  ])("should report %s, with the operations that show it", async (_, operations, minimal) => {
    const [report] = await checkHistories(program, operations);
    expect(report?.result).toBe("ILLEGAL");
    expect(report?.minimal).toEqual(minimal);
  });

  it("should check each node separately", async () => {
    const others = staleRead.map((operation) => ({ ...operation, node: "n2" }));
    const reports = await checkHistories(program, [...doubled.slice(0, 1), ...others]);
    expect(reports.map(({ node, result }) => `${node} ${result}`)).toEqual(["n1 OK", "n2 ILLEGAL"]);
  });
});

describe("describeOperation()", () => {
  it("should print the time, the operation and its result", () => {
    expect(describeOperation(open("ban", 1_500))).toBe("client 0, 1.500 to ? ms: ban -> unknown");
    expect(describeOperation(refused("ban", [1_000, 2_000], "NODE_NOT_FOUND"))).toBe(
      "client 0, 1.000 to 2.000 ms: ban -> NODE_NOT_FOUND",
    );
  });
});
