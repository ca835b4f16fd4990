import { bacalhauNames, type ForeignKey } from "@rollcall/config";
import { listenHost, nothing, same, serverOf, turnsOn, words } from "./meanings.ts";

const JOBS = "it is about running jobs";
const NATS = "it is about NATS between Bacalhau's nodes; agents hold one gRPC stream each";
const CLIENT = "it is about clients: `rollcall context` and --server say where the control plane is";
const TOKEN = "it is no join token; `rollcall token create` makes one for Compute.JoinToken";
const PARTS = "`rollcall up`, `serve` and `agent` say what runs";

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

/** Bacalhau's configuration from 1.5 on. What is not here and not a key of ours is an error. */
const PRESENT: readonly ForeignKey[] = [
  ...nothing("the node's id is Compute.Name, else the host's name", ["NameProvider"]),
  ...nothing("Bacalhau's own state is there; ours is Data.Dir and Compute.StateDir", ["DataDir"]),
  ...nothing("versions are compared by what they can do", ["StrictVersionMatch"]),
  ...nothing("nothing is sent anywhere", ["DisableAnalytics"]),
  ...nothing("there is no such check", ["UpdateConfig"]),
  ...nothing("there are no such switches", ["FeatureFlags"]),
  ...nothing("there is no user interface in the browser", ["WebUI"]),
  ...nothing(JOBS, [
    ...["Engines", "Publishers", "InputSources", "ResultDownloaders"],
    ...["JobDefaults", "JobAdmissionControl", "Orchestrator.Scheduler"],
    ...["Orchestrator.EvaluationBroker", "Compute.AllocatedCapacity"],
    ...["Compute.AllowListedLocalPaths", "Compute.Env", "Compute.Network"],
  ]),
  ...nothing(PARTS, ["Orchestrator.Enabled", "Compute.Enabled"]),
  ...nothing(NATS, [
    ...["Orchestrator.Host", "Orchestrator.Port", "Orchestrator.Advertise", "Orchestrator.NATS"],
    ...["Orchestrator.Cluster", "Orchestrator.TLS", "Orchestrator.SupportReverseProxy"],
    ...["Compute.NATS", "Compute.TLS.RequireTLS", "Compute.TLS.CACert"],
  ]),
  ...nothing(TOKEN, ["Orchestrator.Auth", "Compute.Auth"]),
  ...nothing("there is no licence", ["Orchestrator.License"]),
  ...nothing("access is by tokens (`rollcall access`) and OIDC", ["API.Auth"]),
  ...nothing(CLIENT, ["API.TLS.UseTLS", "API.TLS.Insecure", "API.TLS.CAFile"]),
  ...nothing("certificates come from files or from Up.TLS", ["API.TLS.AutoCert", "API.TLS.AutoCertCachePath"]),
  listenHost("API.Host"),
  same("API.TLS.CertFile", "TLS.CertFile"),
  same("API.TLS.KeyFile", "TLS.KeyFile"),
  turnsOn("API.TLS.SelfSigned", "Up.TLS"),
  serverOf("Compute.Orchestrators"),
  words("Logging.Level", "Log.Level", LEVELS),
  words("Logging.Mode", "Log.Format", { json: "json", default: "auto" }),
  ...nothing("there is no such log line", ["Logging.LogDebugInfoInterval"]),
];

/** The tree before 1.5. */
const FORMER: readonly ForeignKey[] = [
  ...nothing("heartbeats go to the control plane, which publishes them to Events.HeartbeatTopic", [
    ...bacalhauNames("Compute", "HeartbeatTopic"),
  ]),
  ...nothing("the node's id is Compute.Name, else the host's name", ["Node.NameProvider"]),
  ...nothing(CLIENT, ["Node.ClientAPI", "Node.ServerAPI.ClientTLS"]),
  ...nothing("certificates come from files or from Up.TLS", [
    "Node.ServerAPI.TLS.AutoCert",
    "Node.ServerAPI.TLS.AutoCertCachePath",
  ]),
  listenHost("Node.ServerAPI.Host"),
  same("Node.ServerAPI.Port", "Listen.Port"),
  same("Node.ServerAPI.TLS.ServerCertificate", "TLS.CertFile"),
  same("Node.ServerAPI.TLS.ServerKey", "TLS.KeyFile"),
  turnsOn("Node.ServerAPI.TLS.SelfSigned", "Up.TLS"),
  serverOf("Node.Network.Orchestrators"),
  ...nothing(TOKEN, ["Node.Network.AuthSecret"]),
  ...nothing(NATS, [
    ...["Node.Network.Type", "Node.Network.Port", "Node.Network.AdvertisedAddress"],
    ...["Node.Network.StoreDir", "Node.Network.Cluster", "Node.Libp2p", "Node.BootstrapAddresses"],
  ]),
  ...nothing(PARTS, ["Node.Type"]),
  ...nothing(JOBS, [
    ...["Node.Compute.Capacity", "Node.Compute.ExecutionStore", "Node.Compute.JobTimeouts"],
    ...["Node.Compute.JobSelection", "Node.Compute.Queue", "Node.Compute.Logging"],
    ...["Node.Compute.ManifestCache", "Node.Compute.LogStream", "Node.Compute.LogStreamConfig"],
    ...["Node.Compute.LocalPublisher", "Node.Requester.JobDefaults"],
    ...["Node.Requester.ExternalVerifierHook", "Node.Requester.JobSelectionPolicy"],
    ...["Node.Requester.JobStore", "Node.Requester.HousekeepingBackgroundTaskInterval"],
    ...["Node.Requester.NodeRankRandomnessRange", "Node.Requester.OverAskForBidsFactor"],
    ...["Node.Requester.FailureInjectionConfig", "Node.Requester.TranslationEnabled"],
    ...["Node.Requester.EvaluationBroker", "Node.Requester.Worker", "Node.Requester.Scheduler"],
    ...["Node.Requester.StorageProvider", "Node.Requester.TagCache"],
    ...["Node.Requester.DefaultPublisher", "Node.Requester.Timeouts", "Node.IPFS"],
    ...["Node.DownloadURLRequestRetries", "Node.DownloadURLRequestTimeout"],
    ...["Node.VolumeSizeRequestTimeout", "Node.ExecutorPluginPath", "Node.ComputeStoragePath"],
    ...["Node.AllowListedLocalPaths", "Node.DisabledFeatures", "Node.Compute.NodeInfoStoreTTL"],
  ]),
  ...nothing("nodes are kept until they are deleted, see Orchestrator.NodeManager.CollectAfter", [
    "Node.NodeInfoStoreTTL",
    "Node.Requester.NodeInfoStoreTTL",
  ]),
  words("Node.LoggingMode", "Log.Format", { json: "json", default: "auto" }),
  ...nothing("there is no user interface in the browser", ["Node.WebUI"]),
  ...nothing("versions are compared by what they can do", ["Node.StrictVersionMatch"]),
  ...nothing("there is no such check", ["Update", "Node.UpdateConfig", "Node.SkipChecks"]),
  ...nothing("keys of nodes are made by their agents, tokens of people by `rollcall access`", ["User", "Auth"]),
  ...nothing("metrics are at /metrics of the probes' port", ["Metrics"]),
];

/** Every key of Bacalhau that is not an alias of ours. */
export const BACALHAU_KEYS: readonly ForeignKey[] = [...PRESENT, ...FORMER];
