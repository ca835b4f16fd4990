import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { command } from "../../state/cli-command.ts";
import { formatBytes, formatMillicores } from "../../state/units.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { Meter } from "../../ui/meters.tsx";
import { Panel } from "../../ui/panel.tsx";
import { ExecutionExport, ExecutionTable, useExecutions } from "../jobs/execution-table.tsx";

/** What runs on a node, and what of it is taken. */
export function WorkTab({ id, node }: { readonly id: string; readonly node: Node | undefined }) {
  const executions = useExecutions({ nodeId: id });
  const offered = node?.info?.work;
  const taken = node?.allocated;
  return (
    <div className="stack">
      <Panel title="What it offers">
        {offered === undefined ? (
          <p className="soft">The machine takes no work: its own configuration names no executor.</p>
        ) : (
          <dl className="facts">
            {[
              ["Cores", taken?.millicores ?? 0, offered.millicores, formatMillicores] as const,
              ["Memory", Number(taken?.memoryBytes ?? 0n), Number(offered.memoryBytes), formatBytes] as const,
              ["Disk", Number(taken?.diskBytes ?? 0n), Number(offered.diskBytes), formatBytes] as const,
              ["GPUs", taken?.gpuUuids.length ?? 0, node?.info?.gpus.length ?? 0, String] as const,
            ].map(([name, part, whole, format]) => (
              <div key={name} style={{ display: "contents" }}>
                <dt>{name}</dt>
                <dd className="stack tight">
                  <span className="number">
                    {format(part)} of {format(whole)} given
                  </span>
                  <Meter part={part} whole={whole} label={`${name} given`} />
                </dd>
              </div>
            ))}
            <dt>Executors</dt>
            <dd>{offered.executors.join(", ")}</dd>
          </dl>
        )}
      </Panel>
      <Panel
        title="Executions"
        flush
        actions={
          <>
            <ExecutionExport executions={executions} />
            <CopyButton text={command("job", "executions", "--node", id)}>Copy as command</CopyButton>
          </>
        }
      >
        <ExecutionTable executions={executions} withJob />
      </Panel>
    </div>
  );
}
