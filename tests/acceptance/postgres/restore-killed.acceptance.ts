import { existsSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { findEmbeddedPostgres } from "../../../libs/postgres-embedded/src/embedded-postgres.ts";
import { type Connection, openConnection, query } from "../../../libs/postgres-embedded/test/embedded-servers.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { endProcess, RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import { createRawCluster, type RawCluster, type RawServer } from "./raw-postgres.ts";

jest.setTimeout(600_000);

/**
 * The number of specs. It is large, so that COPY takes a while. Each spec has 64 KiB of noise, which gzip cannot
 * compress.
 */
const SPECS = 400;
const FILL = `
  insert into execution_specs (digest, spec)
  select sha256(n::text::bytea), (select string_agg(sha256((n || '-' || m)::bytea), '') from generate_series(1, 2048) m)
  from generate_series(1, ${SPECS}) n`;
/** The size of the copied table in bytes. Its text has two digits per byte. */
const COPIED_BYTES = SPECS * 65_536 * 2;
const PROGRESS = "select bytes_processed::text as bytes from pg_stat_progress_copy";
const SCAN_MS = 20;
const PAUSE_MS = 2_000;
const MOST_ATTEMPTS = 5;

/**
 * The share of the table that each restore has copied when it is interrupted: two fixed shares and some random ones.
 */
const PARTS = [0, 0.8, ...Array.from({ length: 3 }, () => Math.random())].map((part) => Number(part.toFixed(3)));

let root: string;
let raw: RawCluster;
let server: RawServer;
let fixture: UpFixture;
let archive: string;
let archivedCluster: string;

async function rollcall(...words: readonly string[]) {
  const run = new RollcallProcess(words);
  return { code: await run.exit(), out: run.out, err: run.err };
}

beforeAll(async () => {
  raw = await createRawCluster();
  fixture = await createUpFixture();
  root = dirname(fixture.dataDirectory);
  archive = join(root, "large.backup");
  server = await raw.init("data");
  await server.start();
  for (const name of ["source", "target"]) {
    await query(server.url(), `create database ${name}`);
    expect(await rollcall("migrate", "--database-url", server.url(name))).toMatchObject({ code: 0 });
  }
  await query(server.url("source"), FILL);
  const written = await rollcall("backup", archive, "--database-url", server.url("source"), "-o", "json");
  expect([written.code, written.err]).toEqual([0, ""]);
  archivedCluster = JSON.parse(written.out).clusterId;
});

afterAll(async () => {
  await fixture?.dispose();
  await raw?.drop();
});

/**
 * Start a restore, and wait until it has copied this share of the large table. If it finishes before the test sees
 * that, start another restore.
 */
async function beginAndCopy(
  words: readonly string[],
  part: number,
  findUrl: () => Promise<string | null>,
  begins: () => Promise<void>,
): Promise<RollcallProcess> {
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
    await begins();
    const restore = new RollcallProcess(words);
    let hasEnded = false;
    const ending = restore.exit().finally(() => {
      hasEnded = true;
    });
    if (await hasCopied((part * COPIED_BYTES) / attempt, findUrl, () => hasEnded)) return restore;
    expect([await ending, restore.err]).toEqual([0, ""]);
  }
  throw new Error(`${MOST_ATTEMPTS} restores were done before they were seen`);
}

async function hasCopied(
  bytes: number,
  findUrl: () => Promise<string | null>,
  isOver: () => boolean,
): Promise<boolean> {
  let connection: Connection | null = null;
  try {
    while (!isOver()) {
      const url: string | null = connection === null ? await findUrl() : null;
      if (url !== null) connection = await openConnection(url).catch(() => null);
      const [progress] = (await connection?.rows(PROGRESS).catch(() => [])) ?? [];
      if (progress !== undefined && Number(progress.bytes) > bytes) return true;
      await delay(connection === null ? SCAN_MS : 1);
    }
    return false;
  } finally {
    await connection?.close();
  }
}

/** Restart a crashed server after its last process is gone. */
async function restarted({ start, log }: RawServer): Promise<void> {
  let failure: unknown;
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
    try {
      return await start();
    } catch (error) {
      failure = error;
      await delay(PAUSE_MS);
    }
  }
  throw new Error(`Postgres did not start again:\n${log()}`, { cause: failure });
}

