import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { isUsableGpu, RESOURCE_FACTS, type WorkResource } from "@rollcall/domain";
import { useEffect } from "react";
import { readAgain } from "../../live/queries.ts";
import { formatBytes, formatMillicores } from "../../state/units.ts";
import { GivenFacts } from "../../ui/meters.tsx";
import { Panel } from "../../ui/panel.tsx";
import { ExecutionExport, ExecutionTable, useExecutions } from "../jobs/execution-table.tsx";

/** The executions on a node, and its allocated resources. */
export function WorkTab({ id, node }: { readonly id: string; readonly node: Node | undefined }) {
  const executions = useExecutions({ nodeId: id });
  // Refetch the allocation when the number of executions changes, because events of executions name their
  // jobs, not the node.
  const running = executions?.filter(({ endTime }) => endTime === undefined).length;
  useEffect(() => {
    if (running !== undefined) readAgain("node", id);
  }, [running, id]);
  const offered = node?.info?.work;
  const taken = node?.allocated;
  const known = (resource: WorkResource, amount: number | bigint | undefined): number | null => {
    const isUnknown = node?.info?.unknownFacts.some(({ fact }) => fact === RESOURCE_FACTS[resource]);
    return isUnknown || amount === undefined ? null : Number(amount);
  };
  return (
    <div className="stack">
      <Panel title="Offered resources">
        {offered === undefined ? (
          <p className="soft">The machine takes no work: its configuration has no executor.</p>
        ) : (
          <GivenFacts
            of={[
              ["Cores", taken?.millicores ?? 0, known("cores", offered.millicores), formatMillicores],
              ["Memory", Number(taken?.memoryBytes ?? 0n), known("memory", offered.memoryBytes), formatBytes],
              ["Disk", Number(taken?.diskBytes ?? 0n), known("disk", offered.diskBytes), formatBytes],
              [
                "GPUs",
                taken?.gpuUuids.length ?? 0,
                known("gpus", node?.info?.gpus.filter(isUsableGpu).length ?? 0),
                String,
              ],
            ]}
          >
            <dt>Executors</dt>
            <dd>{offered.executors.join(", ")}</dd>
          </GivenFacts>
        )}
      </Panel>
      <Panel title="Executions" flush actions={<ExecutionExport executions={executions} />}>
        <ExecutionTable executions={executions} withJob />
      </Panel>
    </div>
  );
}
