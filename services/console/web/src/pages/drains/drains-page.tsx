import { AdminService, type Drain, DrainStateSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { useEffect, useMemo, useState } from "react";
import { ask } from "../../actions/asked.tsx";
import { useSearch, useSetSearch } from "../../app/address.ts";
import { NodeLink, PageLink } from "../../app/link.tsx";
import { clientOf } from "../../live/clients.ts";
import { fleet, useFleet, useLook } from "../../live/fleet.ts";
import { useStream } from "../../live/follow.ts";
import { useTokenNames } from "../../live/token-names.ts";
import { useRights } from "../../session/session.ts";
import { command, listCommand } from "../../state/cli-command.ts";
import { actorName } from "../../state/events/event-groups.ts";
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

/** Number of drains shown at first, and the number added each time the user asks for more. */
const SHOWN = 500;
/** The nodes to show. Unfinished drains come first. */
const DRAINED: NodeScope = {
  filter: { ...NO_FILTER, scheduling: ["DRAINING", "DRAINED", "UNCONFIRMED"] },
  by: "scheduling",
  reversed: true,
};
const inOrder = comparison(ORDERS.scheduling, true);

/** Nodes that are draining or drained, and what each is still waiting for. */
export function DrainsPage() {
  const nodes = useFleet();
  const { complete } = nodes;
  const large = useLook(DRAINED);
  const { holds } = nodes.summary;
  const [most, setMost] = useState(SHOWN);
  const rights = useRights();
  const names = useTokenNames();
  const { node: chosen } = useSearch();
  const setSearch = useSetSearch();
  const rows = useMemo(() => {
    const drained = [...nodes.rows.values()].filter((row) => row.holds.includes("DRAIN"));
    // A list that is loaded page by page keeps the server's order, so that a new page does not move the visible rows.
    return drained.sort(large ? inOrder : newestFirst);
  }, [nodes, large]);
  const shown = rows.slice(0, most);
  const total = Math.max(rows.length, large ? (holds.DRAIN ?? 0) : 0);
  // The rows change with each loaded page, which may call for another.
  useEffect(() => {
    if (rows.length < most) fleet.more();
  }, [rows, most]);
  return (
    <>
      <PageHead title="Drains">
        <ExportMenu name="drains" of={() => rows.map(valuesOf)} />
        <CopyCommandButton
          text={listCommand(DRAINED.filter, DRAINED, ["scheduling", "reasons"])}
          more={chosen === undefined ? [] : [command("node", "drain", chosen, "--monitor")]}
        />
      </PageHead>
      <div className="page-body">
        <Panel title={countOf(total, "node")} flush>
          {rows.length === 0 && !complete ? (
            <Loading />
          ) : rows.length === 0 ? (
            <Empty title="No node is draining">
              <p>
                Select nodes on the <PageLink to="/nodes">Nodes</PageLink> page to drain them.
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
                {
                  title: "By",
                  cell: ({ scheduling: { actor } }) => <span title={actor}>{actorName(actor, names)}</span>,
                },
                {
                  title: "",
                  cell: ({ id }) => (
                    <span className="row">
                      <Button small onClick={() => setSearch({ node: id })}>
                        Details
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

/** Unfinished drains first. Within each group, the newest first. */
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
      // Set no limit, because the stream is silent while nothing changes, and a deadline may be hours away.
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
    <Panel title={`Drain of ${id}`}>
      <div className="stack">
        {over !== "" && <Notice tone="good">{over}</Notice>}
        {drain === null ? (
          over === "" && <Loading lines={3} />
        ) : (
          <>
            <Facts
              of={[
                ["State", <StateMark key="state" word={enumWord(DrainStateSchema, drain.state)} />],
                ["Started", <ExactTime key="started" ms={toMs(drain.startTime)} />],
                [
                  "Deadline",
                  drain.deadline === undefined ? "" : <ExactTime key="deadline" ms={toMs(drain.deadline)} />,
                ],
                ["Waits for", drain.waitingCount === 0 ? "nothing" : countOf(drain.waitingCount, "execution")],
                ["Stops everything immediately", drain.force ? "yes" : ""],
                ["Daemons keep running", drain.ignoreDaemons ? "yes" : ""],
              ]}
            />
            {drain.waitingFor.length > 0 && (
              <DataTable
                label="What the drain is waiting for"
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
