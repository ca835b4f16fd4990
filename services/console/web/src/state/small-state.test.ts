import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { Role } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { HealthState, HoldKind, MembershipState, SchedulingState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { GetClusterSummaryResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { chunksOf } from "./bulk.ts";
import { activates, nextKey, PREFIX_MS } from "./keys.ts";
import { parseLabelWords } from "./label-words.ts";
import { duplicateFilters, likelyDuplicates } from "./nodes/duplicates.ts";
import { fromCounts, summarize } from "./nodes/fleet-summary.ts";
import { parseViews } from "./nodes/saved-views.ts";
import { testRow } from "./nodes/testing/test-rows.ts";
import { addOutput, MOST_CHARACTERS, NO_OUTPUT, type Output, outputText } from "./output.ts";
import { rightsOf, roleWord } from "./roles.ts";
import { find } from "./search.ts";
import { countOf, formatBytes } from "./units.ts";
import { decodedPart, methodWords } from "./words.ts";

describe("summarize()", () => {
  it("should add up only approved machines", () => {
    const pending = testRow("b", {}, { membership: { state: MembershipState.PENDING }, mayTakeWork: false });
    const summary = summarize([testRow("a"), pending]);
    expect(summary).toMatchObject({ machines: 2, mayTakeWork: 1, membership: { APPROVED: 1, PENDING: 1 } });
    expect(summary.total).toEqual({ cores: 8, memoryBytes: 1024 ** 3, gpus: 0 });
    expect(summary.health).toEqual({ HEALTHY: 1 });
  });

  it("should not count last known GPUs as available", () => {
    const gpus = [{ index: 0, uuid: "GPU-1" }];
    const summary = summarize([testRow("a", {}, { info: { gpus, unknownFacts: [{ fact: "gpus" }] } })]);
    expect([summary.total.gpus, summary.available.gpus]).toEqual([1, 0]);
  });
});

describe("fromCounts()", () => {
  it("should summarize the server's counts like a page that has all nodes", () => {
    const [well, cordoned, waits] = [
      testRow("a"),
      testRow("b", {}, { scheduling: { state: SchedulingState.INELIGIBLE, holds: [{ kind: HoldKind.HARDWARE }] } }),
      testRow("c", {}, { membership: { state: MembershipState.PENDING }, mayTakeWork: false }),
    ];
    const state = { health: HealthState.HEALTHY, membership: MembershipState.APPROVED, count: 1 };
    const size = { cores: 16n, memoryBytes: 2n ** 31n, gpus: 0 };
    const counted = create(GetClusterSummaryResponseSchema, {
      compute: { total: 3, connected: 3 },
      orchestrators: { total: 0, connected: 0 },
      states: [
        { ...state, scheduling: SchedulingState.ELIGIBLE },
        { ...state, scheduling: SchedulingState.INELIGIBLE },
        { ...state, scheduling: SchedulingState.ELIGIBLE, membership: MembershipState.PENDING },
      ],
      holds: [{ kind: HoldKind.HARDWARE, count: 1 }],
      mayTakeWork: 2,
      ...{ total: size, available: size },
    });
    expect(fromCounts(counted)).toEqual(summarize([well, cordoned, waits]));
  });
});

describe("likelyDuplicates()", () => {
  it("should find the same hardware address and host name, and not the node itself", () => {
    const withMac = (id: string, mac: string) =>
      testRow(id, {}, { info: { hostname: id, interfaces: [{ name: "e", mac }] } });
    const [a, b, c] = [withMac("a", "m1"), withMac("b", "m1"), withMac("c", "m2")];
    expect(likelyDuplicates(a, [a, b, b, c], 3)).toEqual([{ id: "b", why: "same hardware address m1" }]);
    const named = testRow("d", {}, { info: { hostname: "c" } });
    expect(likelyDuplicates(named, [a, b, c], 3)).toEqual([{ id: "c", why: "same host name c" }]);
    const both = testRow("e", {}, { info: { hostname: "c", interfaces: [{ name: "e", mac: "m1" }] } });
    expect(likelyDuplicates(both, [c, a], 1)).toEqual([{ id: "a", why: "same hardware address m1" }]);
  });
});

describe("duplicateFilters()", () => {
  it("should request what the machine has, within the limits of a list", () => {
    const interfaces = Array.from({ length: 70 }, (_, n) => ({ name: `e${n}`, mac: `m${n}` }));
    const [byAddress, byName] = duplicateFilters(testRow("a", {}, { info: { hostname: "h", interfaces } }));
    expect([byAddress?.hardwareAddresses?.length, byName?.hostnames]).toEqual([64, ["h"]]);
    expect(duplicateFilters(testRow("a", {}, { info: {} }))).toEqual([]);
  });
});

describe("rightsOf()", () => {
  it.each([
    [Role.VIEWER, "viewer", { operate: false, submit: false, administer: false }],
    [Role.OPERATOR, "operator", { operate: true, submit: false, administer: false }],
    [Role.SUBMITTER, "submitter", { operate: false, submit: true, administer: false }],
    [Role.ADMIN, "admin", { operate: true, submit: true, administer: true }],
  ])("should know role %s", (role, word, rights) => {
    expect(roleWord(role)).toBe(word);
    expect(rightsOf(role)).toEqual(rights);
  });
});

describe("parseLabelWords()", () => {
  it("should set and remove", () => {
    expect(parseLabelWords("zone=a  spot- empty=")).toEqual({
      ok: true,
      set: { zone: "a", empty: "" },
      remove: ["spot"],
    });
  });

  it.each(["", "zone", "-bad=x", "a=b c!"])("should refuse %j", (text) => {
    expect(parseLabelWords(text).ok).toBe(false);
  });
});

describe("addOutput()", () => {
  it("should show text without the control sequences of terminals", () => {
    const text = "\u001b[31mred\u001b[0m\u001b]0;title\u0007 <b>\u0000\tend\n";
    expect(outputText(addOutput(NO_OUTPUT, new TextEncoder().encode(text)))).toBe("red <b>\tend\n");
  });

  it("should join a character that arrives in two parts", () => {
    const decoder = new TextDecoder();
    const bytes = new TextEncoder().encode("aü€");
    const output = [...bytes].reduce((before, byte) => addOutput(before, Uint8Array.of(byte), decoder), NO_OUTPUT);
    expect(outputText(output)).toBe("aü€");
    expect(output.characters).toBe(3);
  });

  it("should fill a piece before it starts another", () => {
    const line = new TextEncoder().encode("x".repeat(1024));
    const output = Array.from({ length: 65 }).reduce((before: Output) => addOutput(before, line), NO_OUTPUT);
    expect(output.pieces.map(({ length }) => length)).toEqual([64 * 1024, 1024]);
    expect(output.characters).toBe(65 * 1024);
  });

  it("should keep the end when it grows too long", () => {
    const piece = new TextEncoder().encode("x".repeat(MOST_CHARACTERS / 2));
    const output = [1, 2, 3].reduce((before) => addOutput(before, piece), NO_OUTPUT);
    expect(outputText(output)).toHaveLength(MOST_CHARACTERS);
    expect(output.dropped).toBe(MOST_CHARACTERS / 2);
  });
});

describe("nextKey()", () => {
  it("should go to a page by two keys in time", () => {
    const { state } = nextKey({ prefix: null }, "g", 0);
    expect(nextKey(state, "n", PREFIX_MS - 1).means).toEqual({ kind: "go", key: "n" });
    expect(nextKey(state, "n", PREFIX_MS).means).toBeNull();
    expect(nextKey({ prefix: null }, "?", 0).means).toEqual({ kind: "help" });
  });
});

describe("activates()", () => {
  it("should leave Enter to a link or button that has the focus, and no other key", () => {
    const button = { closest: (selector: string): unknown => (selector.includes("button") ? button : null) };
    const elsewhere = { closest: () => null };
    expect([activates("Enter", button), activates(" ", button), activates("j", button)]).toEqual([true, true, false]);
    expect([activates("Enter", elsewhere), activates("Enter", null)]).toEqual([false, false]);
  });
});

describe("small functions", () => {
  it("should find by words, with titles that begin with the first word first", () => {
    const items = ["my-gpu", "gpu-2", "other"].map((title) => ({ title, about: title === "other" ? "has a gpu" : "" }));
    expect(find(items, "gpu", 10).map(({ title }) => title)).toEqual(["gpu-2", "my-gpu", "other"]);
    expect(find(items, "gpu has", 10)).toHaveLength(1);
  });

  it("should read saved views, and nothing else", () => {
    expect(parseViews('[{"name":"a","query":"q=1"},{"name":3}]')).toEqual([{ name: "a", query: "q=1" }]);
    expect([parseViews("{"), parseViews(null), parseViews("7")]).toEqual([[], [], []]);
  });

  it("should decode a part of a path, or return it unchanged if it is invalid", () => {
    expect(["a%20b", "%E0%A4%A", "100%"].map(decodedPart)).toEqual(["a b", "%E0%A4%A", "100%"]);
  });

  it("should split lists and format bytes", () => {
    expect(chunksOf([1, 2, 3], 2)).toEqual([[1, 2], [3]]);
    expect([0, 1023, 1536, 16 * 1024 ** 3].map(formatBytes)).toEqual(["0 B", "1023 B", "1.5 KiB", "16 GiB"]);
  });
});

describe("countOf()", () => {
  it.each([
    [0, "0 nodes"],
    [1, "1 node"],
    [1_200, "1,200 nodes"],
  ])("should say %d", (count, text) => {
    expect(countOf(count, "node")).toBe(text);
  });
});

describe("methodWords()", () => {
  it("should write the name of a method as words", () => {
    expect(methodWords("/rollcall.admin.v1.AdminService/ApproveNode")).toBe("approve node");
  });
});
