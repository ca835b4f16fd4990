import { type Brake, BrakeService, BrakeState, BrakeStateSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { useState } from "react";
import { ReasonDialog } from "../../actions/reason-dialog.tsx";
import { clientOf } from "../../live/clients.ts";
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
import { Notice, Read } from "../../ui/notices.tsx";
import { PageHead, Panel } from "../../ui/panel.tsx";
import { StateMark } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";

const client = clientOf(BrakeService);

interface Wanted {
  readonly verb: "freeze" | "release" | "release now";
  readonly group: string;
}

/** The brake, which delays reactions while many nodes are lost at once. */
export function BrakePage() {
  const rights = useRights();
  const [wanted, setWanted] = useState<Wanted | null>(null);
  const read = useRead(["brake"], (signal) => client.getBrake({}, { signal }), {
    on: ["brake.", "node.reactions", "node.health"],
  });
  return (
    <>
      <PageHead title="Brake">
        <ExportMenu name="brakes" of={() => (read.data?.brakes ?? []).map(valuesOf)} />
        <CopyCommandButton text={command("brake", "status")} />
      </PageHead>
      <div className="page-body">
        <p className="soft">
          When more than 55 % of a group is silent or was lost within a minute, health is still reported, but reactions
          to the losses are held back.
        </p>
        <Read from={read}>
          {({ brakes, decider }) => (
            <>
              {decider === "" && <Notice tone="bad">No process is running the brake, so nothing is released.</Notice>}
              <Panel title="Groups" flush>
                <DataTable
                  label="Brakes"
                  rows={brakes}
                  keyOf={({ group }) => group}
                  columns={[
                    { title: "Group", cell: ({ group }) => <code>{group}</code> },
                    { title: "Brake", cell: (brake) => <StateMark word={enumWord(BrakeStateSchema, brake.state)} /> },
                    { title: "Since", cell: ({ since }) => <Time ms={toMs(since)} /> },
                    { title: "Size", right: true, cell: ({ size }) => size },
                    { title: "Silent", right: true, cell: ({ silent }) => silent },
                    { title: "Lost", right: true, cell: ({ lost }) => lost },
                    { title: "Held back", right: true, cell: ({ pending }) => pending },
                    {
                      title: "Released per minute",
                      right: true,
                      cell: ({ releasedPerMinute }) => releasedPerMinute || "-",
                    },
                    {
                      title: "Frozen",
                      cell: ({ frozenBy, frozenReason }) => [frozenBy, frozenReason].filter(Boolean).join(": ") || "-",
                    },
                    {
                      title: "",
                      cell: (brake) => (rights.operate ? <Actions brake={brake} onWant={setWanted} /> : null),
                    },
                  ]}
                />
              </Panel>
              <p className="soft small">The brake runs in {decider || "no process"}</p>
            </>
          )}
        </Read>
      </div>
      {wanted !== null && <BrakeDialog {...wanted} onClose={() => setWanted(null)} onDone={() => read.refetch()} />}
    </>
  );
}

function Actions({
  brake: { group, state, pending },
  onWant,
}: {
  readonly brake: Brake;
  readonly onWant: (wanted: Wanted) => void;
}) {
  return (
    <span className="row tight">
      {state === BrakeState.FROZEN ? (
        <Button small onClick={() => onWant({ verb: "release", group })}>
          Release
        </Button>
      ) : (
        <Button small onClick={() => onWant({ verb: "freeze", group })}>
          Freeze
        </Button>
      )}
      {pending > 0 && (
        <Button small look="danger" onClick={() => onWant({ verb: "release now", group })}>
          Release {pending} now
        </Button>
      )}
    </span>
  );
}

function BrakeDialog({
  verb,
  group,
  onClose,
  onDone,
}: Wanted & { readonly onClose: () => void; readonly onDone: () => unknown }) {
  const label = { freeze: "Freeze", release: "Release", "release now": "Release now" }[verb];
  const tells = {
    freeze: "All reactions to losses are delayed until the brake is released.",
    release: "The freeze is lifted: the brake decides automatically again.",
    "release now":
      "All delayed reactions are released now, whatever the brake decides. Work on those nodes is replaced.",
  }[verb];
  const words = verb === "freeze" ? ["freeze"] : ["release", ...(verb === "release now" ? ["--now"] : [])];
  const run = async (reason: string) => {
    const request = { group, reason, requestId: crypto.randomUUID() };
    if (verb === "freeze") await client.freezeReactions(request);
    else await client.releaseReactions({ ...request, now: verb === "release now" });
    onDone();
  };
  return (
    <ReasonDialog
      title={`${label}: ${group}`}
      verb={label}
      danger={verb === "release now"}
      commandOf={(reason) => command("brake", ...words, "--group", group, ...(reason === "" ? [] : ["-m", reason]))}
      run={run}
      onClose={onClose}
    >
      <p className="soft">{tells}</p>
    </ReasonDialog>
  );
}

function valuesOf(brake: Brake) {
  const { group, size, silent, lost, pending, frozenBy, frozenReason } = brake;
  return {
    group,
    state: enumWord(BrakeStateSchema, brake.state),
    since: isoTime(toMs(brake.since)),
    ...{ size, silent, lost, pending },
    "released-per-minute": brake.releasedPerMinute,
    "frozen-by": frozenBy,
    "frozen-reason": frozenReason,
  };
}
