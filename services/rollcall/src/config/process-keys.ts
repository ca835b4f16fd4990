import {
  bool,
  type ConfigValues,
  defineKeys,
  int,
  oneOf,
  optional,
  text,
} from "@rollcall/runtime/config";

/** The least that is logged. The same words as the runtime's, which is not loaded for them. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
/** How the log is written. */
export type LogFormat = "auto" | "pretty" | "json";

const port = () => int({ min: 0, max: 65_535 });

/** What every process of the control plane has in common: where it listens, its record, its log. */
export const PROCESS_KEYS = defineKeys({
  "Data.Dir": {
    schema: optional(text()),
    default: undefined,
    flag: "data-dir",
    doc: "Directory of what `up` keeps: the embedded Postgres, the first access token, the local agent's state, and run.json, by which clients find it: they take the same ROLLCALL_DATA_DIR. When not set: .rollcall in the working directory if there is one that belongs to this user, else .rollcall in the user's home.",
  },
  "Database.URL": {
    schema: optional(
      text({
        pattern: /^(postgres|postgresql):\/\/./,
        expects: "an address such as postgres://USER:PASSWORD@HOST:PORT/DATABASE",
      }),
    ),
    default: undefined,
    flag: "database-url",
    env: ["DATABASE_URL"],
    secret: true,
    doc: "The Postgres that holds the record, as postgres://USER:PASSWORD@HOST:PORT/DATABASE. Without it `up` runs a Postgres of its own in its data directory; `serve` cannot do without.",
  },
  "Database.PoolSize": {
    schema: int({ min: 2, max: 500 }),
    default: 16,
    doc: "Most connections to Postgres of one process, besides one for the feed of events.",
  },
  "Listen.Host": {
    schema: text(),
    default: "127.0.0.1",
    flag: "listen",
    aliases: ["API.Host"],
    doc: "Address of this machine on which everything listens; 0.0.0.0 or :: for all. Beyond loopback anybody who reaches it may register a node; set Orchestrator.NodeManager.ManualApproval then.",
  },
  "Listen.Port": {
    schema: port(),
    default: 7700,
    flag: "port",
    aliases: ["API.Port"],
    doc: "Port of the API when everything runs in one process. 0 takes a free one.",
  },
  "Listen.AgentPort": {
    schema: port(),
    default: 7701,
    flag: "agent-port",
    doc: "Port of agents' streams, in `up` and in `serve health`.",
  },
  "Listen.ProbePort": {
    schema: port(),
    default: 7790,
    flag: "probe-port",
    doc: "Port of /livez, /readyz and /metrics when everything runs in one process.",
  },
  "Listen.RegistryPort": {
    schema: port(),
    default: 7710,
    doc: "Port of `serve registry`.",
  },
  "Listen.RegistryProbePort": {
    schema: port(),
    default: 7791,
    doc: "Port of /livez, /readyz and /metrics of `serve registry`.",
  },
  "Listen.HealthPort": {
    schema: port(),
    default: 7711,
    doc: "Port of `serve health` for readers.",
  },
  "Listen.HealthProbePort": {
    schema: port(),
    default: 7792,
    doc: "Port of /livez, /readyz and /metrics of `serve health`.",
  },
  "Listen.AdminPort": {
    schema: port(),
    default: 7712,
    doc: "Port of `serve admin`.",
  },
  "Listen.AdminProbePort": {
    schema: port(),
    default: 7793,
    doc: "Port of /livez, /readyz and /metrics of `serve admin`.",
  },
  "Up.Agent": {
    schema: bool(),
    default: true,
    flag: "agent",
    doc: "Whether `up` runs an agent, so that the machine it runs on is a node itself.",
  },
  "Log.Level": {
    schema: oneOf<LogLevel>(["trace", "debug", "info", "warn", "error", "fatal", "silent"]),
    default: "info" as const,
    flag: "log-level",
    aliases: ["Logging.Level"],
    doc: "The least that is logged.",
  },
  "Log.Format": {
    schema: oneOf<LogFormat>(["auto", "pretty", "json"]),
    default: "auto" as const,
    flag: "log-format",
    doc: "How the log is written: readable lines, one JSON object a line, or readable on a terminal and JSON elsewhere.",
  },
});

/** The values of what every process has in common. */
export type ProcessConfig = ConfigValues<typeof PROCESS_KEYS>;
