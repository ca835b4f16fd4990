import { isLabelKey, isLabelValue, MAX_AGENT_LABELS, matchesGlob, RESERVED_LABEL_PREFIX } from "@rollcall/domain";
import { fetchJson } from "@rollcall/identity/oidc";
import type { Clock, Logger } from "@rollcall/process";

type Labels = Readonly<Record<string, string>>;

/** Which labels of which Kubernetes node an agent takes, and how it asks for them. */
export interface KubernetesLabelsOptions {
  readonly node: string;
  /** Globs of keys; none takes none. */
  readonly keys: readonly string[];
  /** Labels that the node has besides, which win. */
  readonly own: Labels;
  /** The API server, as a pod's environment names it. */
  readonly server: URL;
  readonly tokenFile: string;
  readonly caFile: string;
  readonly clock: Pick<Clock, "sleep">;
  readonly log: Logger;
}

const ATTEMPTS = 5;
const PAUSE_MS = 2_000;
const TIMEOUT_MS = 3_000;
const NEVER = new AbortController().signal;
const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Where a pod finds its API server and what it needs to ask it; null outside of a cluster. */
export function kubernetesAccess(
  env: Readonly<Record<string, string | undefined>>,
): Pick<KubernetesLabelsOptions, "server" | "tokenFile" | "caFile"> | null {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  if (!host) return null;
  const server = new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`);
  return { server, tokenFile: `${ACCOUNT}/token`, caFile: `${ACCOUNT}/ca.crt` };
}

/**
 * Add the labels of a Kubernetes node that match to the node's own, without those that are no labels here. An API
 * server that does not answer is asked again a few times, and then done without: the machine is to be watched anyway.
 */
export async function readKubernetesLabels(options: KubernetesLabelsOptions): Promise<Labels> {
  const { node, clock, log } = options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return matching(await fetchLabels(options), options);
    } catch (err) {
      log.warn({ err, kubernetes_node: node, attempt }, "labels of the kubernetes node cannot be read");
      if (attempt === ATTEMPTS) return options.own;
      await clock.sleep(PAUSE_MS, NEVER);
    }
  }
}

async function fetchLabels({ server, node, tokenFile, caFile }: KubernetesLabelsOptions): Promise<Labels> {
  const url = new URL(`/api/v1/nodes/${encodeURIComponent(node)}`, server);
  const answer = Object(await fetchJson(url, { caFile, tokenFile, timeoutMs: TIMEOUT_MS }));
  const labels: unknown = Object(answer.metadata).labels;
  if (answer.kind !== "Node" || typeof labels !== "object" || labels === null) {
    throw new Error(`${url.href} answers no node`);
  }
  return Object.fromEntries(Object.entries(labels).filter((pair) => typeof pair[1] === "string"));
}

function matching(labels: Labels, { keys, own, log }: KubernetesLabelsOptions): Labels {
  const wanted = Object.entries(labels)
    .filter(([key]) => !Object.hasOwn(own, key) && keys.some((glob) => matchesGlob(glob, key)))
    .sort(([left], [right]) => (left < right ? -1 : 1));
  const isOurs = ([key, value]: readonly [string, string]) =>
    isLabelKey(key) && isLabelValue(value) && !key.startsWith(RESERVED_LABEL_PREFIX);
  const taken = wanted.filter(isOurs).slice(0, MAX_AGENT_LABELS - Object.keys(own).length);
  const left = wanted.length - taken.length;
  if (left > 0) log.warn({ left_out: left, taken: taken.length }, "labels of the kubernetes node were left out");
  return { ...Object.fromEntries(taken), ...own };
}
