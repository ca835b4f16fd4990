import { type HealthPolicy, HealthPolicyService } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { POLICY_FIELDS } from "@rollcall/domain/policy-fields";
import { useState } from "react";
import { ReasonDialog } from "../../actions/reason-dialog.tsx";
import { clientOf } from "../../live/clients.ts";
import { useRead } from "../../live/queries.ts";
import { useTokenNames } from "../../live/token-names.ts";
import { useRights } from "../../session/session.ts";
import { command } from "../../state/cli-command.ts";
import { actorName } from "../../state/events/event-groups.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { policyFieldWords, policyValueText, scopeText, scopeWords } from "../../state/policy-values.ts";
import { isoTime } from "../../state/time-words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { CutShort, Empty, Read } from "../../ui/notices.tsx";
import { PageHead, Panel } from "../../ui/panel.tsx";
import { Time } from "../../ui/time.tsx";
import { PolicyForm } from "./policy-form.tsx";

const policies = clientOf(HealthPolicyService);
const NAMES = Object.values(POLICY_FIELDS).map(({ name }) => name);

/** The failure detector's thresholds: the configured defaults, and the policies that override them. */
export function PoliciesPage() {
  const rights = useRights();
  const names = useTokenNames();
  const [editing, setEditing] = useState<HealthPolicy | "new" | null>(null);
  const [removing, setRemoving] = useState<HealthPolicy | null>(null);
  const read = useRead(["policies"], (signal) => policies.listHealthPolicies({ pageSize: 500 }, { signal }), {
    on: ["policy."],
  });
  return (
    <>
      <PageHead title="Health policies">
        {rights.operate && (
          <Button look="primary" onClick={() => setEditing("new")}>
            Set a policy
          </Button>
        )}
        <ExportMenu name="policies" of={() => (read.data?.policies ?? []).map(valuesOf)} />
        <CopyCommandButton text={command("policy", "list")} />
      </PageHead>
      <div className="page-body">
        <p className="soft">
          A node's policy merges, in this order, the configuration, the default policy, the policies of matching groups
          from lowest to highest priority, and the node's own policy. Later values override earlier ones.
        </p>
        {editing !== null && (
          <PolicyForm
            key={editing === "new" ? "new" : editing.etag}
            policy={editing === "new" ? null : editing}
            policies={read.data?.policies ?? []}
            configuration={read.data?.configuration}
            onDone={() => {
              setEditing(null);
              read.refetch();
            }}
          />
        )}
        <Read from={read}>
          {({ policies: all, configuration, nextPageToken }) => (
            <>
              <Panel title="Policies" flush>
                {all.length === 0 ? (
                  <Empty title="No policies">
                    <p>All nodes use the configured values.</p>
                  </Empty>
                ) : (
                  <DataTable
                    label="Policies"
                    rows={all}
                    keyOf={({ scope }) => scopeWords(scope).join(" ")}
                    columns={[
                      { title: "For", cell: ({ scope }) => <strong className="breaks">{scopeText(scope)}</strong> },
                      { title: "Selector", cell: ({ selector }) => <code className="breaks">{selector || "-"}</code> },
                      { title: "Priority", right: true, cell: ({ priority }) => priority },
                      {
                        title: "Sets",
                        cell: ({ values }) => (
                          <span className="chips">
                            {NAMES.flatMap((name) => {
                              const text = policyValueText(values, name);
                              return text === ""
                                ? []
                                : [<span key={name} className="chip">{`${policyFieldWords(name)} ${text}`}</span>];
                            })}
                          </span>
                        ),
                      },
                      { title: "Why", cell: ({ reason }) => <span className="breaks">{reason || "-"}</span> },
                      { title: "By", cell: ({ actor }) => <span title={actor}>{actorName(actor, names)}</span> },
                      { title: "Set", cell: ({ updateTime }) => <Time ms={toMs(updateTime)} /> },
                      {
                        title: "",
                        cell: (policy) =>
                          rights.operate ? (
                            <span className="row tight">
                              <Button small onClick={() => setEditing(policy)}>
                                Change
                              </Button>
                              <Button small look="danger" onClick={() => setRemoving(policy)}>
                                Delete
                              </Button>
                            </span>
                          ) : null,
                      },
                    ]}
                  />
                )}
                <CutShort next={nextPageToken} command={command("policy", "list")} />
              </Panel>
              <Panel title="Configuration" flush>
                <DataTable
                  label="Configuration"
                  rows={Object.values(POLICY_FIELDS)}
                  keyOf={({ name }) => name}
                  columns={[
                    { title: "Value", cell: ({ name }) => policyFieldWords(name) },
                    { title: "Current value", cell: ({ name }) => policyValueText(configuration, name) || "-" },
                    { title: "Meaning", cell: ({ doc }) => doc },
                  ]}
                />
              </Panel>
            </>
          )}
        </Read>
      </div>
      {removing?.scope !== undefined && (
        <ReasonDialog
          title={`Delete the policy for ${scopeText(removing.scope)}`}
          verb="Delete"
          danger
          commandOf={(reason) =>
            command("policy", "delete", ...scopeWords(removing.scope), ...(reason === "" ? [] : ["-m", reason]))
          }
          run={async (reason) => {
            const { scope, etag } = removing;
            if (scope !== undefined)
              await policies.deleteHealthPolicy({ scope, etag, reason, requestId: crypto.randomUUID() });
            await read.refetch();
          }}
          onClose={() => setRemoving(null)}
        >
          <p className="soft">Its nodes fall back to lower-priority policies or the configuration for these values.</p>
        </ReasonDialog>
      )}
    </>
  );
}

function valuesOf({ scope, selector, priority, values, reason, actor, updateTime }: HealthPolicy) {
  return {
    for: scopeText(scope),
    selector,
    priority,
    ...Object.fromEntries(NAMES.map((name) => [name, policyValueText(values, name)])),
    reason,
    actor,
    set: isoTime(toMs(updateTime)),
  };
}
