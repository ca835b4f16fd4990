import { type JoinToken, JoinTokenService, JoinTokenStateSchema } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { useState } from "react";
import { ReasonDialog } from "../../actions/reason-dialog.tsx";
import { useSearch } from "../../app/address.ts";
import { clientOf, registry } from "../../live/clients.ts";
import { useRead } from "../../live/queries.ts";
import { useRights } from "../../session/session.ts";
import { command } from "../../state/cli-command.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { isoTime } from "../../state/time-words.ts";
import { enumWord } from "../../state/words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { CutShort, Empty, Notice, Read } from "../../ui/notices.tsx";
import { PageHead, Panel } from "../../ui/panel.tsx";
import { StateMark } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";
import { JoinedNodes } from "./joined-nodes.tsx";
import { TokenForm } from "./token-form.tsx";
import { TokenMade } from "./token-made.tsx";

const tokens = clientOf(JoinTokenService);

/** Lets machines join: create a token, copy the command, and watch the machines appear. */
export function JoinPage() {
  const rights = useRights();
  const { token: shownId } = useSearch();
  const [made, setMade] = useState<{ readonly id: string; readonly text: string } | null>(null);
  const [revoking, setRevoking] = useState<string | null>(null);
  const list = useRead(["join-tokens"], (signal) => tokens.listJoinTokens({ pageSize: 200 }, { signal }), {
    on: ["join.token.", "node.registered"],
  });
  const status = useRead(["status"], (signal) => registry.getControlPlaneStatus({}, { signal }), {
    on: ["node.registered", "join.token"],
  });
  return (
    <>
      <PageHead title="Join">
        <ExportMenu name="join-tokens" of={() => (list.data?.tokens ?? []).map(valuesOf)} />
        <CopyCommandButton text={command("token", "list")} />
      </PageHead>
      <div className="page-body">
        {status.data?.joining?.warnings.map((warning) => (
          <Notice key={warning} tone="warn">
            {warning}
          </Notice>
        ))}
        {made !== null && <TokenMade {...made} onDone={() => setMade(null)} />}
        {rights.operate && made === null && (
          <TokenForm onMade={setMade} waitsForApproval={status.data?.joining?.manualApproval ?? false} />
        )}
        {shownId !== undefined && <JoinedNodes tokenId={shownId} />}
        <Panel title="Join tokens" flush>
          <Read from={list}>
            {({ tokens: all, nextPageToken }) =>
              all.length === 0 ? (
                <Empty title="No join tokens" />
              ) : (
                <>
                  <DataTable
                    label="Join tokens"
                    rows={all}
                    keyOf={({ id }) => id}
                    columns={[
                      { title: "Token", cell: ({ id }) => <code>{id}</code> },
                      {
                        title: "Description",
                        cell: ({ description }) => <span className="breaks">{description || "-"}</span>,
                      },
                      {
                        title: "State",
                        cell: ({ state }) => <StateMark word={enumWord(JoinTokenStateSchema, state)} />,
                      },
                      { title: "Uses", right: true, cell: ({ uses, maxUses }) => `${uses} / ${maxUses || "∞"}` },
                      { title: "Names", cell: ({ nodeNamePattern }) => nodeNamePattern || "any" },
                      {
                        title: "Grants",
                        cell: ({ labels, preauthorized, ephemeral }) => (
                          <span className="chips">
                            {preauthorized && <span className="chip">preauthorized</span>}
                            {ephemeral && <span className="chip">ephemeral</span>}
                            {Object.entries(labels).map(([key, value]) => (
                              <span key={key} className="chip cut">{`${key}=${value}`}</span>
                            ))}
                          </span>
                        ),
                      },
                      {
                        title: "Expires",
                        cell: ({ expireTime }) => (expireTime === undefined ? "never" : <Time ms={toMs(expireTime)} />),
                      },
                      { title: "Created", cell: ({ createTime }) => <Time ms={toMs(createTime)} /> },
                      {
                        title: "",
                        cell: ({ id, state }) =>
                          rights.operate && enumWord(JoinTokenStateSchema, state) === "ACTIVE" ? (
                            <Button small look="danger" onClick={() => setRevoking(id)}>
                              Revoke
                            </Button>
                          ) : null,
                      },
                    ]}
                  />
                  <CutShort next={nextPageToken} command={command("token", "list")} />
                </>
              )
            }
          </Read>
        </Panel>
      </div>
      {revoking !== null && (
        <ReasonDialog
          title={`Revoke the join token ${revoking}`}
          verb="Revoke"
          danger
          commandOf={(reason) => command("token", "revoke", revoking, ...(reason === "" ? [] : ["-m", reason]))}
          run={(reason) => tokens.revokeJoinToken({ id: revoking, reason, requestId: crypto.randomUUID() })}
          onClose={() => setRevoking(null)}
        >
          <p className="soft">Machines can no longer join with it. Nodes that already joined stay.</p>
        </ReasonDialog>
      )}
    </>
  );
}

function valuesOf(token: JoinToken) {
  return {
    id: token.id,
    description: token.description,
    state: enumWord(JoinTokenStateSchema, token.state),
    uses: token.uses,
    "max-uses": token.maxUses,
    names: token.nodeNamePattern,
    preauthorized: String(token.preauthorized),
    ephemeral: String(token.ephemeral),
    labels: Object.entries(token.labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(","),
    expires: isoTime(toMs(token.expireTime)),
    created: isoTime(toMs(token.createTime)),
  };
}
