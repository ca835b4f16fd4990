import { columnsOf, Failure, type Shell, showing, UsageError, withProgress } from "@rollcall/cli";
import { type ConfigValues, defineKeys, duration } from "@rollcall/config";
import { type Parts, StartError, startParts, systemClock } from "@rollcall/process";
import { ALL_KEYS } from "../config/all-keys.ts";
import { loadConfiguration } from "../config/load.ts";
import { PROCESS_KEYS } from "../config/process-keys.ts";
import { readArguments } from "../config/read-arguments.ts";
import { formatVerbHelp, verbFlags } from "../config/verb-help.ts";
import { connectStore, storeAddress } from "../control-plane/connect-store.ts";
import { explainingStart } from "../control-plane/start-problem.ts";
import { openLog } from "../log.ts";

const MIGRATE_KEYS = {
  "Database.URL": PROCESS_KEYS["Database.URL"],
  "Database.DirectURL": PROCESS_KEYS["Database.DirectURL"],
  "Database.PreparedStatements": PROCESS_KEYS["Database.PreparedStatements"],
  ...defineKeys({
    "Migrate.Wait": {
      schema: duration(),
      default: 300_000,
      flag: "wait",
      doc: "How long to wait for a Postgres that cannot be reached; 0s for a single attempt.",
    },
  }),
  "Log.Level": PROCESS_KEYS["Log.Level"],
  "Log.Format": PROCESS_KEYS["Log.Format"],
};

/** The flags of `migrate`, for completion. */
export const MIGRATE_FLAGS = verbFlags(MIGRATE_KEYS);

const HELP = {
  usage: "migrate [options]",
  description:
    "Migrate the database to this release's schema, then exit. Every control-plane process does so when it starts; " +
    "use this command to migrate before you start the first process of a new release. It waits for a Postgres that " +
    "does not answer yet, for up to --wait.",
  keys: MIGRATE_KEYS,
  notes: [],
};

/** The smallest pools that a store can be opened with. */
const POOLS = { poolSize: 2, reservedPoolSize: 2 };

/** `rollcall migrate`. Returns the exit code: 0 when the schema is up to date, 1 for a failure. */
export async function runMigrate(words: readonly string[], shell: Shell, process: NodeJS.Process): Promise<number> {
  const args = readArguments(words, MIGRATE_KEYS);
  if (args.help) {
    shell.out.write(formatVerbHelp(HELP, columnsOf(shell)));
    return 0;
  }
  if (args.words.length > 0) throw new UsageError(`migrate takes no arguments: '${args.words[0]}'`);
  const { values } = await loadConfiguration<ConfigValues<typeof MIGRATE_KEYS>>(
    { keys: MIGRATE_KEYS, alsoKnown: ALL_KEYS },
    { shell, file: args.file, flags: args.flags },
  );
  const url = values["Database.URL"];
  if (url === undefined) throw new UsageError("migrate needs a Postgres: set DATABASE_URL or --database-url");
  const shown = withProgress(shell);
  const log = openLog(values, shown, "migrate", shown.out);
  const ending = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => ending.abort(new Failure(`interrupted by ${signal}: run migrate again`)));
  }
  const address = storeAddress(values, url);
  const patienceMs = values["Migrate.Wait"];
  const record = { address, pools: POOLS, applicationName: "rollcall migrate", patienceMs, log, clock: systemClock };
  const open = async (parts: Parts) => {
    parts.add(await connectStore(record, ending.signal));
    return {};
  };
  const facts = { portFlags: new Map(), databaseUrl: url, dataDirectory: null };
  const starting = () => explainingStart(facts, () => startParts(open));
  const running = await showing(shown, "migrate the database", starting).catch((error: unknown) => {
    if (ending.signal.aborted) throw ending.signal.reason;
    throw error instanceof StartError ? new Failure(error.message, { cause: error }) : error;
  });
  await running.close();
  log.info({}, "the schema is up to date");
  return 0;
}
