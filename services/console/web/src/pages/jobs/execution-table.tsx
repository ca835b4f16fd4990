import { type Execution, ExecutionStateSchema, JobService } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { stateWords } from "@rollcall/domain";
import { useMemo, useState } from "react";
import { NodeLink, PageLink } from "../../app/link.tsx";
import { clientOf } from "../../live/clients.ts";
import { useStream } from "../../live/follow.ts";
import { toMs } from "../../state/nodes/node-row.ts";
import { SnapshotMap } from "../../state/snapshot-map.ts";
import { isoTime } from "../../state/time-words.ts";
import { enumWord } from "../../state/words.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { Empty, Loading } from "../../ui/notices.tsx";
import { StateMark } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";

/** Maximum number of executions that a page keeps, newest first. */
const MOST_KEPT = 1000;

/** The live executions of a job or on a node; null until all are loaded. */
export function useExecutions(of: { readonly job?: string; readonly nodeId?: string }): readonly Execution[] | null {
  const [known, setKnown] = useState<ReadonlyMap<string, Execution>>(new Map());
  const [done, setDone] = useState(false);
  useStream(`${of.job ?? ""} ${of.nodeId ?? ""}`, () => {
    const snapshot = new SnapshotMap<Execution>(MOST_KEPT);
    setDone(false);
    return {
      open: (signal) => {
        snapshot.restart();
        return clientOf(JobService).watchExecutions(of, { signal });
      },
      onMessage: ({ executions, snapshotDone }) => {
        const came = executions.map((one) => [one.id, one] as const);
        setKnown(snapshot.apply(came, snapshotDone));
        if (snapshotDone) setDone(true);
      },
    };
  });
  return useMemo(() => (done ? [...known.values()].sort(newestFirst) : null), [known, done]);
}

/** The name of an execution's state. */
export function executionWord(execution: Execution): string {
  return enumWord(ExecutionStateSchema, execution.state);
}

export function ExecutionTable({
  executions,
  withJob,
}: {
  readonly executions: readonly Execution[] | null;
  readonly withJob?: boolean;
}) {
  if (executions === null) return <Loading />;
  if (executions.length === 0) return <Empty title="No executions" />;
  const job = { title: "Job", cell: (one: Execution) => <PageLink to={jobPath(one.job)}>{one.job}</PageLink> };
  const node = { title: "Node", cell: (one: Execution) => (one.nodeId === "" ? "-" : <NodeLink id={one.nodeId} />) };
  return (
    <DataTable
      label="Executions"
      rows={executions}
      keyOf={({ id }) => id}
      columns={[
        {
          title: "Execution",
          cell: ({ id }) => <PageLink to={`/executions/${encodeURIComponent(id)}`}>{id}</PageLink>,
        },
        withJob ? job : node,
        { title: "Index", right: true, cell: ({ index }) => index },
        { title: "Version", right: true, cell: ({ version }) => version },
        { title: "State", cell: (one) => <StateMark word={executionWord(one)} title={one.message} /> },
        {
          title: "Why",
          cell: ({ reason, message }) => (
            <span className="breaks" title={reason}>
              {message || stateWords(reason) || "-"}
            </span>
          ),
        },
        { title: "Placed", cell: ({ createTime }) => <Time ms={toMs(createTime)} /> },
        { title: "Ended", cell: ({ endTime }) => <Time ms={toMs(endTime)} /> },
      ]}
    />
  );
}

/** Exports the executions on screen. */
export function ExecutionExport({ executions }: { readonly executions: readonly Execution[] | null }) {
  return <ExportMenu name="executions" of={() => (executions ?? []).map(valuesOf)} />;
}

function valuesOf(execution: Execution) {
  const { id, job, nodeId, index, version, reason, message, createTime, endTime } = execution;
  return {
    ...{ id, job, node: nodeId, index, version, state: executionWord(execution), reason, message },
    placed: isoTime(toMs(createTime)),
    ended: isoTime(toMs(endTime)),
  };
}

/** The path of a job's page. */
export function jobPath(name: string): string {
  return `/jobs/${encodeURIComponent(name)}`;
}

function newestFirst(a: Execution, b: Execution): number {
  return (toMs(b.createTime) ?? 0) - (toMs(a.createTime) ?? 0) || (a.id < b.id ? -1 : 1);
}
