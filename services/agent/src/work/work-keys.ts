import { bool, type ConfigValues, defineKeys, list, oneOf, optional, stringMap, text } from "@rollcall/config";
import { isSecretGrant, type NodeSecret } from "@rollcall/domain";
import { type PortRange, parseAllocated } from "./work-capacity.ts";

const MOST_PORT = 65_535;

/** The configuration keys about work, which a machine's agent and keeper share. */
export const workKeys = defineKeys({
  "Work.Executors": {
    schema: list(oneOf(["process", "docker"])),
    default: [],
    flag: "executors",
    doc:
      "The executors that this machine offers: process, docker or both. Default: none, so a machine runs nothing " +
      "for others unless its operator allows it here. `rollcall up` enables process for its own agent.",
  },
  "Work.User": {
    schema: optional(text({ maxLength: 64 })),
    default: undefined,
    flag: "work-user",
    doc:
      "The user that runs executions whose job names no user. They form one trust domain: each can read the others' " +
      "files, memory and environment. Default: each execution gets a separate user id, " +
      "see Work.UserIds, if the keeper runs as root; otherwise nothing is run. The user cannot be root or the " +
      "agent's own user, who could read the node's key, and cannot be in a group whose members can become root, " +
      "such as docker.",
  },
  "Work.Users": {
    schema: list(text({ maxLength: 64 })),
    default: [],
    doc:
      "Users that a job can name. Executions of one user form one trust domain. These users cannot be root, the " +
      "agent's " +
      "own user, or in a group whose members can become root: docker, disk, lxd, sudo, wheel, root, kvm, shadow and " +
      "others.",
  },
  "Work.UserIds": {
    schema: text({ pattern: /^(none|\d{1,10}-\d{1,10})$/, expects: "a range such as 56000-59999, or none" }),
    default: "56000-59999",
    doc:
      "The user ids for executions whose job names no user, one for each execution, if the keeper runs as root and " +
      "Work.User is not set; `none` disables them. These ids have no accounts; ids that belong to an account or a " +
      "group on the machine are skipped. An id is reused once no process and no file has it. Keepers " +
      "that share a kernel but not /var/lib need separate ranges.",
  },
  "Work.Directories": {
    schema: list(text()),
    default: [],
    doc:
      "Directories in or below which a job can run; links are resolved before paths are compared. Default: each " +
      "execution runs in a separate directory.",
  },
  "Work.KeeperDir": {
    schema: optional(text()),
    default: undefined,
    flag: "keeper-dir",
    doc:
      "The directory of a keeper that runs as a separate service with a different user than the agent's, such as " +
      "rollcall-keeper.service. It contains the records, output and directories of executions, and the socket that " +
      "only the agent's user can open. Default: the agent starts its keeper itself, as its own user.",
  },
  "Work.Secrets": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc:
      "The directory of secrets: each file is a value that jobs can request as a variable, by the file's name. The " +
      "files must be owned by root or by the keeper's user (root with Work.KeeperDir) and cannot be links; only " +
      "their owner should be able to read them. Work.SecretGrants decides which jobs can use which secret: by " +
      "default none.",
  },
  "Work.SecretGrants": {
    schema: stringMap(),
    default: {},
    doc:
      "Who can use each secret of Work.Secrets, by the secret's name: OWNER/JOB, or several of them separated by " +
      "spaces. OWNER is who submitted the job's newest version, written like the actor of an event: token:<id> or " +
      "user:<subject>; JOB is the job's name. Both can end in * to match any suffix. For example " +
      "password=token:ci/web token:ops/backup-*. A secret that is not listed here cannot be used by any job. The " +
      "control plane places a job only where it can use all of its secrets, and the keeper checks again when it " +
      "starts an execution. At most 64 secrets, 64 grants for each, and 16384 characters in total.",
  },
  "Work.Ports": {
    schema: text({ pattern: /^(none|\d{1,5}-\d{1,5})$/, expects: "a range such as 20000-32000, or none" }),
    default: "20000-32000",
    doc: "The range of ports for executions whose job lets the scheduler choose; none for no ports.",
  },
  "Work.Docker.Host": {
    // Accept any text, because DOCKER_HOST may name a remote engine for other programs. An agent without the docker
    // executor ignores it.
    schema: optional(text()),
    default: undefined,
    flag: "docker-host",
    env: ["DOCKER_HOST"],
    doc:
      "The socket of this machine's container engine, docker or podman. Default: /var/run/docker.sock, or podman's " +
      "/run/podman/podman.sock. While the engine does not answer, the machine does not offer docker.",
  },
  "Work.SameUser": {
    schema: bool(),
    default: false,
    flag: "work-same-user",
    doc:
      "For development only: run executions as the agent's own user. They can read the node's key, and act as the " +
      "node. An agent that is not root runs nothing without this.",
  },
  "Compute.AllocatedCapacity": {
    schema: stringMap(),
    default: {},
    doc:
      "How much of the machine executions can use, by resource: a percentage, or an amount in cores (2, 0.5, 500m) " +
      "or bytes (4GB, 4GiB, 4Gi), for example cpu=80%,memory=4GiB,disk=50%; 100% by default. More than 100% " +
      "overcommits the resource; an amount is limited to what the machine has. All GPUs are offered.",
  },
});

