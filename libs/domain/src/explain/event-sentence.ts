import { type EventType, isJsonObject, type Json } from "../events/events.ts";
import { describeChange, silenceSummary, type ToldEvent } from "./explain-event.ts";

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

/** Say the same of several subjects: "was approved" is "were approved". */
export function inPlural(did: string): string {
  return did.replace(/^was /, "were ").replace(/^has /, "have ").replace(/^is /, "are ");
}

type Words = (event: ToldEvent) => string;

const always =
  (did: string): Words =>
  () =>
    did;
const became: (name: string) => Words = (name) => (event) => `became ${lower(field(event.after, name))}`;
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
  "node.scheduling.changed": became("scheduling"),
  "node.drain.started": always("is being drained"),
  "node.drain.cancelled": always("is no longer drained"),
  "node.flapping.started": always("is flapping"),
  "node.flapping.ended": always("is steady again"),
  "node.hardware.degraded": withChange("lacks hardware:"),
  "node.hardware.restored": always("has its hardware again"),
  "node.hardware.accepted": always("was accepted with its present hardware"),
  "node.conditions.changed": withChange("has new conditions:"),
  "node.rebooted": always("rebooted without notice"),
  "node.reboot.cleared": always("has been up for long enough after its reboot"),
  "access.token.created": withChange("was created as an access token,"),
  "access.token.revoked": always("was revoked as an access token"),
  "join.token.created": withChange("was created as a join token,"),
  "join.token.revoked": always("was revoked as a join token"),
  "policy.health.set": withChange("has a new health policy:"),
  "policy.health.deleted": always("no longer has a health policy"),
  "brake.changed": (event) => `has its brake ${lower(field(event.after, "brake"))}`,
  "webhook.set": withChange("was set as a webhook,"),
  "webhook.deleted": always("was deleted as a webhook"),
  "webhook.paused": always("was paused as a webhook"),
  "webhook.behind": always("is far behind as a webhook"),
  "webhook.replayed": always("was set back as a webhook"),
  "job.submitted": (event) => `was submitted as version ${text(field(event.after, "version"))}`,
  "job.changed": withChange("changed:"),
  "job.deleted": always("was deleted"),
  "job.executions.placed": (event) => `had ${describeChange(event) || "executions"} placed`,
  "job.execution.ordered": ofExecution("got an order for its execution"),
  "job.execution.ended": (event) =>
    `${ofExecution("had its execution end as")(event)} ${lower(field(event.after, "state"))}`,
  "job.execution.lost": ofExecution("lost its execution"),
  "job.execution.found": ofExecution("found its execution again"),
  "job.execution.replaced": ofExecution("replaced its execution"),
  "job.execution.restored": ofExecution("kept its execution"),
  "job.executions.orphaned": (event) => `has ${text(field(event.after, "count"))} executions that no job knows`,
  "job.execution.adopted": ofExecution("adopted its execution"),
};

function field(side: Json | null, key: string): Json | undefined {
  return isJsonObject(side) ? side[key] : undefined;
}

function lower(value: Json | undefined): string {
  return text(value).toLowerCase().replaceAll("_", " ");
}

function text(value: Json | undefined): string {
  return value === undefined || value === null ? "-" : String(value);
}
