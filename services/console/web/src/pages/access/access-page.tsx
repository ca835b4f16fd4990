import {
  type AccessToken,
  AccessTokenKind,
  AccessTokenStateSchema,
  Role,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { useState } from "react";
import { ReasonDialog } from "../../actions/reason-dialog.tsx";
import { useSearch, useSetSearch } from "../../app/address.ts";
import { access } from "../../live/clients.ts";
import { useRead } from "../../live/queries.ts";
import { useRights } from "../../session/session.ts";
import { command } from "../../state/cli-command.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { roleWord } from "../../state/roles.ts";
import { isoTime } from "../../state/time-words.ts";
import { enumWord } from "../../state/words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { type DataColumn, DataTable } from "../../ui/data-table.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { Check } from "../../ui/field.tsx";
import { CutShort, Empty, Read } from "../../ui/notices.tsx";
import { PageHead, Panel } from "../../ui/panel.tsx";
import { StateMark } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";
import { NewToken } from "./new-token.tsx";

/** Tokens of people and programs, and browser sessions. */
export function AccessPage() {
  const rights = useRights();
  const ended = useSearch().ended === "1";
  const setSearch = useSetSearch();
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<AccessToken | null>(null);
  const read = useRead(
    ["access-tokens", ended],
    (signal) => access.listAccessTokens({ pageSize: 500, showEnded: ended }, { signal }),
    { on: ["access.token."] },
  );
  const revoke = {
    title: "",
    cell: (token: AccessToken) =>
      enumWord(AccessTokenStateSchema, token.state) === "VALID" ? (
        <Button small look="danger" onClick={() => setRevoking(token)}>
          Revoke
        </Button>
      ) : null,
  };
  return (
    <>
      <PageHead title="Access">
        <Check checked={ended} onChange={(on) => setSearch({ ended: on ? "1" : undefined })}>
          Include expired and revoked
        </Check>
        {rights.administer && (
          <Button look="primary" onClick={() => setMaking(true)}>
            Create a token
          </Button>
        )}
        <ExportMenu name="access" of={() => (read.data?.accessTokens ?? []).map(valuesOf)} />
        <CopyCommandButton text={command("access", "list", ...(ended ? ["--all"] : []))} />
      </PageHead>
      <div className="page-body">
        <Read from={read}>
          {({ accessTokens, nextPageToken }) => {
            const isSession = ({ kind }: AccessToken) => kind === AccessTokenKind.CONSOLE_SESSION;
            const sessions = accessTokens.filter(isSession);
            return (
              <>
                <Panel title="Access tokens" flush>
                  <DataTable
                    label="Access tokens"
                    rows={accessTokens.filter((token) => !isSession(token))}
                    keyOf={({ id }) => id}
                    columns={[
                      { title: "Name", cell: ({ name }) => <span className="breaks">{name}</span> },
                      ...COLUMNS,
                      revoke,
                    ]}
                  />
                  <CutShort next={nextPageToken} command={command("access", "list")} />
                </Panel>
                <Panel title="Browser sessions" flush>
                  {sessions.length === 0 ? (
                    <Empty title="No sessions" />
                  ) : (
                    <DataTable
                      label="Sessions"
                      rows={sessions}
                      keyOf={({ id }) => id}
                      columns={[
                        {
                          title: "Browser",
                          cell: ({ name, creator }) => <span className="breaks">{name || creator}</span>,
                        },
                        ...COLUMNS,
                        revoke,
                      ]}
                    />
                  )}
                </Panel>
              </>
            );
          }}
        </Read>
      </div>
      {making && <NewToken onClose={() => setMaking(false)} onMade={() => read.refetch()} />}
      {revoking !== null && (
        <ReasonDialog
          title={`Revoke ${revoking.name || revoking.id}`}
          verb="Revoke"
          danger
          commandOf={(reason) => command("access", "revoke", revoking.id, ...(reason === "" ? [] : ["-m", reason]))}
          run={async (reason) => {
            await access.revokeAccessToken({ id: revoking.id, reason, requestId: crypto.randomUUID() });
            await read.refetch();
          }}
          onClose={() => setRevoking(null)}
        >
          <p className="soft">
            All processes refuse it within a second; its sessions and streams end within a few seconds.
          </p>
        </ReasonDialog>
      )}
    </>
  );
}

function valuesOf(token: AccessToken) {
  const { id, name, role, creator, createTime, expireTime, lastUseTime, kind, state } = token;
  return {
    id,
    name,
    kind: kind === AccessTokenKind.CONSOLE_SESSION ? "session" : "token",
    role: role === Role.UNSPECIFIED ? "" : roleWord(role),
    state: enumWord(AccessTokenStateSchema, state),
    creator,
    created: isoTime(toMs(createTime)),
    expires: isoTime(toMs(expireTime)),
    last_used: isoTime(toMs(lastUseTime)),
  };
}

const COLUMNS: readonly DataColumn<AccessToken>[] = [
  { title: "Id", cell: ({ id }) => <code>{id}</code> },
  { title: "Role", cell: ({ role }) => (role === Role.UNSPECIFIED ? "-" : roleWord(role)) },
  { title: "State", cell: ({ state }) => <StateMark word={enumWord(AccessTokenStateSchema, state)} /> },
  { title: "Created by", cell: ({ creator }) => <span className="breaks">{creator}</span> },
  { title: "Created", cell: ({ createTime }) => <Time ms={toMs(createTime)} /> },
  { title: "Expires", cell: ({ expireTime }) => (expireTime === undefined ? "never" : <Time ms={toMs(expireTime)} />) },
  { title: "Last used", cell: ({ lastUseTime }) => <Time ms={toMs(lastUseTime)} /> },
];
