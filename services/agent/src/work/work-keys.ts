import { bool, type ConfigValues, defineKeys, list, oneOf, optional, stringMap, text } from "@rollcall/config";
import { isSecretGrant, type NodeSecret } from "@rollcall/domain";
import { type PortRange, parseAllocated } from "./work-capacity.ts";

const MOST_PORT = 65_535;

/** What agent and keeper of a machine are told about work. */
export const workKeys = defineKeys({
  "Work.Executors": {
    schema: list(oneOf(["process", "docker"])),
    default: [],
    flag: "executors",
    doc:
      "The executors that this machine offers: process, docker or both; none by default: a machine runs nothing for " +
      "others unless its operator says so here. `rollcall up` turns process on for its own agent.",
  },
  "Work.User": {
    schema: optional(text({ maxLength: 64 })),
    default: undefined,
    flag: "work-user",
    doc:
      "The user that executions run as when their job names none: they form one trust domain, in which each can " +
      "read what others write, hold in memory and have in their environment. Default: each execution has a user id " +
      "of its own, see Work.UserIds, where the keeper runs as root; else nothing is run. The user can be neither " +
      "root nor the agent's own user, who could read the node's key, nor in a group whose members can become root, " +
      "such as docker.",
  },
  "Work.Users": {
    schema: list(text({ maxLength: 64 })),
    default: [],
    doc:
      "Users that a job may name. Executions of one user form one trust domain. None of them is root, the agent's " +
      "own user, or in a group whose members can become root: docker, disk, lxd, sudo, wheel, root, kvm, shadow and " +
      "others.",
  },
  "Work.UserIds": {
    schema: text({ pattern: /^(none|\d{1,10}-\d{1,10})$/, expects: "a range such as 56000-59999, or none" }),
    default: "56000-59999",
    doc:
      "The user ids of executions whose job names no user, each for one execution, where the keeper runs as root and " +
      "Work.User is not set; none for no such ids. They have no accounts; ids that an account or a group of the " +
      "machine has are left out. An id is given again when no process and no file has it any more. Keepers that " +
      "share a kernel and not /var/lib need ranges of their own.",
  },
  "Work.Directories": {
    schema: list(text()),
    default: [],
    doc:
      "Directories in or below which a job may run; links are followed before they are compared. Without any, each " +
      "execution runs in a directory of its own.",
  },
  "Work.KeeperDir": {
    schema: optional(text()),
    default: undefined,
    flag: "keeper-dir",
    doc:
      "The directory of a keeper that is a service of its own, with another user than the agent's, as " +
      "rollcall-keeper.service is: records, output and directories of executions are there, and the socket that only " +
      "the agent's user can open. Default: the agent starts its keeper itself, as its own user.",
  },
  "Work.Secrets": {
    schema: optional(text()),
    default: undefined,
    doc:
      "The directory of secrets: each file is a value that jobs can ask for as a variable, by the file's name. " +
      "They belong to root or to the keeper's user (with Work.KeeperDir that is root), are no links, and only that " +
      "user should be able to read them. Which jobs can use which secret is in Work.SecretGrants: by default none.",
  },
  "Work.SecretGrants": {
    schema: stringMap(),
    default: {},
    doc:
      "Who can use each secret of Work.Secrets, by the secret's name: OWNER/JOB, or several of them with spaces in " +
      "between. OWNER submitted the job's newest version, as events name the caller: token:<id> or user:<subject>; " +
      "JOB is the job's name. Either can end in * for any continuation. For example password=token:ci/web " +
      "token:ops/backup-*. A secret that is not named here can be used by no job. The control plane places a job " +
      "only where it can use all of its secrets, and the keeper compares again when it starts an execution. At most " +
      "64 secrets, 64 grants each, and 16384 characters in all.",
  },
  "Work.Ports": {
    schema: text({ pattern: /^(none|\d{1,5}-\d{1,5})$/, expects: "a range such as 20000-32000, or none" }),
    default: "20000-32000",
    doc: "The ports that executions may be given when their job leaves the choice to the scheduler; none for no port.",
  },
  "Work.Docker.Host": {
    // DOCKER_HOST may name an engine elsewhere, for other programs: an agent without the executor does not mind.
    schema: optional(text()),
    default: undefined,
    flag: "docker-host",
    env: ["DOCKER_HOST"],
    doc:
      "The socket of this machine's container engine, docker or podman. Without it, /var/run/docker.sock is used, or " +
      "podman's /run/podman/podman.sock. While the engine does not answer, the machine does not offer docker.",
  },
  "Work.SameUser": {
    schema: bool(),
    default: false,
    flag: "work-same-user",
    doc:
      "For development alone: run executions as the agent's own user. They can read the node's key, and act as the " +
      "node. An agent that is not root runs nothing without this.",
  },
  "Compute.AllocatedCapacity": {
    schema: stringMap(),
    default: {},
    doc:
      "How much of the machine executions are given, by resource: a percentage, or an amount in cores (2, 0.5, 500m) " +
      "or bytes (4GB, 4GiB, 4Gi), for example cpu=80%,memory=4GiB,disk=50%; 100% where nothing is set. More than " +
      "100% promises it several times; an amount is never more than the machine has. All GPUs are offered.",
  },
});

