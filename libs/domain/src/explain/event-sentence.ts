import { type EventType, isJsonObject, type Json } from "../events/events.ts";
import { stateWords } from "../state-words.ts";
import { describeChange, describeDetails, silenceSummary, silenceWords, type ToldEvent } from "./describe-change.ts";

/** An event as a sentence about its subject. */
export interface EventSentence {
  /** What happened, to follow the subject: "became unhealthy". */
  readonly did: string;
  /** Why, in a few words; "" if nothing more is known: "nothing received for 60 s". */
  readonly cause: string;
}

/** Say what an event means, to follow its subject: "alpha became unhealthy: nothing received for 60 s". */
export function eventSentence(event: ToldEvent): EventSentence {
  const { after, message } = event;
  const evidence = field(after, "evidence");
  const cause = isJsonObject(evidence) ? silenceSummary(evidence) : message;
  // A newer release may have types that this one does not know.
  const did = Object.hasOwn(DID, event.type) ? DID[event.type](event) : event.type.replaceAll(".", " ");
  return { did, cause };
}

/**
 * Describe an event in one line for people, with its details and its evidence, without its subject: "became unhealthy:
 * nothing received for 60.0 s; unhealthy-after of group gpus allows 60.0 s; ...".
 */
export function explainEvent(event: ToldEvent): string {
  const { did } = eventSentence(event);
  const details = describeDetails(event);
  const evidence = field(event.after, "evidence");
  const causes = isJsonObject(evidence)
    ? [silenceWords(evidence)]
    : [saysReason(event) ? "" : stateWords(event.reason), event.message];
  const cause = causes.filter((part) => part !== "").join(", ");
  return `${did}${did.includes(details) ? "" : `, ${details}`}${cause === "" ? "" : `: ${cause}`}`;
}

/** Whether an event's sentence or message already contains its reason. */
function saysReason({ type, reason }: ToldEvent): boolean {
  return IN_SENTENCE.has(reason) || type === "node.conditions.changed";
}

/** Say the same of several subjects: "was approved" is "were approved". */
export function inPlural(did: string): string {
  return did.replace(/^was /, "were ").replace(/^has /, "have ").replace(/^is /, "are ");
}

type Words = (event: ToldEvent) => string;

const always =
  (did: string): Words =>
  () =>
    did;
const became: (name: string) => Words = (name) => (event) => {
  const state = stateOf(event, name);
  return field(event.before, name) === field(event.after, name) ? `is still ${state}` : `became ${state}`;
};
/** What changed follows the verb, because the event's message does not name it. */
const withChange =
  (did: string): Words =>
  (event) =>
    `${did} ${describeChange(event)}`.replace(/[:,] $/, "").trim();
const ofExecution =
  (did: string): Words =>
  (event) => {
    const { execution, node } = isJsonObject(event.after) ? event.after : {};
    const [which, where] = [execution === undefined ? "" : ` ${execution}`, node === undefined ? "" : ` on ${node}`];
    return did.replace("execution", `execution${which}${where}`);
  };

