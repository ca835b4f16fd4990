import { SERVICE_NAMES } from "./control-plane/process-plan.ts";
import { MACHINE_VERBS, type ServerVerb } from "./server-verb.ts";

/** `up`, `serve`, and the verbs of a machine. */
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
    usage: "<service>",
    description: "Run one service: registry, health, admin or scheduler",
    choices: SERVICE_NAMES,
    load: async () => {
      const { runServe, SERVE_FLAGS } = await import("./verbs/serve.ts");
      return { run: runServe, flags: SERVE_FLAGS };
    },
  },
  ...MACHINE_VERBS,
];
