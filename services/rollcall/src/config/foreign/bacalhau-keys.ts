import { bacalhauNames, type ForeignKey } from "@rollcall/config";
import {
  capacityOf,
  joinSecret,
  listenHost,
  nothing,
  portsOf,
  protection,
  same,
  sameWith,
  serverOf,
  turnsOff,
  turnsOn,
  words,
} from "./meanings.ts";

const NATS = "it configures NATS between Bacalhau's nodes; Rollcall's agents use one gRPC stream each";
const CLIENT = "it configures clients: use `rollcall context` or --server to name the control plane";
const TOKEN = "it is not a join token; create one for Compute.JoinToken with `rollcall token create`";
const PARTS = "the commands `rollcall up`, `serve` and `agent` decide what runs";
const DATA = "Rollcall moves no data: jobs read and write their own data";
const JOB_FILE = "set it in each job file; there are no defaults for all jobs";
const SCHEDULER = "Rollcall's scheduler has no such setting";
const NO_CERTIFICATES = "certificates come from files (TLS.CertFile) or from Up.TLS";
const ACCESS = "access is controlled by tokens (`rollcall access`) and OIDC (the OIDC keys)";
const ADMISSION =
  "the scheduler places a job on any node it fits; restrict jobs by labels, Work.Users and access roles";
const STORE = "Rollcall stores everything in Postgres, see Database.URL";
const ENGINES = "a machine runs only the executors that Work.Executors names";
const PATHS = "Rollcall mounts no host paths into jobs; Work.Directories lists where processes can run";

const LEVELS = {
  trace: "trace",
  debug: "debug",
  info: "info",
  warn: "warn",
  error: "error",
  fatal: "fatal",
  panic: "fatal",
  disabled: "silent",
};

/** Bacalhau's configuration since 1.5. A key that is neither in this list nor a key of Rollcall is an error. */
const PRESENT: readonly ForeignKey[] = [
  ...nothing("the node's id is Compute.Name, else the host's name", ["NameProvider"]),
  ...nothing("it holds Bacalhau's state; Rollcall's is in Data.Dir and Compute.StateDir", ["DataDir"]),
  ...nothing("Rollcall compares releases by capability, not by version", ["StrictVersionMatch"]),
  ...nothing("Rollcall sends no analytics", ["DisableAnalytics"]),
  ...nothing("Rollcall has no such check", ["UpdateConfig"]),
  ...nothing("Rollcall has no feature flags", ["FeatureFlags"]),
  turnsOff("WebUI.Enabled", "Console.Enabled"),
  ...nothing("the console is served at the API's address, see Listen.Host and Listen.Port", ["WebUI.Listen"]),
  ...nothing("a separate console finds the API through Console.Upstream", ["WebUI.Backend"]),
  ...protection(ENGINES, ["Engines.Disabled"]),
  ...nothing("the container engine keeps its own images", ["Engines.Types"]),
  ...nothing(DATA, ["Publishers", "InputSources", "ResultDownloaders"]),
  ...nothing(JOB_FILE, ["JobDefaults"]),
  ...protection(ADMISSION, ["JobAdmissionControl"]),
  ...nothing(SCHEDULER, ["Orchestrator.Scheduler", "Orchestrator.EvaluationBroker"]),
  ...protection(PATHS, ["Compute.AllowListedLocalPaths"]),
  ...protection("jobs get no environment variables of the machine; they can request the secrets of Work.Secrets", [
    "Compute.Env",
  ]),
  portsOf("Compute.Network.PortRangeStart", "Compute.Network.PortRangeEnd", true),
  portsOf("Compute.Network.PortRangeEnd", "Compute.Network.PortRangeStart", false),
  ...nothing("a node's address is taken from its connection; Compute.AdvertiseURL is shown as well", [
    "Compute.Network.AdvertisedAddress",
  ]),
  ...nothing(PARTS, ["Orchestrator.Enabled"]),
  turnsOff("Compute.Enabled", "Up.Agent"),
  ...nothing(NATS, [
    ...["Orchestrator.Host", "Orchestrator.Port", "Orchestrator.Advertise", "Orchestrator.NATS"],
    ...["Orchestrator.Cluster", "Orchestrator.SupportReverseProxy", "Orchestrator.TLS.ServerTimeout"],
    "Compute.NATS",
  ]),
  same("API.TLS.CertFile", "TLS.CertFile"),
  same("API.TLS.KeyFile", "TLS.KeyFile"),
  // The TLS certificate that Bacalhau's orchestrator presented to its nodes.
  same("Orchestrator.TLS.ServerCert", "TLS.CertFile"),
  same("Orchestrator.TLS.ServerKey", "TLS.KeyFile"),
  sameWith("Orchestrator.TLS.CACert", "TLS.CAFile", "TLS.CertFile"),
  same("Compute.TLS.CACert", "Compute.TLS.CAFile", "the agent trusts only the authorities of this file"),
  joinSecret("Orchestrator.Auth.Token"),
  ...nothing(TOKEN, ["Compute.Auth"]),
  ...nothing("Rollcall needs no license", ["Orchestrator.License"]),
  ...protection(ACCESS, ["API.Auth"]),
  ...nothing(CLIENT, ["API.TLS.UseTLS", "API.TLS.Insecure", "API.TLS.CAFile"]),
  ...protection(NO_CERTIFICATES, ["API.TLS.AutoCert"]),
  ...nothing(NO_CERTIFICATES, ["API.TLS.AutoCertCachePath"]),
  listenHost("API.Host"),
  turnsOn("API.TLS.SelfSigned", "Up.TLS", "TLS.CertFile"),
  serverOf("Compute.Orchestrators"),
  words("Logging.Level", "Log.Level", LEVELS),
  words("Logging.Mode", "Log.Format", { json: "json", default: "auto" }),
  ...nothing("Rollcall has no such log line", ["Logging.LogDebugInfoInterval"]),
];

