import { mkdtemp, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { addNode, appendEvents, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import { AUDIT_START, verifyAudit } from "../access/verify-audit.ts";
import { STORE_FUNCTIONS, STORE_SEQUENCES, STORE_TABLES } from "../database/object-names.ts";
import { currentRevision } from "../log/events.ts";
import { backupRecord } from "./backup-store.ts";
import { verifyArchive } from "./read-archive.ts";
import { restoreRecord } from "./restore-store.ts";

let source: TestDatabase;
let target: TestDatabase;
let dir: string;
let path: string;

const PASSPHRASE = "correct horse battery staple";
const NODES = 200;
const never = new AbortController().signal;

const ENTRY = {
  actor: "token:t",
  method: "rollcall.admin.v1.AdminService/ApproveNode",
  target: "n-0",
  reason: "tab\tand\nline \\ and 'quotes'",
  outcome: "OK",
  address: "127.0.0.1:1",
  requestId: "",
};

beforeAll(async () => {
  [source, target] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  dir = await mkdtemp(join(tmpdir(), "rollcall-backup-"));
  path = join(dir, "whole.backup");
  const { store } = source;
  for (let index = 0; index < NODES; index += 1) await addNode(store, `n-${index}`);
  await store.change(async () => ({ result: null, events: [], audit: [ENTRY, ENTRY, ENTRY] }));
  const digest = Buffer.from([0, 255, 10, 92]);
  await sql`insert into execution_specs (digest, spec) values (${digest}, ${Buffer.alloc(3)})`.execute(store.db);
  await backUp(path);
});

afterAll(async () => {
  await Promise.all([source.drop(), target.drop()]);
  await rm(dir, { recursive: true, force: true });
});

const backUp = (to: string, passphrase: string | null = null) =>
  backupRecord({
    ...{ url: source.url, path: to, passphrase, signal: never },
    rollcall: "0.1.0",
    files: [{ path: "agent/sentinel.json", mode: 0o600, content: Buffer.from("{}").toString("base64") }],
    onTable: () => {},
  });

const restore = async (options: Partial<Parameters<typeof restoreRecord>[0]> = {}) => {
  const file = options.path ?? path;
  return restoreRecord({
    ...{ url: target.url, path: file, passphrase: null, replace: true, acceptBrokenAudit: false, signal: never },
    summary: await verifyArchive(file, options.passphrase ?? null),
    onTable: () => {},
    ...options,
  });
};

/** Copy an archive with one byte changed. Returns the path of the copy. */
async function damagedCopy(name: string, from: string, at: (size: number) => number): Promise<string> {
  const copy = join(dir, name);
  await writeFile(copy, await readFile(from));
  const file = await open(copy, "r+");
  const { size } = await file.stat();
  const byte = Buffer.alloc(1);
  await file.read(byte, 0, 1, at(size));
  await file.write(Buffer.from([(byte[0] ?? 0) ^ 0x40]), 0, 1, at(size));
  await file.close();
  return copy;
}

async function countNodes({ store }: TestDatabase): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from nodes`.execute(store.db);
  return rows[0]?.count ?? -1;
}

describe("STORE_TABLES", () => {
  it("should name every table, sequence and function of the newest schema", async () => {
    const { rows } = await sql<{ tables: string[]; sequences: string[]; functions: string[] }>`
      select
        array(select tablename::text from pg_tables where schemaname = 'public' and tablename !~ '^kysely_' order by 1)
          as tables,
        array(select sequencename::text from pg_sequences where schemaname = 'public' order by 1) as sequences,
        array(select proname::text from pg_proc where pronamespace = 'public'::regnamespace order by 1) as functions
    `.execute(source.store.db);
    expect(rows[0]).toEqual({ tables: STORE_TABLES, sequences: STORE_SEQUENCES, functions: STORE_FUNCTIONS });
  });
});

describe("backupRecord()", () => {
  it("should write an archive readable only by its owner, with a checksum of each table", async () => {
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const { manifest, tables, files, isEncrypted } = await verifyArchive(path, null);
    expect(isEncrypted).toBe(false);
    expect(manifest).toMatchObject({ clusterId: source.store.clusterId(), logId: source.store.logId() });
    expect(manifest.audit.sequence).toBe("3");
    expect(tables.find(({ name }) => name === "nodes")).toMatchObject({ rows: NODES });
    expect(tables.map(({ name }) => name).toSorted()).toEqual(STORE_TABLES);
    expect(files).toEqual(["agent/sentinel.json"]);
  });

  it("should copy a consistent snapshot while others write", async () => {
    const { store } = source;
    const written = join(dir, "busy.backup");
    let isWriting = true;
    const write = async () => {
      while (isWriting) {
        await store.transaction(async (tx) => {
          await sql`update node_sessions set epoch = epoch + 1 where node_id = 'n-0'`.execute(tx);
          const change = { type: "node.approved", subject: "n-0", actor: "a", reason: "R", message: "m" } as const;
          await appendEvents(tx, [{ ...change, before: null, after: null }]);
        });
      }
    };
    const writing = write();
    const { manifest } = await backUp(written).finally(() => {
      isWriting = false;
    });
    await writing;
    await restore({ path: written });
    expect(String(await currentRevision(target.store.db))).toBe(manifest.revision);
  });

  it("should refuse a database that a newer release has migrated, and one without tables", async () => {
    await sql`insert into kysely_migration (name, timestamp) values ('9999-future', 'now')`.execute(source.store.db);
    await expect(backUp(join(dir, "never"))).rejects.toThrow(/migrated by a newer release \(9999-future\)/);
    await sql`delete from kysely_migration where name = '9999-future'`.execute(source.store.db);
    const url = new URL(source.url);
    url.pathname = "/postgres";
    const options = { url: url.href, path: join(dir, "never"), passphrase: null, rollcall: "", files: [] };
    await expect(backupRecord({ ...options, onTable: () => {}, signal: never })).rejects.toThrow(
      "this database has no Rollcall tables",
    );
  });

  it("should leave nothing behind when it is interrupted", async () => {
    const ending = new AbortController();
    const onTable = () => ending.abort(new Error("enough"));
    const options = { url: source.url, path: join(dir, "interrupted"), passphrase: null, rollcall: "", files: [] };
    await expect(backupRecord({ ...options, onTable, signal: ending.signal })).rejects.toThrow();
    await expect(stat(join(dir, "interrupted"))).rejects.toThrow("ENOENT");
  });
});

describe("verifyArchive()", () => {
  it.each([
    ["first line", () => 3],
    ["beginning", () => 100],
    ["middle", (size: number) => Math.floor(size / 2)],
    ["end", (size: number) => size - 1],
  ])("should detect a changed byte: %s", async (name, at) => {
    const copy = await damagedCopy(`changed ${name}`, path, at);
    await expect(verifyArchive(copy, null)).rejects.toThrow(/damaged|is not a backup of Rollcall/);
  });

  it("should detect a missing end", async () => {
    const copy = join(dir, "cut");
    const bytes = await readFile(path);
    await writeFile(copy, bytes.subarray(0, bytes.length - 200));
    await expect(verifyArchive(copy, null)).rejects.toThrow(/damaged/);
  });

  it("should open an encrypted archive only with its passphrase, and detect any change in it", async () => {
    const sealed = join(dir, "sealed.backup");
    await backUp(sealed, PASSPHRASE);
    expect((await verifyArchive(sealed, PASSPHRASE)).isEncrypted).toBe(true);
    await expect(verifyArchive(sealed, null)).rejects.toThrow(/is encrypted: pass the file with its passphrase/);
    await expect(verifyArchive(sealed, "another")).rejects.toThrow("the passphrase of the archive is wrong");
    const copy = await damagedCopy("sealed and changed", sealed, (size) => size - 40);
    await expect(verifyArchive(copy, PASSPHRASE)).rejects.toThrow(/its encrypted chunk \d+ was modified/);
  });

  it("should refuse a file that is not an archive", async () => {
    const text = join(dir, "text");
    await writeFile(text, "hello\n");
    await expect(verifyArchive(text, null)).rejects.toThrow(`${text} is not a backup of Rollcall`);
  });
});

describe("restoreRecord()", () => {
  it("should restore everything under a new log id, with its audit chain", async () => {
    const report = await restore();
    expect(report.auditProblem).toBeNull();
    expect(report.newLogId).not.toBe(report.manifest.logId);
    const { store } = target;
    expect(await store.refreshLogId()).toBe(report.newLogId);
    expect(await countNodes(target)).toBe(NODES);
    expect(await verifyAudit(store.db, { after: AUDIT_START, limit: 100 })).toMatchObject({
      ...{ checked: 3, complete: true, problem: null },
    });
    const { rows } = await sql`select digest from execution_specs`.execute(store.db);
    expect(rows).toEqual([{ digest: Buffer.from([0, 255, 10, 92]) }]);
    expect(report.fileContents).toMatchObject([{ path: "agent/sentinel.json" }]);
    const { rows: changed } = await sql<{ revision: bigint }>`
      select append_events('[{"type": "t", "subject": "s", "actor": "a", "reason": "r", "message": "m"}]') as revision
    `.execute(store.db);
    expect(String(changed[0]?.revision)).toBe(String(BigInt(report.manifest.revision) + 1n));
  });

  it("should refuse a database that is not empty, and leave it unchanged", async () => {
    await restore();
    await sql`delete from nodes where id = 'n-1'`.execute(target.store.db);
    await expect(restore({ replace: false })).rejects.toThrow(/already has Rollcall tables: pass --replace/);
    expect(await countNodes(target)).toBe(NODES - 1);
  });

  it("should refuse a database that processes of the control plane use", async () => {
    const other = await target.openStore("rollcall registry");
    await expect(restore()).rejects.toThrow(/the database is in use \(rollcall registry\)/);
    await other.close();
  });

  it("should refuse an audit log with a broken chain, unless told to accept it, and change nothing", async () => {
    await sql`update audit_log set target = 'n-9' where sequence = 2`.execute(source.store.db);
    const broken = join(dir, "broken.backup");
    await backUp(broken);
    await sql`update audit_log set target = 'n-0' where sequence = 2`.execute(source.store.db);
    await restore();
    const { logId } = target.store;
    await target.store.refreshLogId();
    const before = logId();
    await expect(restore({ path: broken })).rejects.toThrow(/the audit log in the archive is broken at entry 2/);
    expect(await target.store.refreshLogId()).toBe(before);
    const report = await restore({ path: broken, acceptBrokenAudit: true });
    expect(report.auditProblem).toMatchObject({ kind: "ENTRY_CHANGED", sequence: 2n });
  });

  it("should notice an archive that was replaced after its verification, and change nothing", async () => {
    await restore();
    const before = await target.store.refreshLogId();
    const summary = await verifyArchive(path, null);
    const copy = await damagedCopy("exchanged", path, (size) => Math.floor(size / 2));
    await expect(restore({ path: copy, summary })).rejects.toThrow(/damaged/);
    expect(await target.store.refreshLogId()).toBe(before);
  });

  it("should keep other programs' tables in the same schema", async () => {
    await sql`create table theirs (n integer)`.execute(target.store.db);
    await restore();
    const { rows } = await sql`select * from theirs`.execute(target.store.db);
    expect(rows).toEqual([]);
    await sql`drop table theirs`.execute(target.store.db);
  });
});
