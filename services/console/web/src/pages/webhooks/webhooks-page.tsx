import { type Webhook, WebhookService, WebhookStateSchema } from "@rollcall/api/rollcall/events/v1/webhooks_pb";
import { useState } from "react";
import { ReasonDialog } from "../../actions/reason-dialog.tsx";
import { useSearch, useSetSearch } from "../../app/address.ts";
import { clientOf } from "../../live/clients.ts";
import { EVERY_EVENT, RARE_MS, useRead } from "../../live/queries.ts";
import { useRights } from "../../session/session.ts";
import { command } from "../../state/cli-command.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { isoTime } from "../../state/time-words.ts";
import { formatCount } from "../../state/units.ts";
import { enumWord } from "../../state/words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Empty, Read } from "../../ui/notices.tsx";
import { PageHead, Panel } from "../../ui/panel.tsx";
import { StateMark } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";
import { say, sayFailure } from "../../ui/toasts.tsx";
import { WebhookForm } from "./webhook-form.tsx";
import { WebhookPanel } from "./webhook-panel.tsx";

const webhooks = clientOf(WebhookService);
/** Maximum number of webhooks to request. The server allows fewer, so one page contains all of them. */
const MOST_LISTED = 1000;

interface Asked {
  readonly verb: "pause" | "resume" | "replay" | "delete";
  readonly webhook: Webhook;
}

/** The webhooks that receive events over HTTPS, and the state of their deliveries. */
export function WebhooksPage() {
  const rights = useRights();
  const [editing, setEditing] = useState<Webhook | "new" | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  const { webhook: chosen } = useSearch();
  const setSearch = useSetSearch();
  const read = useRead(["webhooks"], (signal) => webhooks.listWebhooks({ pageSize: MOST_LISTED }, { signal }), {
    // React to every event, because an event of any type may have been delivered.
    on: EVERY_EVENT,
    gatherMs: RARE_MS,
  });
  const all = read.data?.webhooks ?? [];
  const test = async (name: string) => {
    try {
      const { delivered, statusCode, failure } = await webhooks.testWebhook({ name });
      const status = statusCode === 0 ? "" : ` (${statusCode})`;
      say(
        delivered ? "good" : "bad",
        delivered ? `${name} accepted the test${status}` : `${name}: ${failure}${status}`,
      );
    } catch (cause) {
      sayFailure(`Test ${name}`, cause);
    }
  };
  return (
    <>
      <PageHead title="Webhooks">
        {rights.administer && (
          <Button look="primary" disabled={read.data === undefined} onClick={() => setEditing("new")}>
            Set a webhook
          </Button>
        )}
        <Button onClick={() => read.refetch()}>Refresh</Button>
        <ExportMenu name="webhooks" of={() => all.map(valuesOf)} />
        <CopyCommandButton
          text={command("webhook", "list")}
          more={chosen === undefined ? [] : [command("webhook", "show", chosen)]}
        />
      </PageHead>
      <div className="page-body">
        {editing !== null && (
          <WebhookForm
            key={editing === "new" ? "new" : editing.etag}
            webhook={editing === "new" ? null : editing}
            names={all.map(({ name }) => name)}
            onDone={() => setEditing(null)}
            onSet={() => read.refetch()}
          />
        )}
        <Panel title="Webhooks" flush>
          <Read from={read}>
            {({ webhooks: listed }) =>
              listed.length === 0 ? (
                <Empty title="No webhooks">
                  <p>A webhook posts signed events to your URL, each at least once.</p>
                </Empty>
              ) : (
                <DataTable
                  label="Webhooks"
                  rows={listed}
                  keyOf={({ name }) => name}
                  columns={[
                    {
                      title: "Name",
                      cell: ({ name }) => (
                        <button type="button" className="link" onClick={() => setSearch({ webhook: name })}>
                          {name}
                        </button>
                      ),
                    },
                    { title: "To", cell: ({ spec }) => <span className="breaks">{spec?.url}</span> },
                    {
                      title: "State",
                      cell: ({ status }) => (
                        <StateMark
                          word={enumWord(WebhookStateSchema, status?.state)}
                          title={[status?.pauseReason, status?.pauseMessage].filter(Boolean).join(": ")}
                        />
                      ),
                    },
                    { title: "Behind", right: true, cell: ({ status }) => formatCount(Number(status?.behind ?? 0n)) },
                    { title: "Blocked", right: true, cell: ({ status }) => status?.blockedSubjects ?? 0 },
                    { title: "Delivered", cell: ({ status }) => <Time ms={toMs(status?.successTime)} /> },
                    { title: "Failed", cell: ({ status }) => <Time ms={toMs(status?.failureTime)} /> },
                    { title: "Why", cell: ({ status }) => <span className="breaks">{status?.failure || "-"}</span> },
                    {
                      title: "",
                      cell: (webhook) => (
                        <span className="row tight">
                          <Button small onClick={() => test(webhook.name)}>
                            Test
                          </Button>
                          <Menu
                            look="small"
                            label={`More actions for ${webhook.name}`}
                            items={[
                              { label: "Change", onSelect: () => setEditing(webhook) },
                              webhook.status?.pauseReason === ""
                                ? { label: "Pause", onSelect: () => setAsked({ verb: "pause", webhook }) }
                                : { label: "Resume", onSelect: () => setAsked({ verb: "resume", webhook }) },
                              { label: "Deliver again", onSelect: () => setAsked({ verb: "replay", webhook }) },
                              null,
                              { label: "Delete", danger: true, onSelect: () => setAsked({ verb: "delete", webhook }) },
                            ]}
                          >
                            More
                          </Menu>
                        </span>
                      ),
                    },
                  ]}
                />
              )
            }
          </Read>
        </Panel>
        {chosen !== undefined && <WebhookPanel name={chosen} onClose={() => setSearch({ webhook: undefined })} />}
      </div>
      {asked !== null && <WebhookDialog {...asked} onClose={() => setAsked(null)} onDone={() => read.refetch()} />}
    </>
  );
}