/** Bacalhau's configuration before 1.5. */
const FORMER: readonly ForeignKey[] = [
  ...nothing("heartbeats go to the control plane, which publishes them to Events.HeartbeatTopic", [
    ...bacalhauNames("Compute", "HeartbeatTopic"),
  ]),
  ...nothing("the node's id is Compute.Name, else the host's name", ["Node.NameProvider"]),
  ...nothing(CLIENT, ["Node.ClientAPI", "Node.ServerAPI.ClientTLS"]),
  ...protection(NO_CERTIFICATES, ["Node.ServerAPI.TLS.AutoCert"]),
  ...nothing(NO_CERTIFICATES, ["Node.ServerAPI.TLS.AutoCertCachePath"]),
  listenHost("Node.ServerAPI.Host"),
  same("Node.ServerAPI.Port", "Listen.Port"),
  same("Node.ServerAPI.TLS.ServerCertificate", "TLS.CertFile"),
  same("Node.ServerAPI.TLS.ServerKey", "TLS.KeyFile"),
  same("Node.ServerAPI.TLS.ServerTLSKey", "TLS.KeyFile"),
  turnsOn("Node.ServerAPI.TLS.SelfSigned", "Up.TLS", "TLS.CertFile"),
  serverOf("Node.Network.Orchestrators"),
  joinSecret("Node.Network.AuthSecret"),
  ...nothing(NATS, [
    ...["Node.Network.Type", "Node.Network.Port", "Node.Network.AdvertisedAddress"],
    ...["Node.Network.StoreDir", "Node.Network.Cluster", "Node.Libp2p", "Node.BootstrapAddresses"],
  ]),
  ...nothing(PARTS, ["Node.Type"]),
  capacityOf("Node.Compute.Capacity.TotalResourceLimits"),
  ...nothing("a node never offers more than it has, unless Compute.AllocatedCapacity is above 100%", [
    "Node.Compute.Capacity.IgnorePhysicalResourceLimits",
  ]),
  ...nothing(JOB_FILE, [
    ...["Node.Compute.Capacity.DefaultJobResourceLimits", "Node.Requester.JobDefaults"],
    ...["Node.Requester.DefaultPublisher", "Node.Requester.Timeouts"],
  ]),
  ...protection("a job can request everything that Compute.AllocatedCapacity offers", [
    "Node.Compute.Capacity.JobResourceLimits",
    "Node.Compute.Capacity.QueueResourceLimits",
  ]),
  ...nothing("each job file has its own deadlines", ["Node.Compute.JobTimeouts"]),
  ...protection(ADMISSION, [
    ...["Node.Compute.JobSelection", "Node.Requester.JobSelectionPolicy", "Node.Requester.ExternalVerifierHook"],
  ]),
  ...nothing(SCHEDULER, [
    ...["Node.Compute.Queue", "Node.Requester.HousekeepingBackgroundTaskInterval"],
    ...["Node.Requester.NodeRankRandomnessRange", "Node.Requester.OverAskForBidsFactor"],
    ...["Node.Requester.FailureInjectionConfig", "Node.Requester.TranslationEnabled"],
    ...["Node.Requester.EvaluationBroker", "Node.Requester.Worker", "Node.Requester.Scheduler"],
  ]),
  ...nothing(STORE, ["Node.Compute.ExecutionStore", "Node.Requester.JobStore"]),
  ...nothing("Rollcall has no such log line", ["Node.Compute.Logging"]),
  ...nothing("logs stay on the machine and are read from there", [
    "Node.Compute.LogStream",
    "Node.Compute.LogStreamConfig",
  ]),
  ...nothing("the container engine keeps its own images", ["Node.Compute.ManifestCache", "Node.Requester.TagCache"]),
  ...nothing(DATA, [
    ...["Node.Compute.LocalPublisher", "Node.Requester.StorageProvider", "Node.IPFS", "Node.EstuaryAPIKey"],
    ...["Node.DownloadURLRequestRetries", "Node.DownloadURLRequestTimeout", "Node.VolumeSizeRequestTimeout"],
    "Node.ComputeStoragePath",
  ]),
  ...nothing("executors are built in, see Work.Executors", ["Node.ExecutorPluginPath"]),
  ...protection(PATHS, ["Node.AllowListedLocalPaths"]),
  ...protection(ENGINES, ["Node.DisabledFeatures"]),
  ...nothing("nodes are kept until they are deleted, see Orchestrator.NodeManager.CollectAfter", [
    ...["Node.NodeInfoStoreTTL", "Node.Requester.NodeInfoStoreTTL", "Node.Compute.NodeInfoStoreTTL"],
  ]),
  words("Node.LoggingMode", "Log.Format", { json: "json", default: "auto" }),
  turnsOff("Node.WebUI.Enabled", "Console.Enabled"),
  ...nothing("the console is served at the API's address, see Listen.Host and Listen.Port", ["Node.WebUI.Port"]),
  ...nothing("Rollcall compares releases by capability, not by version", ["Node.StrictVersionMatch"]),
  ...nothing("Rollcall has no such check", ["Update", "Node.UpdateConfig", "Node.SkipChecks"]),
  ...nothing("callers are identified by access tokens or OIDC, nodes by keys that their agents create", [
    ...["Node.ClientID", "User"],
  ]),
  ...protection(ACCESS, ["Auth"]),
  ...nothing("metrics are served at /metrics on the probe port", ["Metrics"]),
];

/** All Bacalhau keys that are not aliases of Rollcall's keys. */
export const BACALHAU_KEYS: readonly ForeignKey[] = [...PRESENT, ...FORMER];
