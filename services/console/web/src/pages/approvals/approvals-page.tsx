import { useEffect, useMemo, useState } from "react";
import { useSearch, useSetSearch } from "../../app/address.ts";
import { usePageKeys } from "../../app/shell-keys.ts";
import { fleet, useLook } from "../../live/fleet.ts";
import { useObservable } from "../../live/observable.ts";
import { useRights } from "../../session/session.ts";
import { listCommand, nodeCommand } from "../../state/cli-command.ts";
import { NO_FILTER } from "../../state/nodes/node-filter.ts";
import type { NodeRow } from "../../state/nodes/node-row.ts";
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
/** More than these are not listed at once; the list goes on as they are decided. */
const MOST_LISTED = 200;

/** Machines that wait for a decision, one after the other, by keys. */
export function ApprovalsPage() {
  const rights = useRights();
  const version = useObservable(fleet.version);
  const complete = useObservable(fleet.complete);
  useLook(PENDING);
  const decided = useObservable(waiting);
  const [chosen, setChosen] = useState<string | null>(useSearch().node ?? null);
  const setSearch = useSetSearch();
  /** Choose, and have the address say so, by which one machine can be shown to others. */
  const choose = (id: string | null) => {
    setChosen(id);
    setSearch({ node: id ?? undefined });
  };
  const [rejecting, setRejecting] = useState<readonly string[] | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version stands for the rows, which change in place.
  const pending = useMemo(
    () =>
      [...fleet.rows.values()]
        .filter((row) => row.type === "compute" && row.membership.word === "PENDING")
        .sort((a, b) => (a.createdMs ?? 0) - (b.createdMs ?? 0) || (a.id < b.id ? -1 : 1)),
    [version],
  );
  const isShort = pending.length < MOST_LISTED;
  // biome-ignore lint/correctness/useExhaustiveDependencies: as the first are decided, the next are read.
  useEffect(() => {
    if (isShort) fleet.more();
  }, [isShort, version]);
  const gone = useMemo(() => new Set(decided.flatMap(({ what }) => what.ids)), [decided]);
  const rows = useMemo(() => pending.filter(({ id }) => !gone.has(id)), [pending, gone]);
  // Once the chosen one has left the list no other takes its place: a key would decide on one that was not looked at.
  const at = chosen === null ? 0 : rows.findIndex(({ id }) => id === chosen);
  const row = rows[at];
  // What is shown stays shown when another one arrives or leaves.
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
    k: { does: "Machine before", run: () => choose(rows[Math.max(at - 1, 0)]?.id ?? null) },
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
        <CopyCommandButton text={listCommand(WAITING, { by: "id", reversed: false })} />
      </PageHead>
      <div className="page-body">
        {rows.length === 0 && !complete ? (
          <Loading />
        ) : rows.length === 0 ? (
          <section className="panel">
            <Empty title="No machine waits">
              <p>Machines that register under manual approval, without a preauthorized token, wait here.</p>
            </Empty>
          </section>
        ) : (
          <div className="split">
            <nav className="panel" aria-label="Machines that wait">
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
                <Empty title="It has been decided">
                  <p>{chosen} waits no more. Choose another machine.</p>
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
                    <CopyCommandButton text={nodeCommand("approve", [row.id])} />
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

/** What is exported of a machine that waits: who, from where, and what it is. */
function valuesOf(row: NodeRow) {
  return {
    node: row.id,
    since: isoTime(row.membership.sinceMs),
    from: row.joinedFrom,
    hostname: row.hostname,
    macs: row.macs.join(" "),
    cores: row.cores,
    memory: row.memoryBytes,
    disk: row.diskBytes,
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
          hint="Kept, and told to the machine"
          maxLength={1024}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          autoFocus
        />
        <CopyCommand text={nodeCommand("reject", ids, reason.trim())} label="The same in a terminal" />
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
