import { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";

/**
 * The commands and options that help, for what the control plane says in words. Its refusals name reasons and carry
 * metadata; how a user of the command line acts on them is known here alone.
 */
type Details = Readonly<Record<string, string>>;

const HINTS: ReadonlyMap<ErrorReason, (details: Details) => string | null> = new Map([
  [ErrorReason.NODE_NOT_FOUND, () => "`rollcall node list` shows all nodes"],
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
  [ErrorReason.ROLE_TOO_LOW, () => "`rollcall whoami` shows who you are here; ask a user whose role is high enough"],
  [
    ErrorReason.NO_SCHEDULER,
    () => "`rollcall serve scheduler` starts one; `rollcall node cordon` keeps new work away without one",
  ],
  [ErrorReason.JOB_NOT_FOUND, () => "`rollcall job list` shows all jobs"],
  [ErrorReason.JOB_ACTIVE, ({ job = "JOB" }) => `\`rollcall job stop ${job} --wait\` stops it`],
  [ErrorReason.JOB_NOT_ENDED, ({ job = "JOB" }) => `\`rollcall job why ${job}\` says what has not ended`],
  [ErrorReason.JOB_VERSION_NOT_FOUND, ({ job = "JOB" }) => `\`rollcall job history ${job}\` shows its versions`],
  [ErrorReason.JOB_STOPPED, () => "`rollcall job run` with its file starts it again"],
  [
    ErrorReason.JOB_FITS_NOWHERE,
    () => "`rollcall job run --dry-run` says why, and --queue-timeout or queueTimeout waits for a node",
  ],
  [ErrorReason.EXECUTION_NOT_FOUND, () => "`rollcall job executions` shows all executions"],
  [ErrorReason.TOO_MANY_SIGN_IN_CODES, () => "each is valid for a minute: wait, and run it again"],
  [ErrorReason.TLS_REQUIRED, () => "name an authority that this machine does not trust with --ca-file"],
  [ErrorReason.CLIENT_CERTIFICATE_REQUIRED, () => "name one with --client-cert and --client-key"],
]);

/** What to type after a refusal, without "hint: "; null where the refusal says all. */
export function refusalHint(reason: ErrorReason, details: Details): string | null {
  return HINTS.get(reason)?.(details) ?? null;
}

/** Why a call was refused; UNSPECIFIED for other errors, and for a reason of a newer control plane. */
export function reasonIn(error: unknown): ErrorReason {
  const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
  return reasonNamed(info?.reason ?? "");
}

/** The reason that an ErrorInfo names; UNSPECIFIED for one of a newer control plane. */
export function reasonNamed(name: string): ErrorReason {
  return ErrorReason[name as keyof typeof ErrorReason] ?? ErrorReason.UNSPECIFIED;
}

function releaseHint({ group, mode }: Details): string | null {
  if (mode === undefined || mode === "NORMAL") return null;
  const option = group === undefined || group === "cluster" ? "" : ` --group ${group}`;
  return `\`rollcall brake release --now${option}\` releases everything that is pending`;
}

const REMEDIES: ReadonlyMap<string, (node: string) => string> = new Map<string, (node: string) => string>([
  ["OPERATOR_BANNED", (node) => `rollcall node unban ${node}, then rollcall node approve ${node}`],
  ["OPERATOR_MARKED", (node) => `rollcall node clear-mark ${node}`],
  ["OPERATOR_CORDONED", (node) => `rollcall node uncordon ${node}`],
  ["NODE_FLAPPING", (node) => `find out why its heartbeats come and go: rollcall node health ${node}`],
  ["NODE_DRAINING", (node) => `rollcall node undrain ${node}`],
  ["NODE_DRAINED", (node) => `rollcall node undrain ${node}`],
  [
    "DUPLICATE_IDENTITY",
    () => "stop the agent that runs on a copied state directory, remove that copy, and start the agent again",
  ],
  [
    "HARDWARE_IN_DOUBT",
    (node) => `repair the hardware, or accept it as it is with rollcall node accept-hardware ${node}`,
  ],
]);

/** What removes an obstacle to work: a command where there is one, else the control plane's words. */
export function obstacleRemedy(
  { state, reason, remedy }: { readonly state: string; readonly reason: string; readonly remedy: string },
  node: string,
): string {
  const command = REMEDIES.get(reason)?.(node);
  if (command !== undefined) return command;
  // Every other membership that keeps work away ends with an approval.
  return state === "membership" ? `rollcall node approve ${node}` : remedy;
}
