import { bool, type ConfigValues, checkedText, defineKeys, host, int, list, optional, text } from "@rollcall/config";
import { DEFAULT_CALL_LIMITS, networkProblem, POSTGRES_URL_EXAMPLE, parsePostgresUrl } from "@rollcall/domain";
import { OBSERVABILITY_KEYS } from "./observability-keys.ts";

const postgresUrl = () =>
  checkedText(`an address such as ${POSTGRES_URL_EXAMPLE}`, (value) => {
    const result = parsePostgresUrl(value);
    return result.ok ? null : result.problem;
  });

const network = () => checkedText("an IP address, or a network such as 10.0.0.0/8", networkProblem);

const port = () => int({ min: 0, max: 65_535 });

/** The keys that all control-plane processes share: addresses, store, log. */
export const PROCESS_KEYS = defineKeys({
  "Quota.Jobs": {
    schema: int({ min: 0, max: 10_000 }),
    default: 5_000,
    doc:
      "Maximum number of jobs per owner, ended ones included; 0 for no limit. The owner of a job is the caller who " +
      "submitted its newest version. Quotas apply to callers with the role submitter: a call that would exceed one " +
      "is refused with QUOTA_EXCEEDED. A call that raises no usage is never refused, and admins have no quotas. " +
      "Give every scheduler and admin process the same quotas. `rollcall job owners` shows what each owner uses.",
  },
  "Quota.Executions": {
    schema: int({ min: 0, max: 100_000_000 }),
    default: 100_000,
    doc:
      "Maximum number of executions that the active jobs of one owner want; 0 for no limit. An ops job or daemon " +
      "counts one execution per approved node, or one in total if it names its node. A job that still runs more " +
      "executions than it wants counts the running ones. Until an update is complete, the version that would run " +
      "after a " +
      "halt counts instead, if that version uses more. See Quota.Jobs.",
  },
  "Quota.Cores": {
    schema: int({ min: 0, max: 100_000_000 }),
    default: 0,
    doc:
      "Maximum number of cores that the executions counted by Quota.Executions request together, per owner; 0 for " +
      "no limit.",
  },
  "Data.Dir": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    flag: "data-dir",
    doc:
      "Data directory of `up`: the embedded Postgres, the first access token, the local agent's state, and " +
      "run.json, in which clients with the same ROLLCALL_DATA_DIR find the server. Default: .rollcall in the " +
      "working directory if it exists and belongs to this user, else .rollcall in the user's home. For root without " +
      "~/.rollcall: /var/lib/rollcall.",
  },
  "Database.URL": {
    schema: optional(postgresUrl()),
    default: undefined,
    flag: "database-url",
    env: ["DATABASE_URL"],
    secret: true,
    doc:
      "Postgres database of the control plane, as postgres://USER:PASSWORD@HOST:PORT/DATABASE, with libpq " +
      "parameters such as sslmode. Separate several servers by commas: HOST:PORT,HOST:PORT; each new connection " +
      "uses the first writable one. Without it, `up` runs an embedded Postgres in its data directory. `serve` " +
      "requires it.",
  },
  "Database.DirectURL": {
    schema: optional(postgresUrl()),
    default: undefined,
    flag: "database-direct-url",
    env: ["DATABASE_DIRECT_URL"],
    secret: true,
    doc:
      "Address of the same database that bypasses a pooler in Database.URL, such as PgBouncer in transaction mode. " +
      "It is used only for work that needs a session: migrations, and one connection per process that listens for " +
      "changes. Without it, Database.URL must point to Postgres directly: a process that receives no notifications " +
      "does not start.",
  },
  "Database.PreparedStatements": {
    schema: bool(),
    default: true,
    doc:
      "Whether connections use named prepared statements for the most frequent queries. Turn it off behind " +
      "a PgBouncer older than 1.21, or one with max_prepared_statements = 0: it loses prepared statements, so " +
      "processes " +
      "do not start there.",
  },
  "Database.PoolSize": {
    schema: int({ min: 2, max: 500 }),
    default: 16,
    doc:
      "Maximum number of Postgres connections per process for callers' requests. A call that gets no connection " +
      "within 3 seconds, or finds 32 calls per connection already waiting, is refused with OVERLOADED and a retry " +
      "delay.",
  },
  "Database.ReservedPoolSize": {
    schema: int({ min: 2, max: 100 }),
    default: 6,
    doc:
      "Maximum number of Postgres connections per process, in addition to Database.PoolSize, for the work that " +
      "keeps nodes safe: sessions, transitions, adoption, the brake, registrations, upkeep and the event feed. " +
      "Callers' requests cannot use them. A process opens up to five more: one for its lease, one to look up access " +
      "tokens, one that listens for changes, and two while it starts. With the defaults, Postgres must allow 27 " +
      "connections per process (max_connections). Workers of `up` with the embedded Postgres share 170; with more " +
      "than six workers, each gets fewer.",
  },
  "Listen.Host": {
    schema: host(),
    default: "127.0.0.1",
    flag: "listen",
    aliases: ["API.Host"],
    doc:
      "Address to listen on, for all ports; 0.0.0.0 or :: for all addresses. An address beyond loopback requires " +
      "TLS (TLS.CertFile) or Listen.InsecurePlaintext. Any machine that reaches it can register: set " +
      "Orchestrator.NodeManager.ManualApproval too.",
  },
  "Listen.AdvertiseHost": {
    schema: optional(host()),
    default: undefined,
    doc:
      "Host under which agents and other control-plane processes reach this one, if it differs from Listen.Host: " +
      "for example the pod's address in a pod that listens on 0.0.0.0. Default: Listen.Host, or this machine's name " +
      "if Listen.Host means all addresses. For agents, Health.AdvertiseAddress takes precedence.",
  },
  "Listen.TrustedProxies": {
    schema: list(network()),
    default: [] as readonly string[],
    flag: "trusted-proxies",
    aliases: ["TrustedProxies", "API.TrustedProxies"],
    doc:
      "Addresses and networks of trusted load balancers and proxies, such as 10.0.0.7 or 10.0.0.0/8. For calls from " +
      "them, rate limits, the audit log and logs use the client address in X-Forwarded-For: the last one that is " +
      "not a trusted proxy. Without X-Forwarded-For they use Forwarded. A proxy named here must therefore set the " +
      "header itself, and one that sets Forwarded must remove X-Forwarded-For. Both headers are ignored from other " +
      "addresses. Name 127.0.0.1 and ::1 for a proxy on this machine. Without this key, all callers behind a proxy " +
      "count as one address.",
  },
  "Listen.CallsPerCaller": {
    schema: int({ min: 1, max: 100_000 }),
    default: DEFAULT_CALL_LIMITS.callerCalls,
    doc:
      "Maximum number of concurrent unary calls per caller (an access token or a person) at one process; more are " +
      "refused with TOO_MANY_CALLS. A call counts until its response has been read. Up to half of Database.PoolSize " +
      "run at a time; the others wait for up to a third of their deadline.",
  },
  "Listen.StreamsPerCaller": {
    schema: int({ min: 1, max: 100_000 }),
    default: DEFAULT_CALL_LIMITS.callerStreams,
    doc:
      "Maximum number of open streams, such as watches, per caller at one process; more are refused with " +
      "TOO_MANY_STREAMS.",
  },
  "Listen.CallsPerAddress": {
    schema: int({ min: 1, max: 100_000 }),
    default: DEFAULT_CALL_LIMITS.anonymous,
    doc:
      "Maximum number of concurrent calls and streams per address (for IPv6 per /64) at one process, for methods " +
      "that need no authentication; more are refused with TOO_MANY_CALLS. See Listen.TrustedProxies.",
  },
  "Listen.NodeCallsPerAddress": {
    schema: int({ min: 1, max: 100_000 }),
    default: DEFAULT_CALL_LIMITS.node,
    doc:
      "Maximum number of concurrent calls of nodes, such as registrations, per address at one process; more are " +
      "refused with TOO_MANY_CALLS, and agents retry. 256 of them run at a time, the others wait. Many nodes can " +
      "share one address.",
  },
  "Listen.HostNames": {
    schema: list(
      text({
        pattern: /^(\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*)$/,
        expects: "a host name, *.DOMAIN for all names in a domain, or * for any name",
      }),
    ),
    default: [],
    doc:
      "Host names under which browsers and scrapers reach the API and /metrics, separated by commas; *.example.org " +
      "for all names in a domain, * for any. Always accepted: IP addresses, localhost, this machine's name, " +
      "Health.AdvertiseAddress and the names of TLS.CertFile. Requests under any other name that a browser could " +
      "have sent are refused with HOST_NOT_ALLOWED: those with Origin or Sec-Fetch headers, and every GET, " +
      "including a scrape of /metrics by a service's name. Other clients can use any name. This prevents DNS " +
      "rebinding: pages of other sites cannot call this server through a visitor's browser.",
  },
  "Listen.MaxConnections": {
    schema: int({ min: 16, max: 1_000_000 }),
    default: 8_192,
    doc:
      "Maximum number of connections on the API's port of one process. At the limit, connections without a call are " +
      "closed to make room for new ones, the longest idle first. If the limit of open files (ulimit -n) allows " +
      "fewer, the port accepts fewer and logs so at startup. See Health.MaxConnections for the agents' port.",
  },
  "Listen.InsecurePlaintext": {
    schema: bool(),
    default: false,
    flag: "insecure-plaintext",
    doc:
      "Whether to listen beyond loopback without TLS, where others could read and use access tokens. For networks " +
      "that encrypt all traffic.",
  },
  "TLS.CertFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    flag: "tls-cert",
    doc:
      "PEM file with the server's certificate, followed by its intermediate certificates. When set, the API and the " +
      "agents' port accept only TLS (1.3, or 1.2 with ECDHE and AES-GCM or ChaCha20-Poly1305). This file, " +
      "TLS.KeyFile and TLS.ClientCAFile are reloaded every 2 seconds and at SIGHUP. New connections use the new " +
      "files, and existing connections stay open; an unusable file is logged and ignored.",
  },
  "TLS.KeyFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    flag: "tls-key",
    doc: "PEM file with the private key of TLS.CertFile, without a passphrase.",
  },
  "TLS.ClientCAFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    flag: "tls-client-ca",
    doc:
      "PEM file with the authorities of client certificates, at least one of them self-signed. When set, the API " +
      "and the agents' port accept only clients with a certificate signed by one of them. Access tokens and nodes' " +
      "proofs are still required.",
  },
  "TLS.CAFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    flag: "tls-ca",
    doc:
      "PEM file with the authority of TLS.CertFile, if the system does not trust it. `up` passes it to its own " +
      "agent, and to this user's clients in run.json. The API serves its certificates at /ca.pem, for agents that " +
      "know the authority's fingerprint, and health announces them to connected agents: to change the authority, " +
      "add the next one to this file. Default: the root at the end of TLS.CertFile. Only self-signed certificates " +
      "count as authorities; put intermediate ones into TLS.CertFile. A TLS.CertFile that none of them verifies is " +
      "refused.",
  },
  "TLS.AgentCAFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc:
      "PEM file with the authorities that health announces to agents when a proxy terminates TLS: the authority of " +
      "the proxy's certificate, and the one that will replace it; up to 16, self-signed. Default: those of " +
      "TLS.CAFile. Agents that joined with --ca-fingerprint trust only these, so add the authority of TLS.CertFile " +
      "if any agent reaches the registry or health without the proxy; see docs/how-to/rotate-authority.md.",
  },
  "TLS.Probes": {
    schema: bool(),
    default: false,
    doc:
      "Whether /livez, /readyz and /metrics also use TLS, without requiring a client certificate. If false, they " +
      "use plain HTTP, for kubelets and scrapers.",
  },
  "Listen.Port": {
    schema: port(),
    default: 7700,
    flag: "port",
    aliases: ["API.Port"],
    doc: "Port of the API for `up`, and for `serve` with several services. 0 picks a free port.",
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
      "Port for requests between health replicas, in `up` (on the loopback interface only) and in `serve health`. " +
      "Replicas authenticate each other through the database; all other callers are refused. With TLS.CertFile the " +
      "port uses TLS. It requires no client certificate, and expects other replicas to have a certificate of " +
      "TLS.CAFile for their address or for a name in its own certificate. 0 picks a free port, which the replicas " +
      "find in the database.",
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
    doc: "Whether `up` runs an agent, which makes its own machine a node.",
  },
  "Up.TLS": {
    schema: bool(),
    default: false,
    flag: "tls",
    doc:
      "Whether `up` creates a development authority and a certificate for this machine in its data directory " +
      "(tls/), renews them, and uses TLS. This user's clients and the local agent trust it automatically; others " +
      "need --ca-file. To serve more than one machine, set TLS.CertFile instead.",
  },
  ...OBSERVABILITY_KEYS,
});

export type ProcessConfig = ConfigValues<typeof PROCESS_KEYS>;
