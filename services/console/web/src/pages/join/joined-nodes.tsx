import { useMemo } from "react";
import { NodeLink } from "../../app/link.tsx";
import { useFleet, useLook } from "../../live/fleet.ts";
import { type NodeScope, WHOLE_FLEET } from "../../state/nodes/node-scope.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty } from "../../ui/notices.tsx";
import { Panel } from "../../ui/panel.tsx";
import { StateMark } from "../../ui/state-mark.tsx";
import { Time } from "../../ui/time.tsx";

const MOST_SHOWN = 100;
const NEWEST: NodeScope = { ...WHOLE_FLEET, by: "created", reversed: true };

/** The machines that joined with a token, live. */
export function JoinedNodes({ tokenId }: { readonly tokenId: string }) {
  const nodes = useFleet();
  const isLarge = useLook(NEWEST);
  const rows = useMemo(
    () =>
      [...nodes.rows.values()]
        .filter((row) => row.joinTokenId === tokenId)
        .sort((a, b) => (b.createdMs ?? 0) - (a.createdMs ?? 0))
        .slice(0, MOST_SHOWN),
    [nodes, tokenId],
  );
  return (
    <Panel title={`Machines that joined with ${tokenId}`} flush>
      {rows.length === 0 ? (
        <Empty title="Waiting for a machine">
          <p>
            It appears here as soon as its agent has registered.
            {isLarge && " Only the newest machines of this fleet are shown."}
          </p>
        </Empty>
      ) : (
        <DataTable
          label="Machines that joined"
          rows={rows}
          keyOf={({ id }) => id}
          columns={[
            { title: "Node", cell: ({ id }) => <NodeLink id={id} /> },
            { title: "Approval", cell: ({ membership }) => <StateMark word={membership.word} /> },
            { title: "Connection", cell: ({ connection }) => <StateMark word={connection.word} /> },
            { title: "Health", cell: ({ health }) => <StateMark word={health.word} /> },
            { title: "Joined", cell: ({ createdMs }) => <Time ms={createdMs} /> },
          ]}
        />
      )}
    </Panel>
  );
}
