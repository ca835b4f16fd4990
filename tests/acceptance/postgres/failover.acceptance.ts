import { appendFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { openSession, query } from "../../../libs/postgres-embedded/test/embedded-servers.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { FaultProxy } from "../../../libs/testkit/src/wire/fault-proxy.ts";
import { createServeFixture, type ServeFixture } from "../../../services/rollcall/src/testing/serve-fixture.ts";
import { followEvents } from "./follow-events.ts";
import { copyDirectory, createRawCluster, type RawCluster, type RawServer } from "./raw-postgres.ts";
import { walk } from "./walk.ts";

jest.setTimeout(600_000);

const SETTINGS = ["wal_level = replica", "max_wal_senders = 4", "wal_keep_size = 256MB", "hot_standby = on"];

describe("a failover to a standby", () => {
  let cluster: RawCluster;
  let primary: RawServer;
  let standby: RawServer;
  let address: FaultProxy;
  let fixture: ServeFixture;

  beforeAll(async () => {
    cluster = await createRawCluster();
    primary = await cluster.init("primary", SETTINGS);
    await primary.start();
    standby = await replicaOf(primary);
    await standby.start();
    // Postgres acknowledges a commit only after the standby has it.
    await query(primary.url(), "alter system set synchronous_standby_names = 'standby'");
    await query(primary.url(), "select pg_reload_conf()");
    await until("the standby to be synchronous", async () => {
      const [row] = await query(primary.url(), "select sync_state from pg_stat_replication");
      return row?.sync_state === "sync";
    });
    address = await FaultProxy.start(primary.port);
    fixture = await createServeFixture(`postgres://rollcall@127.0.0.1:${address.port}/rollcall`);
  });

  afterAll(async () => {
    await fixture.dispose();
    await address.close();
    await cluster.drop();
  });

  /**
   * Copy the files of a running server between pg_backup_start and pg_backup_stop, as pg_basebackup would. The packaged
   * Postgres does not contain that program.
   */
  async function replicaOf(source: RawServer): Promise<RawServer> {
    const target = join(cluster.root, "standby");
    const client = await openSession(source.url("postgres"));
    try {
      await client.query("select pg_backup_start('standby', true)");
      await copyDirectory(source.dataDirectory, target);
      const { rows } = await client.query("select labelfile from pg_backup_stop(false)");
      await writeFile(join(target, "backup_label"), String(rows[0]?.labelfile));
    } finally {
      await client.end();
    }
    await rm(join(target, "postmaster.pid"));
    await writeFile(join(target, "standby.signal"), "");
    const upstream = `host=127.0.0.1 port=${source.port} user=rollcall application_name=standby`;
    await appendFile(join(target, "postgresql.auto.conf"), `primary_conninfo = '${upstream}'\n`);
    return cluster.serve(target);
  }

  it("should lose no acknowledged decision, declare no node unhealthy, and let watchers list again and continue", async () => {
    for (const service of ["registry", "health", "admin", "scheduler"] as const) {
      await fixture.serve(service, ...(service === "registry" ? ["--manual-approval"] : []));
    }
    const { client } = fixture;
    await walk(fixture);
    const before = await logId();
    const follower = followEvents(client, "walker");
    await until(
      "the watch to have the log",
      async () => follower.seen().length === (await client.events("walker")).length,
    );

    const acknowledged: string[] = [];
    let isLoaded = true;
    const decide = async () => {
      for (let turn = 0; isLoaded; turn += 1) {
        const reason = `turn-${turn}`;
        const call = turn % 2 === 0 ? client.admin.cordonNode : client.admin.uncordonNode;
        // Ignore the failure. The call may have taken effect, and then the next attempt is refused as already done.
        await call({ node: "walker", reason }).then(
          () => acknowledged.push(reason),
          () => {},
        );
      }
    };
    const deciding = decide();
    await until("some decisions", () => acknowledged.length >= 10);

    await primary.end("SIGKILL");
    await query(standby.url("postgres"), "select pg_promote()");
    await address.close();
    address = await FaultProxy.start(standby.port, address.port);
    const atFailover = acknowledged.length;
    await until("decisions on the standby", () => acknowledged.length >= atFailover + 5);
    isLoaded = false;
    await deciding;

    const reasons = (await client.events("walker")).map(({ message }) => message);
    expect(acknowledged.filter((reason) => !reasons.some((text) => text.includes(reason)))).toEqual([]);
    await client.becomes("walker", "APPROVED CONNECTED HEALTHY");
    expect(await client.healthHistory("walker")).not.toContain("UNHEALTHY");
    expect(await logId()).not.toBe(before);
    await walk(fixture, "after");

    // The watch continued. It noticed that the log has another history, listed the events again, and has every event
    // exactly once.
    await client.admin.setNodeLabels({ node: "walker", set: { seen: "after" } });
    const all = (await client.events("walker")).map(({ revision }) => revision);
    const seen = () => follower.seen().map(({ revision }) => revision);
    await until("the watch to have everything", () => (seen().at(-1) ?? 0n) >= (all.at(-1) ?? 0n)).catch(
      (error: unknown) => {
        throw new Error(`${String(error)}; it ended with ${follower.ends().join("; ")}`);
      },
    );
    follower.stop();
    expect(seen()).toEqual(all);
    expect(follower.ends()).toContain("REVISION_COMPACTED");
  });

  /** Return the id of the log's history in the services' database. */
  async function logId(): Promise<unknown> {
    const [row] = await query(
      `postgres://rollcall@127.0.0.1:${address.port}/rollcall`,
      "select log_id::text as log_id from cluster",
    );
    return row?.log_id;
  }
});
