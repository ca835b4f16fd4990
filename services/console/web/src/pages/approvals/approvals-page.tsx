import { useEffect, useMemo, useState } from "react";
import { useSearch, useSetSearch } from "../../app/address.ts";
import { usePageKeys } from "../../app/shell-keys.ts";
import { fleet, useFleet, useLook } from "../../live/fleet.ts";
import { useObservable } from "../../live/observable.ts";
import { useRights } from "../../session/session.ts";
import { listCommand, nodeCommand } from "../../state/cli-command.ts";
import { NO_FILTER } from "../../state/nodes/node-filter.ts";
import { exportedAmount, type NodeRow } from "../../state/nodes/node-row.ts";
import type { NodeScope } from "../../state/nodes/node-scope.ts";
import { isoTime } from "../../state/time-words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommand, CopyCommandButton } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { Field } from "../../ui/field.tsx";
import { Empty, Loading } from "../../ui/notices.tsx";
import { PageHead } from "../../ui/panel.tsx";
import { Time } from "../../ui/time.tsx";
import { Applicant } from "./applicant.tsx";
import { decide, waiting } from "./decisions.ts";

const WAITING = { ...NO_FILTER, approval: ["PENDING"] };
const PENDING: NodeScope = { filter: WAITING, by: "created", reversed: false };
/** Maximum number of machines in the list. More appear as the user decides about these. */
const MOST_LISTED = 200;

/** Machines that wait for a decision, to be handled one by one with the keyboard. */
export function ApprovalsPage() {
  const rights = useRights();
  const nodes = useFleet();
  const { complete } = nodes;
  useLook(PENDING);
  const decided = useObservable(waiting);
  const [chosen, setChosen] = useState<string | null>(useSearch().node ?? null);
  const setSearch = useSetSearch();
  /** Select a machine, and put it into the address so that the user can share it. */
  const choose = (id: string | null) => {
    setChosen(id);
    setSearch({ node: id ?? undefined });
  };
  const [rejecting, setRejecting] = useState<readonly string[] | null>(null);
  const pending = useMemo(
    () =>
      [...nodes.rows.values()]
        .filter((row) => row.type === "compute" && row.membership.word === "PENDING")
        .sort((a, b) => (a.createdMs ?? 0) - (b.createdMs ?? 0) || (a.id < b.id ? -1 : 1)),
    [nodes],
  );
  // Each decision and each loaded page can make room for more machines.
  useEffect(() => {
    if (pending.length < MOST_LISTED) fleet.more();
  }, [pending]);
  const gone = useMemo(() => new Set(decided.flatMap(({ what }) => what.ids)), [decided]);
  const rows = useMemo(() => pending.filter(({ id }) => !gone.has(id)), [pending, gone]);
  // When the selected machine leaves the list, select no other, because a key press would decide about a machine
  // that the user has not seen.
  const at = chosen === null ? 0 : rows.findIndex(({ id }) => id === chosen);
  const row = rows[at];
  // Keep the scroll position when another machine arrives or leaves.
  useEffect(() => {
    if (row !== undefined && row.id !== chosen) setChosen(row.id);
    if (rows.length === 0 && complete) setChosen(null);
  }, [row, rows, chosen, complete]);
  const next = () => choose(rows[at + 1]?.id ?? rows[at - 1]?.id ?? null);
  const approve = (ids: readonly string[]) => {
    next();
    decide({ verb: "approve", ids, reason: "" });
  };
  const keys = {
    j: { does: "Next machine", run: () => choose(rows[Math.min(at + 1, rows.length - 1)]?.id ?? null) },
    k: { does: "Previous machine", run: () => choose(rows[Math.max(at - 1, 0)]?.id ?? null) },
    ...(rights.operate
      ? {
          a: { does: "Approve", run: () => row !== undefined && approve([row.id]) },
          r: { does: "Reject, with a reason", run: () => row !== undefined && setRejecting([row.id]) },
        }
      : {}),
  };
  usePageKeys(keys);
  return (
    <>
      <PageHead title="Approvals">
        {rights.operate && rows.length > 1 && (
          <>
            <Button onClick={() => approve(rows.map(({ id }) => id))}>Approve all {rows.length}</Button>
            <Button look="danger" onClick={() => setRejecting(rows.map(({ id }) => id))}>
              Reject all
            </Button>
          </>
        )}
        <ExportMenu name="approvals" of={() => rows.map(valuesOf)} />
        <CopyCommandButton
          text={listCommand(WAITING, { by: "id", reversed: false })}
          more={row === undefined || !rights.operate ? [] : [nodeCommand("approve", [row.id])]}
        />
      </PageHead>
      <div className="page-body">
        {rows.length === 0 && !complete ? (
          <Loading />
        ) : rows.length === 0 ? (
          <section className="panel">
            <Empty title="No machine is waiting">
              <p>When manual approval is on, machines that register without a preauthorized token appear here.</p>
            </Empty>
          </section>
        ) : (
          <div className="split">
            <nav className="panel" aria-label="Waiting machines">
              <ul style={{ listStyle: "none", padding: 4, maxHeight: "70vh", overflow: "auto" }}>
                {rows.slice(0, MOST_LISTED).map((one) => (
                  <li key={one.id}>
                    <WaitingLine row={one} chosen={one.id === row?.id} onChoose={() => choose(one.id)} />
                  </li>
                ))}
              </ul>
            </nav>
            {row === undefined && !complete ? (
              <Loading />
            ) : row === undefined ? (
              <section className="panel">
                <Empty title="Already decided">
                  <p>{chosen} is no longer pending. Select another machine.</p>
                </Empty>
              </section>
            ) : (
              <Applicant row={row}>
                {rights.operate && (
                  <div className="row">
                    <Button look="primary" onClick={() => approve([row.id])}>
                      Approve <kbd>a</kbd>
                    </Button>
                    <Button look="danger" onClick={() => setRejecting([row.id])}>
                      Reject <kbd>r</kbd>
                    </Button>
                  </div>
                )}
              </Applicant>
            )}
          </div>
        )}
      </div>
      {rejecting !== null && (
        <RejectDialog
          ids={rejecting}
          onClose={() => setRejecting(null)}
          onReject={(reason) => {
            next();
            setRejecting(null);
            decide({ verb: "reject", ids: rejecting, reason });
          }}
        />
      )}
    </>
  );
}

