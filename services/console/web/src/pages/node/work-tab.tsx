import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { isUsableGpu } from "@rollcall/domain";
import { useEffect } from "react";
import { readAgain } from "../../live/queries.ts";
import { command } from "../../state/cli-command.ts";
import { formatBytes, formatMillicores } from "../../state/units.ts";
import { CopyCommandButton } from "../../ui/copy.tsx";
import { GivenFacts } from "../../ui/meters.tsx";
import { Panel } from "../../ui/panel.tsx";
import { ExecutionExport, ExecutionTable, useExecutions } from "../jobs/execution-table.tsx";

/** What runs on a node, and what of it is taken. */
export function WorkTab({ id, node }: { readonly id: string; readonly node: Node | undefined }) {
  const executions = useExecutions({ nodeId: id });
  // Events about executions name their jobs: what is taken of the node is read again when others run on it.
  const running = executions?.filter(({ endTime }) => endTime === undefined).length;
  useEffect(() => {
    if (running !== undefined) readAgain("node", id);
  }, [running, id]);
  const offered = node?.info?.work;
  const taken = node?.allocated;
  return (
    <div className="stack">
      <Panel title="What it offers">
        {offered === undefined ? (
          <p className="soft">The machine takes no work: its own configuration names no executor.</p>
        ) : (
          <GivenFacts
            of={[
              ["Cores", taken?.millicores ?? 0, offered.millicores, formatMillicores],
              ["Memory", Number(taken?.memoryBytes ?? 0n), Number(offered.memoryBytes), formatBytes],
              ["Disk", Number(taken?.diskBytes ?? 0n), Number(offered.diskBytes), formatBytes],
              ["GPUs", taken?.gpuUuids.length ?? 0, node?.info?.gpus.filter(isUsableGpu).length ?? 0, String],
            ]}
          >
            <dt>Executors</dt>
            <dd>{offered.executors.join(", ")}</dd>
          </GivenFacts>
        )}
      </Panel>
      <Panel
        title="Executions"
        flush
        actions={
          <>
            <ExecutionExport executions={executions} />
            <CopyCommandButton text={command("job", "executions", "--node", id)} />
          </>
        }
      >
        <ExecutionTable executions={executions} withJob />
      </Panel>
    </div>
  );
}