export type WorkConfig = ConfigValues<typeof workKeys>;

/** Check that the values are usable. Each value already has a valid type. */
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
      ? [{ path: "Work.Ports" as const, message: `is not a range within 1 to ${MOST_PORT}` }]
      : []),
    ...(userIds.ok ? [] : [{ path: "Work.UserIds" as const, message: userIds.problem }]),
    ...(keeperDirectory.startsWith("/")
      ? []
      : [{ path: "Work.KeeperDir" as const, message: `${keeperDirectory} is not an absolute path` }]),
    ...secretProblems(values).map((message) => ({ path: "Work.SecretGrants" as const, message })),
    ...relative.map((path) => ({ path: "Work.Directories" as const, message: `${path} is not an absolute path` })),
  ];
}

const SECRET_NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const MOST_SECRETS = 64;
const MOST_GRANTS = 64;
/**
 * Maximum number of characters in the secret grants of a machine. Keeps a node's description below its limit of 64
 * KiB.
 */
const MOST_GRANT_CHARS = 16_384;

/** Read who can use the secrets of a machine. */
export function parseSecretGrants(grants: WorkConfig["Work.SecretGrants"]): readonly NodeSecret[] {
  return Object.entries(grants).map(([name, text]) => ({ name, grants: text.split(/\s+/).filter(Boolean) }));
}

function secretProblems(values: WorkConfig): readonly string[] {
  const secrets = parseSecretGrants(values["Work.SecretGrants"]);
  const chars = secrets.reduce((sum, { name, grants }) => sum + name.length + grants.join(" ").length, 0);
  return [
    ...(secrets.length > 0 && values["Work.Secrets"] === undefined
      ? ["needs Work.Secrets, the directory of the secrets"]
      : []),
    ...(secrets.length > MOST_SECRETS ? [`has ${secrets.length} secrets; ${MOST_SECRETS} are allowed`] : []),
    ...(chars > MOST_GRANT_CHARS ? [`has ${chars} characters; ${MOST_GRANT_CHARS} are allowed`] : []),
    ...secrets.flatMap(({ name, grants }) => [
      ...(SECRET_NAME.test(name) ? [] : [`${name} is not the name of a file in Work.Secrets`]),
      ...(grants.length > MOST_GRANTS ? [`${name} has ${grants.length} grants; ${MOST_GRANTS} are allowed`] : []),
      ...grants
        .filter((grant) => !isSecretGrant(grant))
        .map((grant) => `${name}: ${grant} is not OWNER/JOB, such as token:ci/web or token:ci/*`),
    ]),
  ];
}

/** The largest user id that can be used. 4294967295 means "unchanged" to the kernel. */
const MOST_USER_ID = 4_294_967_293;
/** The smallest user id that can be used. Distributions use smaller ids for their own accounts. */
const LEAST_USER_ID = 1_000;
const MOST_USER_IDS = 65_536;

/** Parse the first and last id of a range of user ids; null for none. */
export function parseUserIds(
  words: string,
): { readonly ok: true; readonly range: readonly number[] | null } | { readonly ok: false; readonly problem: string } {
  if (words === "none") return { ok: true, range: null };
  const [first = 0, last = 0] = words.split("-").map(Number);
  if (first < LEAST_USER_ID || last > MOST_USER_ID || last < first) {
    return { ok: false, problem: `is not a range within ${LEAST_USER_ID} to ${MOST_USER_ID}` };
  }
  if (last - first >= MOST_USER_IDS) return { ok: false, problem: `has more than ${MOST_USER_IDS} user ids` };
  return { ok: true, range: [first, last] };
}

/** Parse a range of ports; null if it is invalid. */
export function parsePorts(words: string): PortRange | null {
  if (words === "none") return { min: 0, max: 0 };
  const [min = 0, max = 0] = words.split("-").map(Number);
  return min >= 1 && min <= max && max <= MOST_PORT ? { min, max } : null;
}