const LABELS = { pause: "Pause", resume: "Resume", replay: "Deliver again", delete: "Delete" } as const;
const TELLS = {
  pause: "Events that occur while it is paused are delivered when you resume it, if the log still has them.",
  resume: "Deliveries continue where they stopped.",
  replay: "All events in the log are delivered again in order, from the oldest.",
  delete: "Deliveries in progress may still arrive, but no others. The secret is deleted.",
} as const;

function WebhookDialog({
  verb,
  webhook: { name, spec, etag },
  onClose,
  onDone,
}: Asked & { readonly onClose: () => void; readonly onDone: () => unknown }) {
  const words = {
    pause: ["set", name, "--pause"],
    resume: ["set", name, "--resume"],
    replay: ["replay", name, "--from", "0"],
    delete: ["delete", name],
  }[verb];
  const run = async (reason: string) => {
    const common = { name, reason, requestId: crypto.randomUUID() };
    if (verb === "replay") await webhooks.replayDeliveries({ ...common, fromRevision: 0n });
    else if (verb === "delete") await webhooks.deleteWebhook({ ...common, etag });
    else if (spec !== undefined) {
      await webhooks.setWebhook({ ...common, etag, spec: { ...spec, paused: verb === "pause" } });
    }
    await onDone();
  };
  return (
    <ReasonDialog
      title={`${LABELS[verb]}: ${name}`}
      verb={LABELS[verb]}
      danger={verb === "delete"}
      commandOf={(reason) => command("webhook", ...words, ...(reason === "" ? [] : ["-m", reason]))}
      run={run}
      onClose={onClose}
    >
      <p className="soft">{TELLS[verb]}</p>
    </ReasonDialog>
  );
}

function valuesOf({ name, spec, status }: Webhook) {
  return {
    name,
    url: spec?.url ?? "",
    state: enumWord(WebhookStateSchema, status?.state),
    pause_reason: status?.pauseReason ?? "",
    revision: Number(status?.revision ?? 0n),
    behind: Number(status?.behind ?? 0n),
    blocked_subjects: status?.blockedSubjects ?? 0,
    delivered: isoTime(toMs(status?.successTime)),
    failed: isoTime(toMs(status?.failureTime)),
    failure: status?.failure ?? "",
    description: spec?.description ?? "",
  };
}
