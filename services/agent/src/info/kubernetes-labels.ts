import { isLabelKey, isLabelValue, MAX_AGENT_LABELS, matchesGlob, RESERVED_LABEL_PREFIX } from "@rollcall/domain";
import { fetchJson } from "@rollcall/identity/oidc";
import type { Clock, Logger, Task } from "@rollcall/process";

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

/** How many times to ask before the agent starts without these labels. */
const FIRST_ATTEMPTS = 5;
const LEAST_PAUSE_MS = 2_000;
const MOST_PAUSE_MS = 60_000;
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
 * The labels of a Kubernetes node that match, added to the node's own, without those that are no labels here. An API
 * server that does not answer is asked until it does; meanwhile the machine is watched without its labels.
 */
export class KubernetesLabels {
  /** Asks until the labels are known. */
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

  /** Only the configured labels until those of the Kubernetes node are known. */
  get labels(): Labels {
    return this.#labels;
  }

  /** Ask a few times. Resolves when the labels are known, or are left to the task. */
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
      if (this.#failures > 0) log.info({ kubernetes_node: node }, "labels of the kubernetes node are read");
    } catch (err) {
      this.#failures += 1;
      const attempt = this.#failures;
      log.warn({ err, kubernetes_node: node, attempt }, "labels of the kubernetes node cannot be read, trying again");
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
