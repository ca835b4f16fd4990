import { describe, expect, it } from "@jest/globals";
import { type AuditHead, type AuditLink, judgeAuditPiece, judgeExpectedHead } from "./audit-chain.ts";

interface Entry extends AuditLink {
  readonly text: string;
}

const START: AuditHead = { sequence: 0n, hash: "0" };
const LIMIT = 10;

const hashOf = ({ previousHash, sequence, text }: Omit<Entry, "hash">) => `${previousHash}<${sequence}${text}`;

/** An entry with the hash that it has to have. */
function sealed(entry: Omit<Entry, "hash">): Entry {
  return { ...entry, hash: hashOf(entry) };
}

/** A whole chain of entries with these texts. */
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

function judge(entries: readonly Entry[], head: AuditHead | null = HEAD, after = START, limit = LIMIT) {
  return judgeAuditPiece({ entries, head }, { after, limit }, hashOf);
}

describe("judgeAuditPiece()", () => {
  it("should find nothing wrong with a whole chain", () => {
    expect(judge(WHOLE)).toEqual({ checked: 3, through: HEAD, complete: true, head: HEAD, problem: null });
    expect(judge([], START)).toMatchObject({ checked: 0, through: START, complete: true, problem: null });
  });

  it("should go on from where the piece before ended, and leave the head for the last piece", () => {
    const first = judge([A, B], HEAD, START, 2);
    expect(first).toMatchObject({ checked: 2, complete: false, problem: null });
    expect(judge([C], HEAD, first.through, 2)).toMatchObject({ checked: 1, complete: true, problem: null });
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
    const verdict = judge(entries, head);
    expect(`${verdict.problem?.kind} ${verdict.problem?.sequence}`).toBe(problem);
    expect(verdict.checked).toBe(checked);
    expect(verdict.through).toEqual(
      checked === 0 ? START : { sequence: BigInt(checked), hash: entries[checked - 1]?.hash },
    );
  });
});

describe("judgeExpectedHead()", () => {
  it("should find a head that the log has", () => {
    expect(judgeExpectedHead(HEAD, HEAD.hash)).toBeNull();
  });

  it.each([
    ["is missing", null, /is not in the log/],
    ["has another hash", "x", /has another hash/],
  ])("should tell of an entry that %s", (_, hash, message) => {
    expect(judgeExpectedHead(HEAD, hash)).toEqual({
      sequence: 3n,
      kind: "EXPECTED_HEAD_DIFFERS",
      message: expect.stringMatching(message),
    });
  });
});
