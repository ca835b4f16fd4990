import { SERVICE_NAMES } from "./control-plane/process-plan.ts";
import { MACHINE_VERBS, type ServerVerb } from "./server-verb.ts";

/** `up`, `demo`, `serve`, `migrate`, `backup` and `restore`, and the verbs that run an agent or a keeper. */
export const SERVER_VERBS: readonly ServerVerb[] = [
  {
    name: "up",
    usage: "",
    description: "Run everything on this machine, with an embedded Postgres",
    choices: [],
    load: async () => {
      const { runUp, UP_FLAGS } = await import("./verbs/up.ts");
      return { run: runUp, flags: UP_FLAGS };
    },
  },
  {
    name: "demo",
    usage: "[crash|freeze|start] [node]",
    description: "Try everything on this machine: a control plane, five agents, jobs and a login issuer",
    choices: ["crash", "freeze", "start", "issuer"],
    load: async () => {
      const { DEMO_FLAGS, runDemo } = await import("./verbs/demo.ts");
      return { run: runDemo, flags: DEMO_FLAGS };
    },
  },
  {
    name: "serve",
    usage: "<service...>",
    description: "Run one or more services: registry, health, health-query, admin, scheduler, console",
    choices: SERVICE_NAMES,
    load: async () => {
      const { runServe, SERVE_FLAGS } = await import("./verbs/serve.ts");
      return { run: runServe, flags: SERVE_FLAGS };
    },
  },
  {
    name: "migrate",
    usage: "",
    description: "Migrate the database to this release's schema",
    choices: [],
    load: async () => {
      const { runMigrate, MIGRATE_FLAGS } = await import("./verbs/migrate.ts");
      return { run: runMigrate, flags: MIGRATE_FLAGS };
    },
  },
  {
    name: "backup",
    usage: "[verify] [file]",
    description: "Back up the whole database to one archive, or verify an archive",
    choices: [],
    load: async () => {
      const { BACKUP_FLAGS, runBackup } = await import("./verbs/backup.ts");
      return { run: runBackup, flags: BACKUP_FLAGS };
    },
  },
  {
    name: "restore",
    usage: "<file>",
    description: "Restore an archive into an empty database",
    choices: [],
    load: async () => {
      const { RESTORE_FLAGS, runRestore } = await import("./verbs/restore.ts");
      return { run: runRestore, flags: RESTORE_FLAGS };
    },
  },
  ...MACHINE_VERBS,
];
