/** What a command accepts. */
export interface CommandOptions {
  /** The command as people type it, with its arguments: "rollcall node why <node>". */
  readonly usage: string;
  /** The long names of its options, without "--". */
  readonly options: readonly string[];
}

/** Options that mean the same. People who know one of another program often guess another. */
const SAME: readonly (readonly string[])[] = [
  ["name", "node-id", "node-name", "id", "node", "hostname", "host-name", "job", "job-id", "job-name"],
  ["server", "orchestrators", "address", "addr", "endpoint", "host", "url", "join", "control-plane", "servers"],
  ["token", "token-file", "auth-token", "auth-key", "authkey", "api-key", "password"],
  ["join-token", "join-token-file", "token", "token-file", "auth-key", "authkey", "secret"],
  ["label", "labels", "selector", "tag", "tags", "filter", "constraint", "node-selector"],
  ["labels", "selector", "label", "tags", "tag", "filter", "label-selector"],
  ["state-dir", "data-dir", "data", "directory", "dir", "home", "storage"],
  ["follow", "watch", "stream", "monitor"],
  ["tail", "last", "lines", "limit", "head", "max"],
  ["message", "reason", "comment", "note", "description"],
  ["yes", "force", "auto-approve", "assume-yes", "non-interactive", "no-prompt", "confirm"],
  ["output", "format", "json", "yaml", "csv"],
  ["detach", "background", "no-wait", "async"],
  ["deadline", "timeout", "grace-period", "grace", "drain-timeout"],
  ["timeout", "deadline", "max-wait"],
  ["dry-run", "validate-only", "validate", "plan", "check", "check-only", "preview"],
  ["all", "all-nodes", "everything", "include-all", "show-all"],
  ["states", "state", "status", "filter-status", "phase"],
  ["filter-status", "status", "state", "health", "states"],
  ["file", "filename", "path", "job-file"],
  ["count", "replicas", "instances", "number", "scale", "uses"],
  ["order-by", "sort-by", "sort", "order"],
  ["since", "from", "after", "start"],
  ["until", "to", "before", "end"],
  ["log-level", "verbose", "debug", "loglevel"],
  ["executors", "executor", "driver", "drivers", "runtime"],
  ["ca-file", "ca", "cacert", "ca-cert", "tls-ca", "certificate-authority"],
  ["client-cert", "cert", "tls-cert", "client-certificate"],
  ["client-key", "tls-key", "key-file"],
  ["port", "http-port", "bind-port"],
  ["listen", "bind", "bind-address", "bind-addr", "addr", "address"],
  ["cores", "cpu", "cpus"],
  ["memory", "mem", "ram"],
  ["gpus", "gpu"],
  ["env", "environment", "e"],
  ["ttl", "expires", "expiry", "expiration", "duration"],
  ["config", "config-file", "configuration", "conf"],
];

/** The options that name an object. Most commands take the name as an argument instead. */
const NAMES: ReadonlySet<string> = new Set(SAME[0]);

/** An argument that names an object. */
const NAME_ARGUMENT = /[<[](?:node|job|name|id|token|webhook|context|execution|group|subject)/;

const NO_QUESTION = "it asks nothing, so nothing has to be confirmed: leave the option out";
const NO_NAMESPACES = "Rollcall has no namespaces; `--context NAME` chooses a control plane, and labels choose nodes";

/** Options without a counterpart, with what to do instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["n", "namespace", "all-namespaces", "region", "datacenter", "cluster"].map((it) => [it, NO_NAMESPACES]),
  ),
  ...Object.fromEntries(
    ["yes", "force", "auto-approve", "assume-yes", "non-interactive"].map((it) => [it, NO_QUESTION]),
  ),
  wait: "commands that take time wait until they are done, unless `--detach` is given",
  verbose: "`-o wide` or `-o json` shows more; `rollcall node why NODE` and `rollcall job why JOB` explain a state",
  "no-color": "NO_COLOR=1 in the environment disables colours",
  kubeconfig: "`--context NAME` chooses a control plane; `rollcall context list` shows all",
  insecure: "`--ca-file FILE` names the authority to trust; there is no option that trusts every server",
  "tls-skip-verify": "`--ca-file FILE` names the authority to trust; there is no option that trusts every server",
};

/**
 * What to use instead of an option that a command does not have, by its meaning; null if unknown. A command's own
 * option comes first, then its argument.
 */
export function optionHint(unknown: string, { usage, options }: CommandOptions): string | null {
  const name = unknown.replace(/^-+/, "").replace(/=.*$/, "").toLowerCase();
  const offered = new Set(options);
  const same = SAME.filter((names) => names.includes(name))
    // --force does more than answer a question, so no hint advises it.
    .map((names) => names.find((one) => one !== "force" && offered.has(one)))
    .find((one) => one !== undefined);
  if (same !== undefined) return `use \`--${same}\``;
  if (NAMES.has(name) && NAME_ARGUMENT.test(usage)) return `give the name without an option: \`${usage}\``;
  const [, argument] = SAME.filter((names) => names.includes(name))
    .flatMap((names) => names.map((one) => [`<${one}>`, one] as const))
    .find(([written]) => usage.includes(written)) ?? [null, null];
  if (argument !== null) return `give the ${argument} without an option: \`${usage}\``;
  return Object.hasOwn(INSTEAD, name) ? (INSTEAD[name] ?? null) : null;
}
