/** The facts that determine the environment of an execution. */
export interface EnvironmentFacts {
  readonly id: string;
  readonly job: string;
  readonly nodeId: string;
  readonly index: number;
  /** Ports, keyed by label. */
  readonly ports: Readonly<Record<string, number>>;
  readonly gpuUuids: readonly string[];
  /** Variables that the job can replace. */
  readonly defaults: Readonly<Record<string, string>>;
  /** Variables that the job sets. */
  readonly env: Readonly<Record<string, string>>;
  /** Secrets that the job requests and the machine's operator provides. */
  readonly secrets: Readonly<Record<string, string>>;
}

/** Where to search for programs. */
export const SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const REFERENCE = /\$\$(?=[A-Za-z_{])|\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))/g;

/**
 * Build the environment of an execution. Nothing of the keeper's environment is passed on. A job can replace PATH and
 * HOME, but none of the variables that describe where it runs.
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
    // Leave the variable empty for an execution without GPUs, so that it sees none.
    CUDA_VISIBLE_DEVICES: facts.gpuUuids.join(","),
    ...Object.fromEntries(ports),
  };
}

/** Names of variables that a shell cannot hold. */
export function wrongNames(env: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) => (NAME.test(name) && !value.includes("\0") ? [] : [name]));
}

/**
 * Replace $NAME and ${NAME} with their values. Unknown names stay for a shell to replace. `$$NAME` becomes `$NAME` and
 * is not replaced.
 */
export function expand(word: string, env: Readonly<Record<string, string>>): string {
  return word.replace(REFERENCE, (found, braced: string | undefined, bare: string | undefined) => {
    const name = braced ?? bare;
    if (name === undefined) return "$";
    return Object.hasOwn(env, name) ? (env[name] ?? "") : found;
  });
}
