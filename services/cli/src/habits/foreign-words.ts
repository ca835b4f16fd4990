const LIST = "`rollcall node`, `rollcall job` and the other nouns list their objects";
const LOGS = "`rollcall job logs JOB` shows the output of a job";
const RUN = "`rollcall run --selector KEY=VALUE -- COMMAND` runs a command once on a matching node";

const ADD = "`rollcall token create --uses COUNT` prints the command that adds machines, to run on each of them";

function onNode(verb: string): string {
  return `\`rollcall node ${verb} NODE\``;
}

/**
 * Commands of kubectl, nomad, docker and tailscale that have another name in Rollcall, with that name. The keys are
 * what the user typed.
 */
export const FOREIGN_WORDS: Readonly<Record<string, string>> = {
  get: LIST,
  nodes: "`rollcall node` lists nodes",
  jobs: "`rollcall job` lists jobs",
  describe: "`rollcall node describe NODE` and `rollcall job describe JOB` show one object",
  inspect: "`rollcall node describe NODE` and `rollcall job describe JOB` show one object",
  explain: "`rollcall node why NODE` and `rollcall job why JOB` explain a state",
  delete: "`rollcall node delete NODE` and `rollcall job delete JOB` delete one object",
  cordon: onNode("cordon"),
  uncordon: onNode("uncordon"),
  drain: onNode("drain"),
  label: "`rollcall node label NODE KEY=VALUE`",
  taint: "`rollcall node cordon NODE` keeps new work away; labels and selectors of jobs choose nodes",
  wait: "`rollcall node wait NODE --for STATE` and `rollcall job wait JOB`",
  logs: LOGS,
  exec: `there is no shell in a running execution; ${RUN}`,
  attach: LOGS,
  ssh: `there is no shell on a node; ${RUN}`,
  create: "`rollcall job run FILE` submits jobs; `rollcall apply -f FILE` applies everything else",
  scale: "`rollcall job scale JOB COUNT`",
  rollout: "`rollcall job history JOB`, `rollcall job restart JOB` and `rollcall job revert JOB`",
  rollback: "`rollcall job revert JOB` returns to the version that was ready last",
  undo: "`rollcall job revert JOB` returns to the version that was ready last",
  add: ADD,
  join: ADD,
  stop: "`rollcall job stop JOB`",
  kill: "`rollcall job stop JOB`, or `rollcall job stop --execution ID` for one execution",
  restart: "`rollcall job restart JOB`",
  rm: "`rollcall job delete JOB` and `rollcall node delete NODE`",
  ps: "`rollcall job executions` lists what runs",
  alloc: "`rollcall job executions` lists what runs, `rollcall job why EXECUTION` explains one",
  monitor: "`rollcall events --follow` prints changes as they happen",
  ping: "`rollcall node health NODE` shows the heartbeats of a node",
  netcheck: "`rollcall doctor` checks addresses, certificates and clocks",
  bugreport: "`rollcall doctor --bundle FILE` writes what a maintainer needs",
  down: "stop `rollcall up` with Ctrl-C, or with its service manager",
  server: "`rollcall serve SERVICE...` runs services, `rollcall up` runs everything",
  "node add": ADD,
  "node create": ADD,
  "node join": ADD,
  "node register": ADD,
  "node exec": RUN,
  "node ssh": RUN,
  "node taint": "`rollcall node cordon NODE` keeps new work away",
  "node eligibility": "`rollcall node cordon NODE` and `rollcall node uncordon NODE`",
  "node events": "`rollcall events --node NODE`",
  "job exec": `there is no shell in a running execution; ${RUN}`,
  "job submit": "`rollcall job run FILE`",
  "job start": "`rollcall job run FILE`",
  "job plan": "`rollcall job run --dry-run FILE`",
  "job allocs": "`rollcall job executions JOB`",
  "job eval": "`rollcall job why JOB`",
  "token generate": "`rollcall token create`",
};

/** What to use instead of an unknown command, if it is known from another program; null otherwise. */
export function foreignHint(args: readonly string[], unknown: string): string | null {
  const before = args.slice(0, args.indexOf(unknown)).filter((word) => !word.startsWith("-"));
  return FOREIGN_WORDS[[...before.slice(-1), unknown].join(" ")] ?? FOREIGN_WORDS[unknown] ?? null;
}
