import type { ExecutionWait } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { toMs } from "../../state/nodes/node-row.ts";
import { countOf } from "../../state/units.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { Notice } from "../../ui/notices.tsx";
import { Reason } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";

/**
 * Shows why executions wait, move or are lost. Each reason has its start, its latest end, and a command that helps.
 */
export function WaitList({ waits }: { readonly waits: readonly ExecutionWait[] }) {
  return waits.map(({ reason, text, executions, since, until, command, job, nodeIds }) => (
    <Notice key={`${reason} ${job} ${text}`} tone="warn">
      <strong>
        {countOf(executions, "execution")} of {job}
      </strong>
      {nodeIds.length > 0 && ` on ${nodeIds.join(", ")}`}: {text} <Reason of={reason} />
      <div className="soft small">
        {since !== undefined && (
          <>
            started <Time ms={toMs(since)} />
          </>
        )}
        {until !== undefined && (
          <>
            {" "}
            (latest end: <Time ms={toMs(until)} />)
          </>
        )}
      </div>
      {command !== "" && (
        <div>
          <code>{command}</code> <CopyButton text={command} />
        </div>
      )}
    </Notice>
  ));
}
