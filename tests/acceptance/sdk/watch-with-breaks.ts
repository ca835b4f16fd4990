import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Store } from "../../../libs/store/src/index.ts";
import { appendEvents, createTestDatabase, seededRandom, until } from "../../../libs/testkit/src/index.ts";
import { freePorts } from "../../../services/rollcall/src/testing/free-ports.ts";
import { RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { CuttingProxy } from "./cutting-proxy.ts";

const EVENTS = 100_000;
const BREAKS = 50;
const BATCH = 5_000;
const SEED = 20_261;
/**
 * The range of bytes between two breaks. The complete log has more than 10 MB, so all breaks happen before its end,
 * and some within the first message of a stream.
 */
const LEAST_BYTES = 10_000;
const MOST_BYTES = 350_000;
const LIMIT_MS = 300_000;

/** Returns the command of a program that prints each event of the log as "REVISION TYPE SUBJECT". */
export type FollowCommand = (server: string, tokenFile: string) => readonly [string, ...string[]];

/** The output of a program, and the contents of the log. */
export interface Followed {
  readonly breaks: number;
  readonly printed: readonly string[];
  readonly logged: readonly string[];
}

/**
 * Run a program that follows a log of 100,000 events from its beginning, over a path that breaks 50 times, until it
 * has printed an event that was written afterwards.
 */
export async function followWithBreaks(command: FollowCommand): Promise<Followed> {
  const root = mkdtempSync(join(tmpdir(), "rollcall-watch-"));
  const data = join(root, "data");
  const database = await createTestDatabase();
  const [port = 0, agents = 0, probes = 0, internal = 0] = await freePorts(4);
  const ports = { "--port": port, "--agent-port": agents, "--probe-port": probes, "--internal-port": internal };
  const words = Object.entries(ports).flatMap(([flag, value]) => [flag, String(value)]);
  const server = new RollcallProcess(["up", "--data-dir", data, ...words], { DATABASE_URL: database.url });
  const random = seededRandom(SEED);
  const nextBytes = () => LEAST_BYTES + Math.floor(random() * (MOST_BYTES - LEAST_BYTES));
  const proxy = await CuttingProxy.start(port, { count: BREAKS, nextBytes });
  let program: ChildProcess | null = null;
  try {
    await server.logged("everything is up");
    for (let first = 1; first <= EVENTS; first += BATCH) await append(database.store, first, first + BATCH - 1);
    const [name, ...rest] = command(`127.0.0.1:${proxy.port}`, join(data, "admin-token"));
    program = spawn(name, rest, { stdio: ["ignore", "pipe", "pipe"] });
    const printed: string[] = [];
    const said: string[] = [];
    if (program.stdout === null || program.stderr === null) throw new Error("it has no output");
    createInterface({ input: program.stdout }).on("line", (line) => printed.push(line));
    program.stderr.on("data", (piece: Buffer) => said.push(String(piece).slice(0, 10_000)));
    const seen = async (what: string, isSo: () => boolean) => {
      await until(what, () => isSo() || program?.exitCode !== null || null, LIMIT_MS);
      if (!isSo()) throw new Error(`${what} did not come about, it printed ${printed.length} lines: ${said.join("")}`);
    };
    await seen("all breaks", () => printed.length >= EVENTS && proxy.made === BREAKS);
    await append(database.store, EVENTS + 1, EVENTS + 1);
    const last = `node-${EVENTS + 1}`;
    await seen("the last event", () => printed.at(-1)?.endsWith(` ${last}`) === true);
    const rows = await database.store.db.selectFrom("events").select(["revision", "type", "subject"]).execute();
    const lines = rows.sort((one, other) => Number(one.revision - other.revision));
    const end = lines.findIndex(({ subject }) => subject === last);
    const logged = lines.slice(0, end + 1).map(({ revision, type, subject }) => `${revision} ${type} ${subject}`);
    return { breaks: proxy.made, printed, logged };
  } finally {
    if (program !== null && program.exitCode === null) {
      program.kill("SIGKILL");
      await once(program, "exit");
    }
    await proxy.close();
    server.kill("SIGTERM");
    await server.exit();
    await database.drop();
    await rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

async function append(store: Store, first: number, last: number): Promise<void> {
  const events = Array.from({ length: last - first + 1 }, (_, index) => ({
    type: "node.session.moved" as const,
    subject: `node-${first + index}`,
    actor: "replica:replica-2",
    reason: "STREAM_MOVED",
    message: "",
    before: { replica: "replica-1" },
    after: { replica: "replica-2" },
  }));
  await store.transaction((tx) => appendEvents(tx, events));
}
