import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { until } from "@rollcall/testkit/time";
import { haveEnded, processesOf } from "./testing/processes.ts";
import { endProcess, type RollcallProcess } from "./testing/rollcall-process.ts";
import { createUpFixture, type UpFixture, WITHOUT_WORK } from "./testing/up-fixture.ts";

const WELL = "APPROVED CONNECTED HEALTHY";
const WATCHER = "rollcall-postgres-watcher";
const WITHOUT_AGENT = ["--set", "Up.Agent=false"];

// However `up` ends, all processes that it started must also end, and `up` must be able to start
// again. The tests share one data directory and build on each other.
describe("the end of rollcall up", () => {
  let fixture: UpFixture;
  let up: RollcallProcess;
  beforeAll(async () => {
    fixture = await createUpFixture();
  });
  afterAll(() => fixture.dispose());

  it("should end Postgres and the agent after a SIGKILL, without a goodbye", async () => {
    up = await fixture.up();
    const own = await ownNode();
    const epoch = await fixture.client.epoch(own);
    await up.killed();
    // The agent's keeper must also end.
    await nothingIsLeft();
    up = await fixture.up(...WITHOUT_WORK);
    await until("a new stream", async () => (await fixture.client.epoch(own)) > epoch);
    // The agent sent no goodbye.
    const events = await fixture.client.events(own);
    expect(events.filter(({ reason }) => reason === "AGENT_SHUTDOWN")).toEqual([]);
  });

  it("should be orderly when several signals arrive at once", async () => {
    // The system merges two equal signals that are not yet delivered.
    up.kill("SIGTERM");
    up.kill("SIGINT");
    expect(await up.exit()).toBe(0);
    await up.logged("already shutting down");
    await up.logged("stopped");
    await nothingIsLeft();
  });

  it("should end an agent that has just started, and let the next one start at once", async () => {
    up = fixture.launch(...WITHOUT_WORK);
    const started = [await pidOf("postgres started"), await pidOf("local agent started")];
    await up.killed();
    up = await fixture.up(...WITHOUT_AGENT);
    await haveEnded(...started);
  });

  it("should be watched again when the watcher itself was killed", async () => {
    const first = await watcher();
    endProcess(first);
    await up.logged("the watcher of postgres ended, starting another");
    await haveEnded(first);
    await watcher();
  });

  it("should refuse another one in its data directory, whichever Postgres it uses", async () => {
    const elsewhere = ["--database-url", "postgres://x@127.0.0.1:1/x"];
    for (const more of [[], elsewhere]) {
      const second = fixture.launch(...more);
      const { problem } = await second.logged("cannot start");
      const text = `rollcall up is already running in ${fixture.dataDirectory}, as process ${up.pid}`;
      expect(problem).toBe(`${text}: stop that process, or use another --data-dir`);
      expect(await second.exit()).toBe(1);
    }
  });

  it("should leave an unwatched Postgres to the next one, which restarts it", async () => {
    const postgres = await pidOf("postgres started");
    const last = await watcher();
    // Stop `up`, so that it cannot start another watcher.
    up.kill("SIGSTOP");
    endProcess(last);
    await haveEnded(last);
    await up.killed();
    expect((await processesOf(fixture.dataDirectory)).map(({ pid }) => pid)).toContain(postgres);
    up = await fixture.up(...WITHOUT_AGENT);
    const message = "postgres found running without its launcher, restarting it";
    await up.logged(message, { pid: postgres });
    await haveEnded(postgres);
    await up.killed();
    await nothingIsLeft();
  });

  it("should end several workers after a SIGKILL of their primary", async () => {
    up = await fixture.up("--workers", "2", ...WITHOUT_WORK);
    await ownNode();
    await up.killed();
    await nothingIsLeft();
  });

  async function pidOf(message: string): Promise<number> {
    return Number((await up.logged(message)).pid);
  }

  /** The process that watches the Postgres of this `up`. */
  async function watcher(): Promise<number> {
    const found = await until("a watcher", async () => {
      const all = await processesOf(fixture.dataDirectory);
      return all.find(({ parent, command }) => parent === up.pid && command.includes(WATCHER));
    });
    return found.pid;
  }

  /** The node of this machine, once it is healthy. */
  async function ownNode(): Promise<string> {
    const id = await until("a compute node", async () => {
      const { nodes } = await fixture.client.registry.listNodes({ types: [2] });
      return nodes[0]?.id;
    });
    await fixture.client.becomes(id, WELL);
    return id;
  }

  async function nothingIsLeft(): Promise<void> {
    await until("the end of everything", async () => {
      const left = await processesOf(fixture.dataDirectory);
      if (left.length > 0) throw new Error(JSON.stringify(left));
      return true;
    });
  }
});
