import { isLabelKey, isLabelValue, MAX_AGENT_LABELS, matchesGlob, RESERVED_LABEL_PREFIX } from "@rollcall/domain";
import { fetchJson } from "@rollcall/identity/oidc";
import type { Clock, Logger, Task } from "@rollcall/process";

type Labels = Readonly<Record<string, string>>;

export interface KubernetesLabelsOptions {
  readonly node: string;
  /** Globs for the keys of labels to copy. If empty, no label is copied. */
  readonly keys: readonly string[];
  /** The node's own labels, which take precedence. */
  readonly own: Labels;
  /** The API server's address, from a pod's environment. */
  readonly server: URL;
  readonly tokenFile: string;
  readonly caFile: string;
  readonly clock: Pick<Clock, "sleep">;
  readonly log: Logger;
}

/** Number of attempts before the agent starts without these labels. */
const FIRST_ATTEMPTS = 5;
const LEAST_PAUSE_MS = 2_000;
const MOST_PAUSE_MS = 60_000;
const TIMEOUT_MS = 3_000;
const NEVER = new AbortController().signal;
const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** The address of a pod's API server and the credentials for it; null outside a cluster. */
export function kubernetesAccess(
  env: Readonly<Record<string, string | undefined>>,
): Pick<KubernetesLabelsOptions, "server" | "tokenFile" | "caFile"> | null {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  if (!host) return null;
  const server = new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`);
  return { server, tokenFile: `${ACCOUNT}/token`, caFile: `${ACCOUNT}/ca.crt` };
}

/**
 * The node's own labels, plus those labels of its Kubernetes node that match and are valid in Rollcall. If the API
 * server does not respond, the node has only its own labels until a retry succeeds.
 */
export class KubernetesLabels {
  /** Retries until the labels are known. */
  readonly task: Task;
  readonly #options: KubernetesLabelsOptions;
  #labels: Labels;
  #isRead = false;
  #failures = 0;

  constructor(options: KubernetesLabelsOptions) {
    this.#options = options;
    this.#labels = options.own;
    this.task = {
      name: "kubernetes-labels",
      run: async (signal) => {
        while (!this.#isRead && !signal.aborted) await this.#attempt(signal);
      },
    };
  }

  /** The labels to report: only the configured ones until the labels of the Kubernetes node are known. */
  get labels(): Labels {
    return this.#labels;
  }

  /**
   * Make the first attempts. Resolves when the labels are known, or when all these attempts have failed and the
   * task takes over.
   */
  async begin(): Promise<void> {
    while (!this.#isRead && this.#failures < FIRST_ATTEMPTS) await this.#attempt(NEVER);
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    const { node, clock, log } = this.#options;
    if (this.#failures > 0) await clock.sleep(pauseMs(this.#failures), signal);
    if (signal.aborted) return;
    try {
      this.#labels = matching(await fetchLabels(this.#options), this.#options);
      this.#isRead = true;
      if (this.#failures > 0) log.info({ kubernetes_node: node }, "labels of the kubernetes node were read");
    } catch (err) {
      this.#failures += 1;
      const attempt = this.#failures;
      log.warn({ err, kubernetes_node: node, attempt }, "labels of the kubernetes node cannot be read, retrying");
    }
  }
}

function pauseMs(failures: number): number {
  const doublings = Math.min(10, Math.max(0, failures - FIRST_ATTEMPTS));
  return Math.min(MOST_PAUSE_MS, LEAST_PAUSE_MS * 2 ** doublings);
}

async function fetchLabels({ server, node, tokenFile, caFile }: KubernetesLabelsOptions): Promise<Labels> {
  const url = new URL(`/api/v1/nodes/${encodeURIComponent(node)}`, server);
  const answer = Object(await fetchJson(url, { caFile, tokenFile, timeoutMs: TIMEOUT_MS }));
  const labels: unknown = Object(answer.metadata).labels;
  if (answer.kind !== "Node" || typeof labels !== "object" || labels === null) {
    throw new Error(`${url.href} did not return a node`);
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
