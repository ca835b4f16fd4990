import { WebhookService } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { clientOf } from "../../live/clients.ts";
import { EVERY_EVENT, RARE_MS, useRead } from "../../live/queries.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { formatCount } from "../../state/units.ts";
import { Button } from "../../ui/button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty, Notice, Read } from "../../ui/notices.tsx";
import { Facts, Panel } from "../../ui/panel.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";

/** One webhook: its settings, delivery progress, and blocked subjects. */
export function WebhookPanel({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const read = useRead(["webhook", name], (signal) => clientOf(WebhookService).getWebhook({ name }, { signal }), {
    // React to every event, because an event of any type may have been delivered.
    on: EVERY_EVENT,
    gatherMs: RARE_MS,
  });
  return (
    <Panel
      title={`Webhook ${name}`}
      actions={
        <Button small onClick={onClose}>
          Close
        </Button>
      }
    >
      <Read from={read}>
        {({ webhook }) => {
          const { spec, status } = webhook ?? {};
          const blocked = status?.blocked ?? [];
          return (
            <div className="stack">
              {status !== undefined && status.pauseReason !== "" && (
                <Notice tone="warn">
                  Paused <Time ms={toMs(status.pauseTime)} />: {status.pauseMessage} <code>{status.pauseReason}</code>
                </Notice>
              )}
              {(status?.lostThrough ?? 0n) > 0n && (
                <Notice tone="bad">
                  Events up to revision {formatCount(Number(status?.lostThrough))} were removed before they were
                  delivered.
                </Notice>
              )}
              <Facts
                of={[
                  ["Description", spec?.description],
                  ["To", spec?.url],
                  ["Types", spec?.types.join(", ") || "all"],
                  ["Excluded types", spec?.excludeTypes.join(", ")],
                  ["Selector", spec?.labelSelector],
                  ["Delivered up to", formatCount(Number(status?.revision ?? 0n))],
                  ["Behind", `${formatCount(Number(status?.behind ?? 0n))} revisions`],
                  ["Created", <ExactTime key="created" ms={toMs(webhook?.createTime)} />],
                  ["Changed by", webhook?.updater],
                ]}
              />
              {blocked.length === 0 ? (
                <Empty title="No subject is blocked" />
              ) : (
                <DataTable
                  label="Blocked subjects"
                  rows={blocked}
                  keyOf={({ subject }) => subject}
                  columns={[
                    { title: "Subject", cell: ({ subject }) => <span className="breaks">{subject}</span> },
                    { title: "Revision", right: true, cell: ({ revision }) => String(revision) },
                    { title: "Since", cell: ({ since }) => <Time ms={toMs(since)} /> },
                    { title: "Failures", right: true, cell: ({ failures }) => failures },
                    { title: "Why", cell: ({ failure }) => <span className="breaks">{failure}</span> },
                  ]}
                />
              )}
            </div>
          );
        }}
      </Read>
    </Panel>
  );
}
