import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { AuditHead, AuditResult } from "@rollcall/domain";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { type RawBuilder, sql } from "kysely";
import type { NewAuditEntry } from "../database/audit.ts";
import type { Store } from "../database/store.ts";
import { pruneAudit } from "./audit-cut.ts";
import { auditHash, FIRST_AUDIT_HASH } from "./audit-hash.ts";
import { listAudit } from "./audit-log.ts";
import { AUDIT_START, verifyAudit } from "./verify-audit.ts";

let database: TestDatabase;
let store: Store;
beforeEach(async () => {
  database = await createTestDatabase();
  store = database.store;
});
afterEach(() => database.drop());

function entry(target: string, changes: Partial<NewAuditEntry> = {}): NewAuditEntry {
  return {
    actor: "token:a",
    method: "rollcall.test.v1.TestService/Do",
    target,
    reason: "",
    outcome: "OK",
    address: "127.0.0.1:1",
    requestId: "r",
    ...changes,
  };
}

/** Write entries, each in a separate transaction. */
async function write(...targets: readonly string[]): Promise<void> {
  for (const target of targets) {
    await store.change(async () => ({ result: null, events: [], audit: [entry(target)] }));
  }
}

async function verify(expected?: AuditHead): Promise<AuditResult> {
  const options = { after: AUDIT_START, limit: 1_000 };
  return verifyAudit(store.db, expected === undefined ? options : { ...options, expected });
}

async function problem(expected?: AuditHead): Promise<string> {
  const found = (await verify(expected)).problem;
  return found === null ? "none" : `${found.kind} ${found.sequence}`;
}

/** Change the audit tables by hand. */
async function meddle(...statements: readonly RawBuilder<unknown>[]): Promise<void> {
  for (const statement of statements) await statement.execute(store.db);
}

/** Let the database recompute a row's hash, as an attacker would. */
const seal = (sequence: number) => sql`
  update audit_log set hash = audit_hash(
    previous_hash, sequence, at, actor, method, target, reason, outcome, address, request_id)
  where sequence = ${sequence}`;

describe("the audit chain", () => {
  it("should be intact when nothing was changed, and while it is empty", async () => {
    expect(await verify()).toMatchObject({ checked: 0, complete: true, problem: null });
    await write("a", "b", "c");
    const decision = await verify();
    expect(decision).toMatchObject({ checked: 3, complete: true, problem: null });
    expect(decision.head).toEqual(decision.through);
    expect(decision.through.sequence).toBe(3n);
  });

  it("should compute the same hashes here as in the database, for any texts", async () => {
    const texts = ["", "ü€😀", "1:a,", "a\u0000b", "lone \ud800 half", "x".repeat(5_000), "\\'\n\t"];
    const audit = texts.map((text) => entry(text, { reason: text, actor: text, requestId: text }));
    await store.change(async () => ({ result: null, events: [], audit }));
    expect(await problem()).toBe("none");
    const [first, second] = await listAudit(store.db, { limit: 2, newestFirst: false });
    if (first === undefined || second === undefined) throw new Error("nothing was written");
    expect(first.previousHash).toBe(FIRST_AUDIT_HASH);
    expect(auditHash(first.hash, second)).toBe(second.hash);
  });

  it("should have no gap after rollbacks, and a single chain with concurrent writers", async () => {
    const work = Array.from({ length: 40 }, async (_, index) => {
      const change = store.change(async () => {
        if (index % 4 === 0) throw new Error("rolled back");
        const audit = [entry(`n${index}`), entry(`m${index}`)];
        return { result: null, events: [], audit };
      });
      await change.catch(() => {});
    });
    await Promise.all(work);
    expect(await verify()).toMatchObject({ checked: 60, problem: null });
  });

  it("should be verified piece by piece", async () => {
    await write("a", "b", "c");
    const first = await verifyAudit(store.db, { after: AUDIT_START, limit: 2 });
    expect(first).toMatchObject({ checked: 2, complete: false, problem: null });
    const rest = await verifyAudit(store.db, { after: first.through, limit: 2 });
    expect(rest).toMatchObject({ checked: 1, complete: true, problem: null });
    const elsewhere = { sequence: 2n, hash: "ab".repeat(32) };
    const wrong = await verifyAudit(store.db, { after: elsewhere, limit: 2 });
    expect(wrong.problem?.kind).toBe("LINK_BROKEN");
  });
});