/** What each type of event did to its subject. A missing entry is a compile error. */
const DID: Readonly<Record<EventType, Words>> = {
  "node.registered": always("joined the cluster"),
  "node.approved": always("was approved"),
  "node.rejected": always("was rejected"),
  "node.deleted": always("was deleted"),
  "node.deregistered": always("left the cluster"),
  "node.banned": always("was banned"),
  "node.unbanned": always("is no longer banned"),
  "node.key.rotation.required": always("was asked for a new key"),
  "node.key.offered": always("offered its next key"),
  "node.key.rotated": always("has a new key"),
  "node.identity.duplicated": always("is used by two agents"),
  "node.identity.cleared": always("is used by only one agent again"),
  "node.info.changed": always("reported new information"),
  "node.labels.changed": (event) => `has new labels: ${describeChange(event).replaceAll("labels ", "")}`,
  "node.connection.changed": (event) => {
    const isConnected = field(event.after, "connection") === "CONNECTED";
    if (isConnected && field(event.before, "connection") === "CONNECTED") return describeChange(event);
    return isConnected ? "connected" : "disconnected";
  },
  "node.session.moved": describeChange,
  "node.health.changed": became("health"),
  "node.reactions.allowed": always("counts as lost, and its work is replaced"),
  "node.scheduling.changed": (event) =>
    field(event.after, "scheduling") === "ELIGIBLE" ? "is not held now" : became("scheduling")(event),
  "node.drain.started": always("is being drained"),
  "node.drain.cancelled": always("is no longer drained"),
  "node.flapping.started": always("is flapping"),
  "node.flapping.ended": always("is steady again"),
  "node.hardware.degraded": withChange("lacks hardware:"),
  "node.hardware.restored": always("has its hardware again"),
  "node.hardware.accepted": always("was accepted with its present hardware"),
  "node.conditions.changed": (event) => {
    const conditions = field(event.after, "conditions");
    const count = Array.isArray(conditions) ? conditions.length : 0;
    return count === 0 ? "has no condition left" : count === 1 ? "has a condition" : `has ${count} conditions`;
  },
  "node.rebooted": always("rebooted without notice"),
  "node.reboot.cleared": always("has been up for long enough after its reboot"),
  "access.token.created": withChange("was created as an access token,"),
  "access.token.revoked": always("was revoked as an access token"),
  "join.token.created": withChange("was created as a join token,"),
  "join.token.revoked": always("was revoked as a join token"),
  "policy.health.set": withChange("has a new health policy:"),
  "policy.health.deleted": always("no longer has a health policy"),
  "brake.changed": (event) => `has its brake ${stateOf(event, "brake")}`,
  "webhook.set": withChange("was set as a webhook,"),
  "webhook.deleted": always("was deleted as a webhook"),
  "webhook.paused": always("was paused as a webhook"),
  "webhook.behind": always("is far behind as a webhook"),
  "webhook.replayed": always("was set back as a webhook"),
  "job.submitted": (event) => `was submitted as version ${text(field(event.after, "version"))}`,
  "job.changed": (event) => JOB_CHANGES[event.reason]?.(event) ?? withChange("changed:")(event),
  "job.deleted": always("was deleted"),
  "job.executions.placed": (event) => `had ${describeChange(event) || "executions"} placed`,
  "job.execution.ordered": (event) => ofExecution(`got an order to ${stateOf(event, "order")} its execution`)(event),
  "job.execution.ended": (event) => `${ofExecution("had its execution end as")(event)} ${stateOf(event, "state")}`,
  "job.execution.lost": ofExecution("lost its execution"),
  "job.execution.found": ofExecution("found its execution again"),
  "job.execution.replaced": ofExecution("replaced its execution"),
  "job.execution.restored": ofExecution("kept its execution"),
  "job.executions.orphaned": (event) => `has ${text(field(event.after, "count"))} executions that no job knows`,
  "job.execution.adopted": ofExecution("adopted its execution"),
};

/** What happened to a job, keyed by the reason of the change. */
const JOB_CHANGES: Readonly<Record<string, Words>> = {
  JOB_SCALED: always("was scaled"),
  JOB_RESTARTED: always("was restarted"),
  JOB_STOPPED: always("was stopped"),
  JOB_COMPLETED: always("is complete"),
  JOB_FAILED: always("has failed"),
  JOB_ROLLED_OUT: always("is rolled out: every wanted execution is ready"),
  JOB_UPDATED: ({ after }) =>
    typeof field(after, "halted") === "string" ? "halted its update" : "continues its update",
};

/** The reasons that the sentence of their event already says. */
const IN_SENTENCE: ReadonlySet<string> = new Set([
  ...["OPERATOR_APPROVED", "OPERATOR_REJECTED", "OPERATOR_BANNED", "OPERATOR_DELETED", "BAN_LIFTED"],
  ...["OPERATOR_REQUIRED", "NEXT_KEY_OFFERED", "NEXT_KEY_USED", "DUPLICATE_IDENTITY", "ONE_MACHINE_LEFT"],
  ...["STREAM_MOVED", "NO_HOLD", "OPERATOR_DRAINED", "DRAIN_CANCELLED", "FLAPPING", "STEADY_AGAIN"],
  ...["HARDWARE_RESTORED", "OPERATOR_ACCEPTED", "CONDITIONS_OVER", "UNEXPECTED_REBOOT", "REBOOT_OVER"],
  ...["JOB_SUBMITTED", ...Object.keys(JOB_CHANGES), "JOB_DELETED", "PLACED", "STOP_ORDERED", "ADOPTION_ORDERED"],
  ...["EXECUTION_FOUND", "EXECUTIONS_ORPHANED"],
]);

function field(side: Json | null, key: string): Json | undefined {
  return isJsonObject(side) ? side[key] : undefined;
}

function stateOf({ after }: ToldEvent, name: string): string {
  return stateWords(text(field(after, name)));
}

function text(value: Json | undefined): string {
  return value === undefined || value === null ? "-" : String(value);
}
