import { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";

/**
 * Hints after a refusal: the commands and options that help. A refusal of the control plane has a reason and
 * metadata, and only the command line knows which of its commands act on them.
 */
type Details = Readonly<Record<string, string>>;

const HINTS: ReadonlyMap<ErrorReason, (details: Details) => string | null> = new Map([
  [
    ErrorReason.NODE_NOT_FOUND,
    () => "`rollcall node list` shows all nodes; `rollcall node list --deleted` those that are gone",
  ],
  [ErrorReason.NODE_BANNED, ({ node }) => `\`rollcall node unban ${node}\` lifts the ban`],
  [
    ErrorReason.LABEL_NOT_SET_BY_OPERATOR,
    ({ node, labels = "" }) => `\`rollcall node label ${node} ${labels.split(",")[0]}=VALUE\` overrides it`,
  ],
  [ErrorReason.ACCESS_TOKEN_NOT_FOUND, () => "`rollcall access list` shows all tokens"],
  [ErrorReason.JOIN_TOKEN_NOT_FOUND, () => "`rollcall token list` shows all tokens"],
  [ErrorReason.WEBHOOK_NOT_FOUND, () => "`rollcall webhook list` shows all webhooks"],
  [ErrorReason.HEALTH_POLICY_NOT_FOUND, () => "`rollcall policy list` shows all policies"],
  [ErrorReason.BRAKE_GROUP_NOT_FOUND, () => "`rollcall brake status` lists the groups"],
  [ErrorReason.BRAKE_NOT_FROZEN, releaseHint],
  [ErrorReason.ROLE_TOO_LOW, () => "`rollcall whoami` shows your role; ask a user with a higher role"],
  [
    ErrorReason.NO_SCHEDULER,
    () => "`rollcall serve scheduler` starts one; without one, `rollcall node cordon` keeps new work away",
  ],
  [ErrorReason.REQUEST_ID_REUSED, () => "pass another --request-id, or leave it out"],
  [ErrorReason.JOB_NOT_FOUND, () => "`rollcall job list` shows all jobs"],
  [ErrorReason.JOB_ACTIVE, ({ job = "JOB" }) => `\`rollcall job stop ${job} --wait\` stops it`],
  [ErrorReason.JOB_NOT_ENDED, ({ job = "JOB" }) => `\`rollcall job why ${job}\` shows the remaining executions`],
  [ErrorReason.JOB_VERSION_NOT_FOUND, ({ job = "JOB" }) => `\`rollcall job history ${job}\` shows its versions`],
  [
    ErrorReason.JOB_UPDATE_HALTED,
    ({ job = "JOB", version = "VERSION", readyVersion = "" }) => {
      const revert =
        readyVersion === ""
          ? `\`rollcall job history ${job}\` lists the versions for \`rollcall job revert ${job} VERSION\``
          : `\`rollcall job revert ${job}\` returns to version ${readyVersion}`;
      return `${revert}; \`rollcall job run\` with its file tries version ${version} again`;
    },
  ],
  [ErrorReason.JOB_STOPPED, () => "`rollcall job run` with its file starts it again"],
  [
    ErrorReason.JOB_FITS_NOWHERE,
    // The metadata has the number of nodes for each reason.
    ({ job: _job, ...reasons }) => {
      if (Object.keys(reasons).length === 0) return "`rollcall token create` prints how to add a machine";
      return "EXECUTOR_NOT_OFFERED" in reasons
        ? "`rollcall agent --executors process`, started as root so that each execution gets its own user, lets a " +
            "machine run commands; --executors docker lets it run containers"
        : "`rollcall job run --dry-run` shows why; set --queue-timeout or queueTimeout to wait for a node";
    },
  ],
  [ErrorReason.EXECUTION_NOT_FOUND, () => "`rollcall job executions` shows all executions"],
  [ErrorReason.TOO_MANY_SIGN_IN_CODES, () => "codes expire after a minute: wait, then try again"],
  [ErrorReason.TLS_REQUIRED, () => "if this machine does not trust the server's authority, pass it with --ca-file"],
  [ErrorReason.CLIENT_CERTIFICATE_REQUIRED, () => "pass one with --client-cert and --client-key"],
]);

/** What to try after a refusal, without "hint: "; null when there is nothing to add. */
export function refusalHint(reason: ErrorReason, details: Details): string | null {
  return HINTS.get(reason)?.(details) ?? null;
}

/** Why a call was refused; UNSPECIFIED for other errors, and for reasons added by a newer control plane. */
export function reasonIn(error: unknown): ErrorReason {
  const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
  return reasonNamed(info?.reason ?? "");
}

/** The reason that an ErrorInfo names; UNSPECIFIED for a reason added by a newer control plane. */
export function reasonNamed(name: string): ErrorReason {
  return ErrorReason[name as keyof typeof ErrorReason] ?? ErrorReason.UNSPECIFIED;
}

function releaseHint({ group, mode }: Details): string | null {
  if (mode === undefined || mode === "NORMAL") return null;
  const option = group === undefined || group === "cluster" ? "" : ` --group ${group}`;
  return `\`rollcall brake release --now${option}\` releases all pending reactions`;
}

const REMEDIES: ReadonlyMap<string, (node: string) => string> = new Map<string, (node: string) => string>([
  ["OPERATOR_BANNED", (node) => `rollcall node unban ${node}, then rollcall node approve ${node}`],
  ["OPERATOR_MARKED", (node) => `rollcall node clear-mark ${node}`],
  ["OPERATOR_CORDONED", (node) => `rollcall node uncordon ${node}`],
  ["NODE_FLAPPING", (node) => `find out why its heartbeats are unstable: rollcall node health ${node}`],
  ["NODE_DRAINING", (node) => `rollcall node undrain ${node}`],
  ["NODE_DRAINED", (node) => `rollcall node undrain ${node}`],
  [
    "DUPLICATE_IDENTITY",
    () => "stop the agent that runs on a copied state directory, remove that copy, and start the agent again",
  ],
  [
    "HARDWARE_IN_DOUBT",
    (node) => `repair the hardware, or accept its current state with rollcall node accept-hardware ${node}`,
  ],
]);

/** How to remove an obstacle to work: a command if there is one, otherwise the control plane's text. */
export function obstacleRemedy(
  { state, reason, remedy }: { readonly state: string; readonly reason: string; readonly remedy: string },
  node: string,
): string {
  const command = REMEDIES.get(reason)?.(node);
  if (command !== undefined) return command;
  // For membership, suggest approval, which replaces every membership that blocks work.
  return state === "membership" ? `rollcall node approve ${node}` : remedy;
}