describe("an interrupted restore into a separate Postgres", () => {
  const words = () => ["restore", archive, "--database-url", server.url("target"), "--replace"];
  let before: object;
  const begin = (part: number) =>
    beginAndCopy(
      words(),
      part,
      async () => server.url("postgres"),
      async () => {
        before = await recordOf("target");
      },
    );
  /** Read all rows of all tables. */
  const recordOf = async (name: string) => {
    const tables = await query(
      server.url(name),
      "select tablename from pg_tables where schemaname = 'public' order by 1",
    );
    const sums = tables.map(async ({ tablename }) => {
      const [row] = await query(
        server.url(name),
        `select count(*)::int as rows, md5(coalesce(string_agg(md5(t::text), '' order by md5(t::text)), '')) as sum
         from "${tablename}" t`,
      );
      return [tablename, row] as const;
    });
    return Object.fromEntries(await Promise.all(sums));
  };
  const restoresEnd = () =>
    until("the end of the session", async () => {
      const left = await query(
        server.url("postgres"),
        "select from pg_stat_activity where application_name = 'rollcall restore'",
      );
      return left.length === 0;
    });
  it.each(PARTS)("should leave the store unchanged: killed after %d of the copy", async (part) => {
    const restore = await begin(part);
    expect(await restore.killed("SIGKILL")).toBe("SIGKILL");
    await restoresEnd();
    expect(await recordOf("target")).toEqual(before);
  });

  it("should leave the store unchanged: asked to stop", async () => {
    const restore = await begin(0.5);
    restore.kill("SIGTERM");
    expect([await restore.exit(), restore.err]).toEqual([
      1,
      expect.stringContaining("interrupted: nothing was changed"),
    ]);
    await restoresEnd();
    expect(await recordOf("target")).toEqual(before);
  });

  it("should leave the store unchanged, and say so, when Postgres crashes; then another restore works", async () => {
    const restore = await begin(0.5);
    await server.end("SIGKILL");
    expect([await restore.exit(), restore.err]).toEqual([
      1,
      expect.stringMatching(/^Postgres at .* cannot be reached: /),
    ]);
    expect(restore.err).not.toMatch(/^ +at /m);
    // The server's other processes notice the end of the first process a little later.
    await restarted(server);
    expect(await recordOf("target")).toEqual(before);

    expect(await rollcall(...words())).toMatchObject({
      code: 0,
      out: expect.stringContaining("The audit log is intact"),
    });
    const sourceRecord = Object(await recordOf("source"));
    expect(await recordOf("target")).toMatchObject({ execution_specs: sourceRecord.execution_specs });
  });
});

describe("an interrupted restore into a data directory", () => {
  const postgres = () => join(fixture.dataDirectory, "postgres");
  const mark = () => join(postgres(), "restoring.json");
  const versionFile = () => join(postgres(), "data/PG_VERSION");
  const onDirectory = () => ["--data-dir", fixture.dataDirectory];
  const restoring = () => ["restore", archive, ...onDirectory(), "--replace"];
  /** Start a restore into the data directory, after storing the id of the previous store in `own`. */
  const begin = (isReadable = true) =>
    beginAndCopy(
      restoring(),
      Math.random() * 0.8,
      () => findEmbeddedPostgres(postgres()),
      async () => {
        if (isReadable) own = await recordId();
      },
    );
  const killPostgres = () =>
    endProcess(Number(readFileSync(join(postgres(), "data/postmaster.pid"), "utf8").split("\n")[0]));
  /** Return the ids of the store. Each restore gives the log a new id. */
  const recordId = async (): Promise<string> => {
    const { code, out, err } = await rollcall(
      ...["backup", join(root, "look.backup"), "--force", ...onDirectory(), "-o", "json"],
    );
    expect([code, err]).toEqual([0, ""]);
    const { clusterId, logId } = JSON.parse(out) as { readonly clusterId: string; readonly logId: string };
    return `${clusterId} ${logId}`;
  };
  /** Check that every command refuses the directory and says why. */
  const isRefused = async (message: RegExp) => {
    const start = fixture.launch("--no-agent");
    expect([await start.exit(), start.out]).toEqual([1, expect.stringMatching(message)]);
    for (const words of [
      ["backup", join(root, "half.backup")],
      ["restore", archive],
    ]) {
      expect(await rollcall(...words, ...onDirectory())).toMatchObject({
        code: 1,
        err: expect.stringMatching(message),
      });
    }
  };
  let own: string;

  beforeAll(async () => {
    const up = await fixture.up("--no-agent");
    expect(await up.killed("SIGTERM")).toBe(0);
  });

  it("should block every command until it is resolved, with the previous store in place: killed", async () => {
    const restore = await begin();
    expect(await restore.killed("SIGKILL")).toBe("SIGKILL");
    await isRefused(/a restore of .*large\.backup was interrupted; the store is either unchanged/);
    // Remove the file, as the message says.
    await rm(mark());
    expect(await recordId()).toBe(own);
  });

  it("should leave the store unchanged, and no mark, when its Postgres is killed", async () => {
    const restore = await begin();
    killPostgres();
    expect(await restore.exit()).toBe(1);
    expect(restore.err).toMatch(/^the Postgres of .* has stopped: .*; see the end of .*, and run this again\n$/);
    expect(existsSync(mark())).toBe(false);
    expect(await recordId()).toBe(own);
  });

  it("should put the data of an older Postgres back when its Postgres is killed", async () => {
    await writeFile(versionFile(), "17\n");
    const restore = await begin(false);
    killPostgres();
    expect(await restore.exit()).toBe(1);
    expect([readFileSync(versionFile(), "utf8"), existsSync(mark()), existsSync(join(postgres(), "data-17"))]).toEqual([
      "17\n",
      false,
      false,
    ]);
  });

  it("should say where the data of an older Postgres is, at each start and after another restore: killed", async () => {
    const restore = await begin(false);
    expect(await restore.killed("SIGKILL")).toBe("SIGKILL");
    const aside = join(postgres(), "data-17");
    await isRefused(new RegExp(`was interrupted: .*or go back to the data of the older Postgres in ${aside}`));
    expect(readFileSync(join(aside, "PG_VERSION"), "utf8")).toBe("17\n");
    const again = await rollcall(...restoring());
    expect([again.code, again.out]).toEqual([0, expect.stringContaining(`older Postgres is in ${aside}`)]);
    expect([await recordId(), existsSync(mark())]).toEqual([expect.stringContaining(`${archivedCluster} `), false]);
  });
});