/** The exported values of a waiting machine: its identity, address and hardware. */
function valuesOf(row: NodeRow) {
  return {
    node: row.id,
    since: isoTime(row.membership.sinceMs),
    from: row.joinedFrom,
    hostname: row.hostname,
    macs: row.macs.join(" "),
    cores: row.cores,
    memory: exportedAmount(row, "memory", row.memoryBytes),
    disk: exportedAmount(row, "disk", row.diskBytes),
    gpus: row.gpus,
    "gpu-models": row.gpuModels,
    os: row.os,
    architecture: row.architecture,
    version: row.version,
    labels: row.labelsText,
    key: row.keyFingerprint,
    "join-token": row.joinTokenId,
  };
}

function WaitingLine({
  row,
  chosen,
  onChoose,
}: {
  readonly row: NodeRow;
  readonly chosen: boolean;
  readonly onChoose: () => void;
}) {
  return (
    <button
      type="button"
      className="menu-item"
      aria-current={chosen}
      style={{ width: "100%", border: 0, textAlign: "left", background: chosen ? "var(--selected)" : "none" }}
      onClick={onChoose}
    >
      <span className="cut">{row.id}</span>
      <span className="soft small">
        <Time ms={row.createdMs} />
      </span>
    </button>
  );
}

function RejectDialog({
  ids,
  onClose,
  onReject,
}: {
  readonly ids: readonly string[];
  readonly onClose: () => void;
  readonly onReject: (reason: string) => void;
}) {
  const [reason, setReason] = useState("");
  const subject = ids.length === 1 ? (ids[0] ?? "") : `${ids.length} machines`;
  return (
    <Dialog title={`Reject ${subject}`} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (reason.trim() !== "") onReject(reason.trim());
        }}
      >
        <Field
          label="Reason"
          hint="Stored, and shown to the machine"
          maxLength={1024}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          autoFocus
        />
        <CopyCommand text={nodeCommand("reject", ids, reason.trim())} label="Command line" />
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" type="submit" disabled={reason.trim() === ""}>
            Reject {subject}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
