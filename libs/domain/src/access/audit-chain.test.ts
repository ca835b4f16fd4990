import { describe, expect, it } from "@jest/globals";
import { type AuditHead, type AuditLink, evaluateAuditPiece, evaluateExpectedHead } from "./audit-chain.ts";

interface Entry extends AuditLink {
  readonly text: string;
}

const START: AuditHead = { sequence: 0n, hash: "0" };
const LIMIT = 10;

const hashOf = ({ previousHash, sequence, text }: Omit<Entry, "hash">) => `${previousHash}<${sequence}${text}`;

/** Return the entry with its correct hash. */
function sealed(entry: Omit<Entry, "hash">): Entry {
  return { ...entry, hash: hashOf(entry) };
}

/** Build a valid chain of entries with these strings. */
function chain(...texts: readonly string[]): readonly Entry[] {
  const entries: Entry[] = [];
  for (const [index, text] of texts.entries()) {
    const previousHash = entries.at(-1)?.hash ?? START.hash;
    entries.push(sealed({ sequence: BigInt(index + 1), previousHash, text }));
  }
  return entries;
}

const WHOLE = chain("a", "b", "c");
const [A, B, C] = WHOLE as readonly [Entry, Entry, Entry];
const HEAD: AuditHead = { sequence: 3n, hash: C.hash };

function evaluate(entries: readonly Entry[], head: AuditHead | null = HEAD, after = START, limit = LIMIT) {
  return evaluateAuditPiece({ entries, head }, { after, limit }, hashOf);
}

describe("evaluateAuditPiece()", () => {
  it("should find nothing wrong with a whole chain", () => {
    expect(evaluate(WHOLE)).toEqual({ checked: 3, through: HEAD, complete: true, head: HEAD, problem: null });
    expect(evaluate([], START)).toMatchObject({ checked: 0, through: START, complete: true, problem: null });
  });

  it("should continue where the previous piece ended, and check the head only in the last piece", () => {
    const first = evaluate([A, B], HEAD, START, 2);
    expect(first).toMatchObject({ checked: 2, complete: false, problem: null });
    expect(evaluate([C], HEAD, first.through, 2)).toMatchObject({ checked: 1, complete: true, problem: null });
  });

  it.each<[string, readonly Entry[], AuditHead | null, string, number]>([
    ["an entry is missing", [A, C], HEAD, "ENTRIES_MISSING 3", 1],
    ["the first ones are missing", [C], HEAD, "ENTRIES_MISSING 3", 0],
    ["a text was changed", [A, { ...B, text: "x" }, C], HEAD, "ENTRY_CHANGED 2", 1],
    ["a hash was changed", [A, { ...B, hash: "x" }, C], HEAD, "ENTRY_CHANGED 2", 1],
    ["a changed entry was sealed", [A, sealed({ ...B, text: "x" }), C], HEAD, "LINK_BROKEN 3", 2],
    ["a first entry of another chain", [sealed({ ...A, previousHash: "x" }), B, C], HEAD, "LINK_BROKEN 1", 0],
    ["the head was removed", WHOLE, null, "HEAD_DIFFERS 3", 3],
    ["the head has another hash", WHOLE, { ...HEAD, hash: "x" }, "HEAD_DIFFERS 3", 3],
    ["the head is ahead", [A, B], HEAD, "HEAD_DIFFERS 3", 2],
    ["the head is behind", WHOLE, { sequence: 1n, hash: A.hash }, "HEAD_DIFFERS 2", 3],
  ])("should find that %s", (_, entries, head, problem, checked) => {
    const decision = evaluate(entries, head);
    expect(`${decision.problem?.kind} ${decision.problem?.sequence}`).toBe(problem);
    expect(decision.checked).toBe(checked);
    expect(decision.through).toEqual(
      checked === 0 ? START : { sequence: BigInt(checked), hash: entries[checked - 1]?.hash },
    );
  });
});

describe("evaluateExpectedHead()", () => {
  it("should find a head that the log has", () => {
    expect(evaluateExpectedHead(HEAD, HEAD.hash)).toBeNull();
  });

  it.each([
    ["is missing", null, /is not in the log/],
    ["has another hash", "x", /does not have the expected hash/],
  ])("should report an entry that %s", (_, hash, message) => {
    expect(evaluateExpectedHead(HEAD, hash)).toEqual({
      sequence: 3n,
      kind: "EXPECTED_HEAD_DIFFERS",
      message: expect.stringMatching(message),
    });
  });
});
