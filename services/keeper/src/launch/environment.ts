/** What of an execution its environment tells. */
export interface EnvironmentFacts {
  readonly id: string;
  readonly job: string;
  readonly nodeId: string;
  readonly index: number;
  /** Ports by label. */
  readonly ports: Readonly<Record<string, number>>;
  readonly gpuUuids: readonly string[];
  /** What the job may replace. */
  readonly defaults: Readonly<Record<string, string>>;
  /** What the job sets. */
  readonly env: Readonly<Record<string, string>>;
  /** What the job asked for and the machine's operator keeps. */
  readonly secrets: Readonly<Record<string, string>>;
}

/** Where the programs of processes are searched for. */
export const SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const REFERENCE = /\$\$(?=[A-Za-z_{])|\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))/g;

/**
 * Make the environment of an execution: nothing of the keeper's own is passed on. A job may replace PATH and HOME, and
 * nothing that tells it where it runs.
 */
export function makeEnvironment(facts: EnvironmentFacts): Readonly<Record<string, string>> {
  const ports = Object.entries(facts.ports).map(([label, port]) => [`PORT_${label.toUpperCase()}`, String(port)]);
  return {
    ...facts.defaults,
    ...facts.env,
    ...facts.secrets,
    ROLLCALL_JOB: facts.job,
    ROLLCALL_EXECUTION: facts.id,
    ROLLCALL_INDEX: String(facts.index),
    ROLLCALL_NODE: facts.nodeId,
    // Without any it is empty, so that no GPU is seen.
    CUDA_VISIBLE_DEVICES: facts.gpuUuids.join(","),
    ...Object.fromEntries(ports),
  };
}

/** Names of an environment that no shell can hold. */
export function wrongNames(env: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) => (NAME.test(name) && !value.includes("\0") ? [] : [name]));
}

/**
 * Replace $NAME and ${NAME} by what the environment has. Other names stay as they are, for a shell to see, and so does
 * what follows `$$`, of which one is left.
 */
export function expand(word: string, env: Readonly<Record<string, string>>): string {
  return word.replace(REFERENCE, (found, braced: string | undefined, bare: string | undefined) => {
    const name = braced ?? bare;
    if (name === undefined) return "$";
    return Object.hasOwn(env, name) ? (env[name] ?? "") : found;
  });
}
