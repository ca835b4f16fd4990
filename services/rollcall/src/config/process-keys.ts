import {
  bool,
  type ConfigValues,
  checkedText,
  decimal,
  defineKeys,
  host,
  int,
  list,
  oneOf,
  optional,
  text,
  url,
} from "@rollcall/config";
import { DEFAULT_CALL_LIMITS, networkProblem, POSTGRES_URL_EXAMPLE, parsePostgresUrl } from "@rollcall/domain";

/** The least that is logged. The same words as the runtime's, which is not loaded for them. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
/** How the log is written. */
export type LogFormat = "auto" | "pretty" | "json";

const postgresUrl = () =>
  checkedText(`an address such as ${POSTGRES_URL_EXAMPLE}`, (value) => {
    const result = parsePostgresUrl(value);
    return result.ok ? null : result.problem;
  });

const network = () => checkedText("an IP address, or a network such as 10.0.0.0/8", networkProblem);

const port = () => int({ min: 0, max: 65_535 });

/** What every process of the control plane has in common: where it listens, its record, its log. */
export const PROCESS_KEYS = defineKeys({
  "Quota.Jobs": {
    schema: int({ min: 0, max: 10_000 }),
    default: 5_000,
    doc:
      "Jobs of each owner at most, ended ones included; 0 for no limit. The owner of a job is who submitted its " +
      "newest version. Quotas hold for calls with the role submitter: a call that would exceed one is refused with " +
      "QUOTA_EXCEEDED, and one that uses no more than before never is. An admin is not bound by them. Each scheduler " +
      "and admin process needs the same quotas. `rollcall job owners` shows what each owner uses.",
  },
  "Quota.Executions": {
    schema: int({ min: 0, max: 100_000_000 }),
    default: 100_000,
    doc:
      "Executions that the active jobs of each owner want at most; 0 for no limit. An ops job or daemon counts as an " +
      "execution on each approved node, or as one where it names its node. A job that still runs more executions " +
      "than it wants counts with those. Until an update is complete, the earlier version counts if the job would use " +
      "more after the update halted. See Quota.Jobs.",
  },
  "Quota.Cores": {
    schema: int({ min: 0, max: 100_000_000 }),
    default: 0,
    doc: "Cores that the executions of Quota.Executions ask for together at most, for each owner; 0 for no limit.",
  },
  "Data.Dir": {
    schema: optional(text()),
    default: undefined,
    flag: "data-dir",
    doc:
      "Directory of what `up` keeps: the embedded Postgres, the first access token, the local agent's state, and " +
      "run.json, by which clients find it: they take the same ROLLCALL_DATA_DIR. When not set: .rollcall in the " +
      "working directory if there is one that belongs to this user, else .rollcall in the user's home; for root, " +
      "unless its home has that, /var/lib/rollcall.",
  },
  "Database.URL": {
    schema: optional(postgresUrl()),
    default: undefined,
    flag: "database-url",
    env: ["DATABASE_URL"],
    secret: true,
    doc:
      "The Postgres that holds the record, as postgres://USER:PASSWORD@HOST:PORT/DATABASE, with the parameters of " +
      "libpq, such as sslmode. Several servers are separated by commas: HOST:PORT,HOST:PORT; each new connection " +
      "takes the first one that can be written. Without it `up` runs a Postgres of its own in its data directory; " +
      "`serve` cannot do without.",
  },
  "Database.DirectURL": {
    schema: optional(postgresUrl()),
    default: undefined,
    flag: "database-direct-url",
    env: ["DATABASE_DIRECT_URL"],
    secret: true,
    doc:
      "The database of Database.URL without the pooler that stands before it, such as PgBouncer in transaction mode. " +
      "Only what needs a session goes there: the connection of each process that listens for changes, and " +
      "migrations. Without it Database.URL has to lead to Postgres itself: a process whose notifications do not " +
      "arrive does not start.",
  },
  "Database.PreparedStatements": {
    schema: bool(),
    default: true,
    doc:
      "Whether connections keep the plans of the busiest statements by name. Turn it off behind PgBouncer before " +
      "1.21, or one with max_prepared_statements = 0, which loses them: a process does not start there otherwise.",
  },
  "Database.PoolSize": {
    schema: int({ min: 2, max: 500 }),
    default: 16,
    doc:
      "Most connections to Postgres of one process for what callers ask of it. A call that gets none within 5 " +
      "seconds, or finds 32 calls for each connection waiting already, is refused with OVERLOADED and told when " +
      "to try again.",
  },
  "Database.ReservedPoolSize": {
    schema: int({ min: 2, max: 100 }),
    default: 6,
    doc:
      "Most connections to Postgres of one process besides those of Database.PoolSize, for what keeps nodes " +
      "safe: sessions, transitions, adoption, the brake, registrations, upkeep and the feed of events. No call " +
      "can take them. A process has four more at most: one for its lease, one that listens, and two while it starts. " +
      "So Postgres must take 26 for each process by default (max_connections). Workers of `up` with its own " +
      "Postgres share 170, and take less each where there are more than six of them.",
  },
  "Listen.Host": {
    schema: host(),
    default: "127.0.0.1",
    flag: "listen",
    aliases: ["API.Host"],
    doc:
      "Address of this machine on which everything listens; 0.0.0.0 or :: for all. Beyond loopback it needs TLS " +
      "(TLS.CertFile) or Listen.InsecurePlaintext, and any machine that reaches it may register; set " +
      "Orchestrator.NodeManager.ManualApproval then.",
  },
  "Listen.AdvertiseHost": {
    schema: optional(host()),
    default: undefined,
    doc:
      "Host by which the other processes of the control plane, and agents, reach this one, where it is not the one " +
      "of Listen.Host: in a pod that listens on 0.0.0.0 the pod's address. When not set: Listen.Host, or this " +
      "machine's name where that is every address. Health.AdvertiseAddress wins for agents.",
  },
  "Listen.TrustedProxies": {
    schema: list(network()),
    default: [] as readonly string[],
    flag: "trusted-proxies",
    aliases: ["TrustedProxies", "API.TrustedProxies"],
    doc:
      "Addresses and networks of load balancers and proxies in front, such as 10.0.0.7 or 10.0.0.0/8. Of a call " +
      "that comes from one of them, limits, the audit log and logs take the address from X-Forwarded-For: the " +
      "last one that is no trusted proxy itself; from Forwarded where there is no X-Forwarded-For. So a proxy " +
      "named here must write the header itself, and one that writes Forwarded must remove X-Forwarded-For. From " +
      "other addresses both headers are ignored. Name 127.0.0.1 and ::1 for a proxy on this machine. By default " +
      "none: then all that a proxy passes on are one caller to the limits of an address.",
  },
  "Listen.CallsPerCaller": {
    schema: int({ min: 1, max: 100_000 }),
    default: DEFAULT_CALL_LIMITS.callerCalls,
    doc:
      "Calls with one answer that one caller (an access token, a person) may have under way at one process; more " +
      "are refused with TOO_MANY_CALLS. A call counts until its answer was read. Eight of them work at a time, " +
      "or half of Database.PoolSize where that is more; the others wait.",
  },
  "Listen.StreamsPerCaller": {
    schema: int({ min: 1, max: 100_000 }),
    default: DEFAULT_CALL_LIMITS.callerStreams,
    doc: "Streams, such as watches, that one caller may hold at one process; more are refused with TOO_MANY_STREAMS.",
  },
  "Listen.CallsPerAddress": {
    schema: int({ min: 1, max: 100_000 }),
    default: DEFAULT_CALL_LIMITS.stranger,
    doc:
      "Calls and streams of methods that are open to anyone that one address (IPv6: one /64) may have under way " +
      "at one process; more are refused with TOO_MANY_CALLS. See Listen.TrustedProxies.",
  },
  "Listen.NodeCallsPerAddress": {
    schema: int({ min: 1, max: 100_000 }),
    default: DEFAULT_CALL_LIMITS.node,
    doc:
      "Calls of nodes, such as registrations, that one address may have under way at one process; more are " +
      "refused with TOO_MANY_CALLS, and agents try again. 256 of them work at a time, the others wait. Many " +
      "nodes may be behind one address.",
  },
  "Listen.HostNames": {
    schema: list(
      text({
        pattern: /^(\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*)$/,
        expects: "a host name, *. and a domain for every name in it, or * for any name",
      }),
    ),
    default: [],
    doc:
      "Names by which browsers and scrapers reach the API and /metrics, separated by commas; *.example.org for " +
      "all below a domain, * for any. Besides these, addresses, localhost, this machine's name, " +
      "Health.AdvertiseAddress and the names of TLS.CertFile are taken. What a browser can have sent under any " +
      "other name is refused with HOST_NOT_ALLOWED: requests with Origin or Sec-Fetch headers, and every GET, " +
      "which a scraper of /metrics by a service's name sends too. Other clients use any name. So no foreign page " +
      "reaches this server through a visitor's browser under a name that it has resolve here.",
  },
  "Listen.MaxConnections": {
    schema: int({ min: 16, max: 1_000_000 }),
    default: 8_192,
    doc:
      "Most connections at a time on the API's port of one process. At the limit, connections without a call " +
      "make room for new ones, those that have had none for the longest first. Where the limit of open files " +
      "(ulimit -n) leaves fewer, the port takes fewer, and the log says so at the start. See " +
      "Health.MaxConnections for the agents' port.",
  },
  "Listen.InsecurePlaintext": {
    schema: bool(),
    default: false,
    flag: "insecure-plaintext",
    doc:
      "Whether to listen beyond loopback without TLS, where access tokens can be read on the way and used. For " +
      "networks that encrypt by themselves.",
  },
  "TLS.CertFile": {
    schema: optional(text()),
    default: undefined,
    flag: "tls-cert",
    doc:
      "PEM file of the server's certificate, followed by those between it and its authority. When set, the API " +
      "and the agents' port speak TLS (1.3, or 1.2 by ECDHE with AES-GCM or ChaCha20-Poly1305) and nothing else. " +
      "This file, TLS.KeyFile and TLS.ClientCAFile are looked at every 2 seconds: new connections use what is " +
      "there, those that stand are left alone, and what cannot be used is logged and left aside. SIGHUP has " +
      "them read at once.",
  },
  "TLS.KeyFile": {
    schema: optional(text()),
    default: undefined,
    flag: "tls-key",
    doc: "PEM file of the key of TLS.CertFile, without a passphrase.",
  },
  "TLS.ClientCAFile": {
    schema: optional(text()),
    default: undefined,
    flag: "tls-client-ca",
    doc:
      "PEM file of authorities of clients, at least one of them self-signed. When set, the API and the agents' " +
      "port take only clients with a certificate signed by one of them; access tokens and nodes' proofs are asked " +
      "for all the same.",
  },
  "TLS.CAFile": {
    schema: optional(text()),
    default: undefined,
    flag: "tls-ca",
    doc:
      "PEM file of the authority of TLS.CertFile, when it is not one that the system trusts. `up` names it to " +
      "its own agent, and to this user's clients by run.json. The API hands its certificates out at /ca.pem, for " +
      "agents that know the authority by its fingerprint, and health announces them to agents that are connected: " +
      "to change the authority, write the next one into this file as well. Without this file, the root at the end " +
      "of TLS.CertFile. Only self-signed certificates count as authorities: intermediate ones belong into " +
      "TLS.CertFile. A certificate that none of them verifies is refused.",
  },
  "TLS.AgentCAFile": {
    schema: optional(text()),
    default: undefined,
    doc:
      "PEM file of the authorities that health announces to agents, where a proxy ends their TLS: that of the " +
      "proxy's certificate, and one that will replace it; at most 16, self-signed. When not set: those of " +
      "TLS.CAFile. Agents that joined with --ca-fingerprint trust these and no others, so name the authority of " +
      "TLS.CertFile as well if any agent reaches the registry or health without the proxy; see " +
      "docs/how-to/rotate-authority.md.",
  },
  "TLS.Probes": {
    schema: bool(),
    default: false,
    doc:
      "Whether /livez, /readyz and /metrics speak TLS too. Clients are not asked for a certificate there. " +
      "Without it they are plain HTTP, for kubelets and scrapers.",
  },
  "Listen.Port": {
    schema: port(),
    default: 7700,
    flag: "port",
    aliases: ["API.Port"],
    doc: "Port of the API of `up`, and of `serve` with several services. 0 takes a free one.",
  },
  "Listen.AgentPort": {
    schema: port(),
    default: 7701,
    flag: "agent-port",
    doc: "Port of agents' streams, in `up` and in `serve health`.",
  },
  "Listen.HealthInternalPort": {
    schema: port(),
    default: 7720,
    flag: "internal-port",
    doc:
      "Port at which health replicas ask each other, in `up` (on the loopback interface alone) and in `serve " +
      "health`. They need nothing but the database to trust each other; no other caller is answered. With " +
      "TLS.CertFile it speaks TLS as well, asks for no certificate, and expects of the others one of TLS.CAFile " +
      "for their address or for a name that its own certificate has. 0 takes a free one: they find it in the " +
      "record.",
  },
  "Listen.ProbePort": {
    schema: port(),
    default: 7790,
    flag: "probe-port",
    doc: "Port of /livez, /readyz and /metrics of `up`, and of `serve` with several services.",
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
    doc: "Port of `serve health` for readers, and of `serve health-query`.",
  },
  "Listen.HealthProbePort": {
    schema: port(),
    default: 7792,
    doc: "Port of /livez, /readyz and /metrics of `serve health`, and of `serve health-query`.",
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
  "Listen.SchedulerPort": {
    schema: port(),
    default: 7713,
    doc: "Port of `serve scheduler`.",
  },
  "Listen.SchedulerProbePort": {
    schema: port(),
    default: 7794,
    doc: "Port of /livez, /readyz and /metrics of `serve scheduler`.",
  },
  "Listen.ConsolePort": {
    schema: port(),
    default: 7700,
    doc: "Port of `serve console`.",
  },
  "Listen.ConsoleProbePort": {
    schema: port(),
    default: 7795,
    doc: "Port of /livez, /readyz and /metrics of `serve console`.",
  },
  "Up.Agent": {
    schema: bool(),
    default: true,
    flag: "agent",
    doc: "Whether `up` runs an agent, so that the machine it runs on is a node itself.",
  },
  "Up.TLS": {
    schema: bool(),
    default: false,
    flag: "tls",
    doc:
      "Whether `up` makes a development authority and a certificate for this machine in its data directory " +
      "(tls/), renews them in time, and speaks TLS with them. The clients of this user and the local agent trust " +
      "it by themselves; others by --ca-file. For more than one machine's use take TLS.CertFile.",
  },
  "Tracing.Endpoint": {
    schema: optional(url("http://127.0.0.1:4318", { schemes: ["http", "https"], paths: true })),
    default: undefined,
    flag: "tracing-endpoint",
    env: ["OTEL_EXPORTER_OTLP_ENDPOINT"],
    doc:
      "URL of an OpenTelemetry collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; /v1/traces is " +
      "added where it is not there. When set, every unary call is a span with its queries of Postgres in it, part of " +
      "the trace that the caller's traceparent header names, and lines of the log that are written for it carry " +
      "trace_id and span_id. Streams are not traced. A collector that is away costs nothing: 2,048 spans wait, and " +
      "further ones are dropped.",
  },
  "Tracing.SampleRatio": {
    schema: decimal({ min: 0, max: 1 }),
    default: 1,
    doc:
      "The share of traces that is kept of those that begin here. A caller that sends a traceparent header has " +
      "decided for its own. See Tracing.Endpoint.",
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
    doc:
      "How the log is written: readable lines, one JSON object a line, or readable on a terminal and JSON " +
      "elsewhere.",
  },
});

/** The values of what every process has in common. */
export type ProcessConfig = ConfigValues<typeof PROCESS_KEYS>;
