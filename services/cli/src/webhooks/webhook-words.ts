import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type BlockedSubject, type Webhook, WebhookState } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import type { ActorNames } from "../client/actor-names.ts";
import { type Column, optionalCell, timeCell } from "../output/table.ts";
import { counted, fieldLines } from "../output/text.ts";
import { formatTime } from "../output/units.ts";

/** The columns of `webhook list`. */
export const WEBHOOK_COLUMNS: readonly Column<Webhook>[] = [
  { title: "NAME", name: "name", cell: ({ name }) => ({ text: name }) },
  {
    title: "STATE",
    name: "state",
    cell: (webhook) => ({
      text: stateWord(webhook),
      raw: stateWord(webhook).replace(/^\w+/, (word) => word.toUpperCase()),
      style: isActive(webhook) ? "good" : "bad",
    }),
  },
  { title: "BEHIND", name: "behind", rank: 1, cell: ({ status }) => ({ text: String(status?.behind ?? 0n) }) },
  {
    title: "BLOCKED",
    name: "blocked",
    rank: 2,
    cell: ({ status }) => ({ text: String(status?.blockedSubjects ?? 0) }),
  },
  { title: "DELIVERED", name: "delivered", rank: 3, cell: ({ status }) => timeCell(status?.successTime) },
  { title: "HOST", name: "host", rank: 4, limit: 40, cell: ({ spec }) => ({ text: hostOf(spec?.url ?? "") }) },
  { title: "TYPES", name: "types", rank: 5, limit: 40, cell: (webhook) => ({ text: typesText(webhook) }) },
  { title: "SELECTOR", name: "selector", rank: 6, limit: 24, cell: ({ spec }) => optionalCell(spec?.labelSelector) },
  {
    title: "DESCRIPTION",
    name: "description",
    rank: 7,
    limit: 40,
    cell: ({ spec }) => optionalCell(spec?.description),
  },
];

/** The columns of the list of waiting subjects. */
export const BLOCKED_COLUMNS: readonly Column<BlockedSubject>[] = [
  { title: "SUBJECT", name: "subject", cell: ({ subject }) => ({ text: subject }) },
  { title: "REVISION", name: "revision", cell: ({ revision }) => ({ text: String(revision) }) },
  { title: "SINCE", name: "since", cell: ({ since }) => timeCell(since) },
  { title: "FAILURES", name: "failures", cell: ({ failures }) => ({ text: String(failures) }) },
  { title: "FAILURE", name: "failure", rank: 1, limit: 60, cell: ({ failure }) => optionalCell(failure) },
];

/** Format a webhook as lines. */
export function describeWebhook(webhook: Webhook, names: ActorNames): string {
  const { name, spec, status, createTime, updateTime, updater } = webhook;
  const paused = isActive(webhook)
    ? []
    : ([["Paused", `${timeText(status?.pauseTime)}, ${status?.pauseMessage || "by an admin"}`]] as const);
  const lost = status?.lostThrough ?? 0n;
  return fieldLines([
    ["Name", name],
    ["Description", spec?.description ?? ""],
    ["State", stateWord(webhook)],
    ...paused,
    ["URL", spec?.url ?? ""],
    ["Types", typesText(webhook)],
    ["Selector", spec?.labelSelector || "-"],
    ["Revision", `${status?.revision ?? 0n}, ${status?.behind ?? 0n} behind the log`],
    ["Blocked", counted(status?.blockedSubjects ?? 0, "subject")],
    ["Delivered", timeText(status?.successTime)],
    ["Failed", status?.failureTime === undefined ? "-" : `${timeText(status.failureTime)}, ${status.failure}`],
    ...(lost === 0n ? [] : ([["Lost", `events up to revision ${lost}`]] as const)),
    ["Created", timeText(createTime)],
    ["Changed", `${timeText(updateTime)} by ${names(updater)}`],
  ]);
}

function isActive({ status }: Webhook): boolean {
  return status?.state === WebhookState.ACTIVE;
}

function stateWord(webhook: Webhook): string {
  return isActive(webhook) ? "active" : `paused (${webhook.status?.pauseReason ?? ""})`;
}

function typesText({ spec }: Webhook): string {
  const types = spec?.types ?? [];
  const not = (spec?.excludeTypes ?? []).map((type) => `not ${type}`);
  return [...(types.length === 0 ? ["all"] : types), ...not].join(", ");
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

function timeText(time: Webhook["createTime"]): string {
  return time === undefined ? "-" : formatTime(timestampMs(time));
}
