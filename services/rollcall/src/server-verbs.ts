import { SERVICE_NAMES } from "./control-plane/process-plan.ts";
import { MACHINE_VERBS, type ServerVerb } from "./server-verb.ts";

/** `up`, `serve`, `migrate`, `backup` and `restore`, and the verbs of a machine. */
export const SERVER_VERBS: readonly ServerVerb[] = [
  {
    name: "up",
    usage: "",
    description: "Run everything on this machine, with a Postgres of its own",
    choices: [],
    load: async () => {
      const { runUp, UP_FLAGS } = await import("./verbs/up.ts");
      return { run: runUp, flags: UP_FLAGS };
    },
  },
  {
    name: "serve",
    usage: "<service>...",
    description: "Run one service or several: registry, health, health-query, admin, scheduler, console",
    choices: SERVICE_NAMES,
    load: async () => {
      const { runServe, SERVE_FLAGS } = await import("./verbs/serve.ts");
      return { run: runServe, flags: SERVE_FLAGS };
    },
  },
  {
    name: "migrate",
    usage: "",
    description: "Bring the database to this release's schema, and end",
    choices: [],
    load: async () => {
      const { runMigrate, MIGRATE_FLAGS } = await import("./verbs/migrate.ts");
      return { run: runMigrate, flags: MIGRATE_FLAGS };
    },
  },
  {
    name: "backup",
    usage: "[verify] [file]",
    description: "Copy the whole record into one archive, or verify an archive",
    choices: [],
    load: async () => {
      const { BACKUP_FLAGS, runBackup } = await import("./verbs/backup.ts");
      return { run: runBackup, flags: BACKUP_FLAGS };
    },
  },
  {
    name: "restore",
    usage: "<file>",
    description: "Bring an archive into an empty record",
    choices: [],
    load: async () => {
      const { RESTORE_FLAGS, runRestore } = await import("./verbs/restore.ts");
      return { run: runRestore, flags: RESTORE_FLAGS };
    },
  },
  ...MACHINE_VERBS,
];