describe("verifyAudit()", () => {
  beforeEach(() => write("a", "b", "c", "d"));

  it.each([
    ["actor", sql`actor = 'token:other'`],
    ["method", sql`method = 'other'`],
    ["target", sql`target = 'other'`],
    ["reason", sql`reason = 'other'`],
    ["outcome", sql`outcome = 'ROLE_TOO_LOW'`],
    ["address", sql`address = ''`],
    ["request_id", sql`request_id = ''`],
    ["at", sql`at = at + interval '1 millisecond'`],
    ["at, without end", sql`at = 'infinity'`],
    ["hash", sql`hash = sha256('x')`],
    ["previous_hash", sql`previous_hash = sha256('x')`],
    ["where one text ends and the next begins", sql`target = '', reason = 'b'`],
  ])("should detect a changed field: %s", async (_, assignment) => {
    await meddle(sql`update audit_log set ${assignment} where sequence = 2`);
    expect(await problem()).toBe("ENTRY_CHANGED 2");
  });

  it("should detect a changed row with a new hash by the next row", async () => {
    await meddle(sql`update audit_log set target = 'x' where sequence = 2`, seal(2));
    expect(await problem()).toBe("LINK_BROKEN 3");
  });

  it("should detect a changed last row with a new hash by the head", async () => {
    await meddle(sql`update audit_log set target = 'x' where sequence = 4`, seal(4));
    expect(await problem()).toBe("HEAD_DIFFERS 4");
  });

  it.each([
    ["the first", sql`sequence = 1`, "ENTRIES_MISSING 2"],
    ["one in the middle", sql`sequence = 2`, "ENTRIES_MISSING 3"],
    ["several in the middle", sql`sequence in (2, 3)`, "ENTRIES_MISSING 4"],
    ["the last", sql`sequence = 4`, "HEAD_DIFFERS 4"],
    ["the last two", sql`sequence > 2`, "HEAD_DIFFERS 3"],
    ["all", sql`true`, "HEAD_DIFFERS 1"],
  ])("should detect a removal: %s", async (_, which, expected) => {
    await meddle(sql`delete from audit_log where ${which}`);
    expect(await problem()).toBe(expected);
  });

  it("should detect a removal with renumbered rows", async () => {
    await meddle(
      sql`delete from audit_log where sequence = 2`,
      sql`update audit_log set sequence = 2 where sequence = 3`,
      sql`update audit_log set sequence = 3 where sequence = 4`,
    );
    expect(await problem()).toBe("ENTRY_CHANGED 2");
  });

  it("should detect swapped rows", async () => {
    await meddle(
      sql`update audit_log set sequence = 20 where sequence = 2`,
      sql`update audit_log set sequence = 2 where sequence = 3`,
      sql`update audit_log set sequence = 3 where sequence = 20`,
    );
    expect(await problem()).toBe("ENTRY_CHANGED 2");
    await meddle(seal(2), seal(3));
    expect(await problem()).toBe("LINK_BROKEN 2");
  });

  it("should detect a row appended by hand", async () => {
    const columns = sql.raw("actor, method, target, reason, outcome, address, request_id");
    await meddle(
      sql`
        insert into audit_log (sequence, at, ${columns}, previous_hash, hash)
        select 5, at, ${columns}, hash, hash from audit_log where sequence = 4`,
      seal(5),
    );
    expect(await problem()).toBe("HEAD_DIFFERS 5");
  });

  it("should detect a changed or removed head", async () => {
    await meddle(sql`update audit_head set hash = sha256('x')`);
    expect(await problem()).toBe("HEAD_DIFFERS 4");
    await meddle(sql`delete from audit_head`);
    expect(await problem()).toBe("HEAD_DIFFERS 4");
  });

  it("should detect a rewritten chain only by a head noted earlier", async () => {
    const { through: noted } = await verify();
    await meddle(sql`update audit_log set actor = 'token:another' where sequence = 2`);
    for (const sequence of [2, 3, 4]) {
      await meddle(
        sql`
          update audit_log as entry set previous_hash = before.hash from audit_log as before
          where entry.sequence = ${sequence} and before.sequence = ${sequence - 1}`,
        seal(sequence),
      );
    }
    await meddle(sql`update audit_head as head set hash = last.hash from audit_log as last where last.sequence = 4`);
    expect(await problem()).toBe("none");
    expect(await problem(noted)).toBe("EXPECTED_HEAD_DIFFERS 4");
  });

  it("should find a noted head after further entries, and report a missing one", async () => {
    const { through: noted } = await verify();
    await write("e");
    expect(await problem(noted)).toBe("none");
    expect(await problem(AUDIT_START)).toBe("none");
    expect(await problem({ sequence: 9n, hash: noted.hash })).toBe("EXPECTED_HEAD_DIFFERS 9");
  });
});

describe("pruneAudit()", () => {
  const headAt = async (sequence: bigint): Promise<AuditHead> => {
    const [found] = await listAudit(store.db, { limit: 1, newestFirst: false, afterSequence: sequence - 1n });
    return { sequence, hash: found?.hash ?? "" };
  };
  const pruneTo = (through: AuditHead, limit = 100) =>
    store.transaction((tx) => pruneAudit(tx, { through, limit, secret: store.clusterSecret() }));
  const prune = async (sequence: bigint, limit?: number) => pruneTo(await headAt(sequence), limit);

  it("should remove the oldest entries in parts, and leave a log that verifies from the cut", async () => {
    await write("a", "b", "c", "d");
    expect(await prune(3n, 2)).toMatchObject({ removed: 2, complete: false, cut: { sequence: 2n } });
    expect(await prune(3n, 2)).toMatchObject({ removed: 1, complete: true, cut: { sequence: 3n } });
    expect(await verify()).toMatchObject({ checked: 1, complete: true, problem: null });
    await write("e");
    expect(await verify()).toMatchObject({ checked: 2, problem: null });
  });

  it("should detect entries removed by hand, even with a forged cut", async () => {
    await write("a", "b", "c");
    await prune(1n);
    const { rows } = await sql<{ hash: Buffer }>`delete from audit_log where sequence = 2 returning hash`.execute(
      store.db,
    );
    expect(await problem()).toBe("ENTRIES_MISSING 3");
    await meddle(sql`update audit_cut set sequence = 2, hash = ${rows[0]?.hash}`);
    expect(await problem()).toBe("CUT_FORGED 2");
  });

  it("should let one of two callers win, and remove nothing twice", async () => {
    await write("a", "b", "c");
    const through = await headAt(2n);
    const both = await Promise.all([pruneTo(through), pruneTo(through)]);
    expect(both.map((it) => it?.removed).toSorted()).toEqual([0, 2]);
    expect(await problem()).toBe("none");
  });
});
