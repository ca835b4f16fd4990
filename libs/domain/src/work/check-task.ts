import type { DraftCheck, DraftTask, JobDraft } from "./job-draft.ts";

/** A problem with a field of a job. */
export interface JobViolation {
  /** The field's path in the API, for example "resources.ports[1].label"; "" for the whole job. */
  readonly field: string;
  readonly message: string;
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/;
const SECRET_FILE = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const USER = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/;
const CONTAINER_USER = /^[A-Za-z0-9_][A-Za-z0-9._:-]{0,63}$/;
const IMAGE = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,1023}$/;
const SIGNALS = ["SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGKILL", "SIGWINCH"];
const HOUR_MS = 3_600_000;
const SECOND_MS = 1_000;
const MOST_FILE_BYTES = 2 ** 30;
const MOST_FILES = 20;

/** Check a job's task and its readiness check. */
export function checkTask({ task, check, resources }: JobDraft): readonly JobViolation[] {
  const labels = resources.ports.map(({ label }) => label);
  if (task === null) {
    const missing = { field: "task", message: "process or docker is required" };
    return [missing, ...checkCheck(check, labels)];
  }
  const own = task.kind === "process" ? checkProcess(task) : checkContainer(task);
  return [...own, ...checkShared(task, labels), ...checkCheck(check, labels)];
}

function checkProcess(task: DraftTask & { kind: "process" }): readonly JobViolation[] {
  const found: JobViolation[] = [];
  if (task.command.length === 0) found.push({ field: "process.command", message: "is required" });
  if (task.command[0] === "") found.push({ field: "process.command[0]", message: "must not be empty" });
  const { directory, user } = task;
  if (directory !== "" && !isPlainPath(directory)) {
    const message = 'must be an absolute path without "." and ".."';
    found.push({ field: "process.directory", message });
  }
  if (user !== "" && !USER.test(user)) {
    const message = "must be 1-64 characters of [A-Za-z0-9._-], starting with a letter, a digit or _";
    found.push({ field: "process.user", message });
  }
  return found;
}

function checkContainer(task: DraftTask & { kind: "docker" }): readonly JobViolation[] {
  const found: JobViolation[] = [];
  if (!IMAGE.test(task.image)) {
    const message = task.image === "" ? "is required" : "is not an image name";
    found.push({ field: "docker.image", message });
  }
  if (task.user !== "" && !CONTAINER_USER.test(task.user)) {
    found.push({
      field: "docker.user",
      message: "must be a user or user:group, by name or id, such as 1000 or app:app",
    });
  }
  return found;
}

function checkShared(task: DraftTask, portLabels: readonly string[]): readonly JobViolation[] {
  const found: JobViolation[] = [];
  task.command.forEach((word, place) => {
    if (!word.includes("\0")) return;
    found.push({ field: `${task.kind}.command[${place}]`, message: "must not contain a NUL" });
  });
  const portVariables = portLabels.map((label) => `PORT_${label.toUpperCase()}`);
  const names = (field: string, variables: Readonly<Record<string, string>>) => {
    for (const [name, value] of Object.entries(variables)) {
      const path = `${task.kind}.${field}["${name}"]`;
      const message = variableFlaw(name, value, portVariables);
      if (message !== null) found.push({ field: path, message });
    }
  };
  names("env", task.env);
  names("secret_env", task.secretEnv);
  for (const [name, file] of Object.entries(task.secretEnv)) {
    const path = `${task.kind}.secret_env["${name}"]`;
    if (!SECRET_FILE.test(file))
      found.push({ field: path, message: "is not the name of a file in the secrets directory" });
    if (Object.hasOwn(task.env, name)) found.push({ field: path, message: "is also in env" });
  }
  return [...found, ...checkStop(task)];
}

function checkStop({ kind, stop, output }: DraftTask): readonly JobViolation[] {
  const found: JobViolation[] = [];
  if (stop.signal !== "" && !SIGNALS.includes(stop.signal)) {
    found.push({ field: `${kind}.stop.signal`, message: `must be one of ${SIGNALS.join(", ")}` });
  }
  if (stop.graceMs !== null && (stop.graceMs < 0 || stop.graceMs > HOUR_MS)) {
    found.push({ field: `${kind}.stop.grace`, message: "must be from 0 s to 3600 s" });
  }
  if (output.maxFileBytes > MOST_FILE_BYTES) {
    found.push({ field: `${kind}.output.max_file_bytes`, message: `must be at most ${MOST_FILE_BYTES}` });
  }
  if (output.maxFiles > MOST_FILES) {
    found.push({ field: `${kind}.output.max_files`, message: `must be at most ${MOST_FILES}` });
  }
  return found;
}

function checkCheck(check: DraftCheck | null, labels: readonly string[]): readonly JobViolation[] {
  if (check === null) return [];
  const found: JobViolation[] = [];
  const { probe, intervalMs, timeoutMs, failures } = check;
  switch (probe?.kind) {
    case undefined:
      found.push({ field: "check", message: "tcp, http or command is required" });
      break;
    case "command":
      if (probe.command.length === 0) found.push({ field: "check.command.command", message: "is required" });
      break;
    case "http":
      if (probe.path !== "" && !/^\/[\x21-\x7e]*$/.test(probe.path)) {
        found.push({ field: "check.http.path", message: 'must start with "/" and have no spaces' });
      }
  }
  if ((probe?.kind === "tcp" || probe?.kind === "http") && !labels.includes(probe.port)) {
    const message = `"${probe.port}" is not a label in resources.ports`;
    found.push({ field: `check.${probe.kind}.port`, message });
  }
  if (intervalMs !== null && (intervalMs < SECOND_MS || intervalMs > HOUR_MS)) {
    found.push({ field: "check.interval", message: "must be from 1 s to 3600 s" });
  }
  if (timeoutMs !== null && (timeoutMs < 1 || timeoutMs > HOUR_MS)) {
    found.push({ field: "check.timeout", message: "must be more than 0 s and at most 3600 s" });
  }
  if (failures > 1_000) found.push({ field: "check.failures", message: "must be at most 1000" });
  return found;
}

function variableFlaw(name: string, value: string, portVariables: readonly string[]): string | null {
  if (!VARIABLE.test(name)) return "is not a variable name";
  if (name.startsWith("ROLLCALL_")) return "is set by the agent";
  if (portVariables.includes(name)) return "is set by the agent to the port of resources.ports";
  return value.includes("\0") ? "must not contain a NUL" : null;
}

function isPlainPath(path: string): boolean {
  if (!path.startsWith("/") || path.includes("\0")) return false;
  return !path.split("/").some((part) => part === "." || part === "..");
}
