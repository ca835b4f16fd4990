import { AdminService, type Drain, DrainStateSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { useEffect, useMemo, useState } from "react";
import { ask } from "../../actions/asked.tsx";
import { useSearch, useSetSearch } from "../../app/address.ts";
import { NodeLink, PageLink } from "../../app/link.tsx";
import { clientOf } from "../../live/clients.ts";
import { fleet, useLook } from "../../live/fleet.ts";
import { useStream } from "../../live/follow.ts";
import { useObservable } from "../../live/observable.ts";
import { useRights } from "../../session/session.ts";
import { command, listCommand } from "../../state/cli-command.ts";
import { NO_FILTER } from "../../state/nodes/node-filter.ts";
import { type NodeRow, toMs } from "../../state/nodes/node-row.ts";
import type { NodeScope } from "../../state/nodes/node-scope.ts";
import { comparison, ORDERS } from "../../state/nodes/sorted-view.ts";
import { isoTime } from "../../state/time-words.ts";
import { countOf, formatCount } from "../../state/units.ts";
import { enumWord } from "../../state/words.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { Empty, Loading, Notice } from "../../ui/notices.tsx";
import { Facts, PageHead, Panel } from "../../ui/panel.tsx";
import { StateMark } from "../../ui/state-mark.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { jobPath } from "../jobs/execution-table.tsx";

/** So many are shown at first, and so many more each time that more are asked for. */
const SHOWN = 500;
/** Those that still wait come first. */
const DRAINED: NodeScope = {
  filter: { ...NO_FILTER, scheduling: ["DRAINING", "DRAINED", "UNCONFIRMED"] },
  by: "scheduling",
  reversed: true,
};
const inOrder = comparison(ORDERS.scheduling, true);

/** Nodes that are emptied, and what each still waits for. */
export function DrainsPage() {
  const version = useObservable(fleet.version);
  const complete = useObservable(fleet.complete);
  const large = useLook(DRAINED);
  const { holds } = useObservable(fleet.summary);
  const [most, setMost] = useState(SHOWN);
  const rights = useRights();
  const { node: chosen } = useSearch();
  const setSearch = useSetSearch();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version stands for the rows, which change in place.
  const rows = useMemo(() => {
    const drained = [...fleet.rows.values()].filter((row) => row.holds.includes("DRAIN"));
    // What the server lists piece by piece stays in its order: no piece moves what was shown before it.
    return drained.sort(large ? inOrder : newestFirst);
  }, [version, large]);
  const shown = rows.slice(0, most);
  const total = Math.max(rows.length, large ? (holds.DRAIN ?? 0) : 0);
  const isShort = rows.length < most;
  // biome-ignore lint/correctness/useExhaustiveDependencies: after each piece that came, the next may be wanted.
  useEffect(() => {
    if (isShort) fleet.more();
  }, [isShort, version]);
  return (
    <>
      <PageHead title="Drains">
        <ExportMenu name="drains" of={() => rows.map(valuesOf)} />
        <CopyCommandButton text={listCommand(DRAINED.filter, DRAINED, ["scheduling", "reasons"])} />
      </PageHead>
      <div className="page-body">
        <Panel title={countOf(total, "node")} flush>
          {rows.length === 0 && !complete ? (
            <Loading />
          ) : rows.length === 0 ? (
            <Empty title="No node is drained">
              <p>
                Choose nodes on the page <PageLink to="/nodes">Nodes</PageLink> to drain them.
              </p>
            </Empty>
          ) : (
            <DataTable
              label="Drains"
              rows={shown}
              keyOf={({ id }) => id}
              columns={[
                { title: "Node", cell: ({ id }) => <NodeLink id={id} /> },
                { title: "Scheduling", cell: ({ scheduling }) => <StateMark word={scheduling.word} /> },
                { title: "Since", cell: ({ scheduling }) => <Time ms={scheduling.sinceMs} /> },
                { title: "Why", cell: ({ scheduling }) => <span className="breaks">{scheduling.message || "-"}</span> },
                { title: "By", cell: ({ scheduling }) => scheduling.actor },
                {
                  title: "",
                  cell: ({ id }) => (
                    <span className="row">
                      <Button small onClick={() => setSearch({ node: id })}>
                        What it waits for
                      </Button>
                      {rights.operate && (
                        <Button small onClick={() => ask("undrain", [id])}>
                          Cancel drain
                        </Button>
                      )}
                    </span>
                  ),
                },
              ]}
            />
          )}
          {shown.length < total && (
            <div className="empty">
              <p>{formatCount(shown.length)} are shown.</p>
              {shown.length < fleet.most && <Button onClick={() => setMost(shown.length + SHOWN)}>Show more</Button>}
            </div>
          )}
        </Panel>
        {chosen !== undefined && <DrainPanel id={chosen} />}
      </div>
    </>
  );
}

/** Those that still wait first, of each the latest first. */
function newestFirst(a: NodeRow, b: NodeRow): number {
  const byWord = a.scheduling.word < b.scheduling.word ? 1 : a.scheduling.word > b.scheduling.word ? -1 : 0;
  return byWord || (b.scheduling.sinceMs ?? 0) - (a.scheduling.sinceMs ?? 0);
}

function valuesOf({ id, scheduling: { word, sinceMs, message, actor } }: NodeRow) {
  return { node: id, scheduling: word, since: isoTime(sinceMs), reason: message, actor };
}

function DrainPanel({ id }: { readonly id: string }) {
  const [drain, setDrain] = useState<Drain | null>(null);
  const [over, setOver] = useState("");
  useStream(id, () => {
    setDrain(null);
    setOver("");
    return {
      // It says nothing while nothing moves, and a deadline may be hours away.
      silenceMs: null,
      tellsItself: true,
      open: (signal) => clientOf(AdminService).watchDrain({ node: id }, { signal }),
      onMessage: ({ drain: now }) => setDrain(now ?? null),
      onEnd: ({ kind, reason, message }) => {
        const isAway = kind === "away" && reason !== "ENDED";
        if (!isAway) setOver(reason === "ENDED" ? "The drain has ended." : message);
        return isAway;
      },
    };
  });
  return (
    <Panel title={`Drain of ${id}`} actions={<CopyCommandButton text={command("node", "drain", id, "--monitor")} />}>
      <div className="stack">
        {over !== "" && <Notice tone="good">{over}</Notice>}
        {drain === null ? (
          over === "" && <Loading lines={3} />
        ) : (
          <>
            <Facts
              of={[
                ["State", <StateMark key="state" word={enumWord(DrainStateSchema, drain.state)} />],
                ["Begun", <ExactTime key="begun" ms={toMs(drain.startTime)} />],
                [
                  "Deadline",
                  drain.deadline === undefined ? "" : <ExactTime key="deadline" ms={toMs(drain.deadline)} />,
                ],
                ["Waits for", drain.waitingCount === 0 ? "nothing" : `${drain.waitingCount} executions`],
                ["Ends everything at once", drain.force ? "yes" : ""],
                ["Daemons run on", drain.ignoreDaemons ? "yes" : ""],
              ]}
            />
            {drain.waitingFor.length > 0 && (
              <DataTable
                label="What the drain waits for"
                rows={drain.waitingFor}
                keyOf={({ executionId }) => executionId}
                columns={[
                  {
                    title: "Execution",
                    cell: ({ executionId }) => <PageLink to={`/executions/${executionId}`}>{executionId}</PageLink>,
                  },
                  { title: "Job", cell: ({ job }) => <PageLink to={jobPath(job)}>{job}</PageLink> },
                  { title: "Waits for", cell: ({ waitingFor }) => waitingFor },
                ]}
              />
            )}
          </>
        )}
      </div>
    </Panel>
  );
}