/** Their values. */
export type WorkConfig = ConfigValues<typeof workKeys>;

/** What is wrong with values that are each of their type. */
export function checkWorkConfig(
  values: WorkConfig,
): readonly { readonly path: keyof WorkConfig & string; readonly message: string }[] {
  const allocated = parseAllocated(values["Compute.AllocatedCapacity"]);
  const userIds = parseUserIds(values["Work.UserIds"]);
  const relative = values["Work.Directories"].filter((path) => !path.startsWith("/"));
  const keeperDirectory = values["Work.KeeperDir"] ?? "/";
  return [
    ...(allocated.ok ? [] : [{ path: "Compute.AllocatedCapacity" as const, message: allocated.problem }]),
    ...(parsePorts(values["Work.Ports"]) === null
      ? [{ path: "Work.Ports" as const, message: `is no range within 1 to ${MOST_PORT}` }]
      : []),
    ...(userIds.ok ? [] : [{ path: "Work.UserIds" as const, message: userIds.problem }]),
    ...(keeperDirectory.startsWith("/")
      ? []
      : [{ path: "Work.KeeperDir" as const, message: `${keeperDirectory} is no absolute path` }]),
    ...secretProblems(values).map((message) => ({ path: "Work.SecretGrants" as const, message })),
    ...relative.map((path) => ({ path: "Work.Directories" as const, message: `${path} is no absolute path` })),
  ];
}

const SECRET_NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const MOST_SECRETS = 64;
const MOST_GRANTS = 64;
/** What a node says about itself has 64 KiB. */
const MOST_GRANT_LETTERS = 16_384;

/** Read who can use the secrets of a machine. */
export function parseSecretGrants(grants: WorkConfig["Work.SecretGrants"]): readonly NodeSecret[] {
  return Object.entries(grants).map(([name, text]) => ({ name, grants: text.split(/\s+/).filter(Boolean) }));
}

function secretProblems(values: WorkConfig): readonly string[] {
  const secrets = parseSecretGrants(values["Work.SecretGrants"]);
  const letters = secrets.reduce((sum, { name, grants }) => sum + name.length + grants.join(" ").length, 0);
  return [
    ...(secrets.length > 0 && values["Work.Secrets"] === undefined
      ? ["needs Work.Secrets, the directory of the secrets"]
      : []),
    ...(secrets.length > MOST_SECRETS ? [`has ${secrets.length} secrets; ${MOST_SECRETS} are allowed`] : []),
    ...(letters > MOST_GRANT_LETTERS ? [`has ${letters} characters; ${MOST_GRANT_LETTERS} are allowed`] : []),
    ...secrets.flatMap(({ name, grants }) => [
      ...(SECRET_NAME.test(name) ? [] : [`${name} is not the name of a file in Work.Secrets`]),
      ...(grants.length > MOST_GRANTS ? [`${name} has ${grants.length} grants; ${MOST_GRANTS} are allowed`] : []),
      ...grants
        .filter((grant) => !isSecretGrant(grant))
        .map((grant) => `${name}: ${grant} is not OWNER/JOB, such as token:ci/web or token:ci/*`),
    ]),
  ];
}

/** The largest user id. The next number means "unchanged" to the kernel. */
const MOST_USER_ID = 4_294_967_293;
/** Distributions use smaller ids for their own accounts. */
const LEAST_USER_ID = 1_000;
const MOST_USER_IDS = 65_536;

/** Read the first and the last of a range of user ids; null for none. */
export function parseUserIds(
  words: string,
): { readonly ok: true; readonly range: readonly number[] | null } | { readonly ok: false; readonly problem: string } {
  if (words === "none") return { ok: true, range: null };
  const [first = 0, last = 0] = words.split("-").map(Number);
  if (first < LEAST_USER_ID || last > MOST_USER_ID || last < first) {
    return { ok: false, problem: `is no range within ${LEAST_USER_ID} to ${MOST_USER_ID}` };
  }
  if (last - first >= MOST_USER_IDS) return { ok: false, problem: `has more than ${MOST_USER_IDS} user ids` };
  return { ok: true, range: [first, last] };
}

/** Read a range of ports; null if it is not one. */
export function parsePorts(words: string): PortRange | null {
  if (words === "none") return { min: 0, max: 0 };
  const [min = 0, max = 0] = words.split("-").map(Number);
  return min >= 1 && min <= max && max <= MOST_PORT ? { min, max } : null;
}
